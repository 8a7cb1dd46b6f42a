//! How the members of a group come to a board, or to one on each of its hosts.
//!
//! ```text
//!   all        allgather over the tree: my bell, and whether I can     somebody cannot -> no board
//!   heads      make the board of their host, send it to every bell there with its token
//!   others     wait for it, and map it
//!   heads      make a group among themselves, if there are several
//!   all        allreduce over the tree: have I got it?               somebody has not -> no board
//! ```
//! A head is a host's first member.
//!
//! Both collectives are the group's own first operations over the tree. So all members come to the
//! same verdict, whatever dies meanwhile: a node's death delays it, a member's fails the group.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use trib_proto::Nanos;
use trib_proto::leaf::GroupId;
use trib_transport::memory::{Bell, BellAddress, BellName, Board, Token};
use trib_wire::directory::between_hosts;
use trib_wire::{DataType, GroupName, RankList, ReduceOp, Signature};

use super::room::{Seat, is_roomy};
use super::running::Running;
use super::span::Span;
use super::{Plan, Reach};
use crate::completion::Completion;
use crate::derived_tag::derived_tag;
use crate::engine::lane::Lane;
use crate::engine::operation::Operation;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::{Input, Memory};
use crate::operation;

/// The tree, as it is for a group that is being founded.
pub(super) trait Tree {
    /// Posts an operation of the group.
    fn post(&mut self, now: Nanos, signature: Signature, operation: Operation) -> Result<(), Error>;

    /// Begins to make the group of the heads.
    fn begin_heads(
        &mut self,
        now: Nanos,
        members: RankList,
        tag: u64,
        state: Arc<GroupState>,
    ) -> Result<GroupId, Error>;
}

/// A group whose members are on the way to a board.
pub(super) struct Founding {
    group: GroupId,
    /// The group's members, its number and what it is called.
    members: RankList,
    me: u32,
    tag: u64,
    name: GroupName,
    plan: Plan,
    seat: Seat,
    step: Step,
}

enum Step {
    Begin,
    Telling(Exchange, Token),
    /// The board is to be sent, or to come.
    Meeting(Meeting),
    /// The group of the heads is made, if this member is one.
    Joining(Option<Arc<GroupState>>, Option<Board>, Companions),
    Agreeing(Exchange, Option<Board>, Companions),
}

/// What the members know of each other.
struct Companions {
    bells: Vec<BellAddress>,
    /// Each has a processor to itself.
    are_roomy: bool,
    /// What the group's first member has drawn this time: no other founding has it.
    draw: Token,
}

struct Meeting {
    /// Which of those that have the board this member is.
    me: usize,
    companions: Companions,
    token: Token,
    /// At the first member: the board, and the next member to which it is to be sent.
    own: Option<(Board, OwnedFd, usize)>,
    /// When it is given up.
    until: Nanos,
}

/// What becomes of it.
pub(super) enum Verdict {
    /// It is not decided yet.
    Open(Box<Founding>),
    /// All members have a board.
    Board(Box<Running>),
    /// The group's operations go over the tree.
    Tree,
}

/// An operation over the tree, with memory of ours.
struct Exchange {
    bytes: Vec<u8>,
    completion: Arc<Completion>,
}

/// Boards that have come, and that nobody has looked for yet.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    all: Vec<(Token, OwnedFd)>,
}

impl Arrivals {
    pub(super) fn add(&mut self, token: Token, memory: OwnedFd) {
        // A board for whose group nobody asks is no reason to keep descriptors for ever.
        if self.all.len() == ARRIVALS_MAX {
            self.all.remove(0);
        }
        self.all.push((token, memory));
    }

    fn take(&mut self, token: Token) -> Option<OwnedFd> {
        let at = self.all.iter().position(|(other, _)| *other == token)?;
        Some(self.all.swap_remove(at).1)
    }
}

impl Founding {
    /// `seat` is that of this process.
    pub(super) fn new(
        group: GroupId,
        members: RankList,
        tag: u64,
        state: &GroupState,
        plan: Plan,
        seat: Seat,
    ) -> Founding {
        let (me, name) = (state.rank, state.name().clone());
        Founding { group, members, me, tag, name, plan, seat, step: Step::Begin }
    }

    /// How many members the board has.
    pub(super) fn members(&self) -> usize {
        match &self.plan.reach {
            Reach::Host(_) => self.members.len() as usize,
            Reach::Hosts(span) => span.local().len(),
        }
    }

    /// The members that are to have this member's board, by their positions in the group.
    fn local(&self) -> Vec<u32> {
        match &self.plan.reach {
            Reach::Host(_) => (0..self.members.len()).collect(),
            Reach::Hosts(span) => span.local().to_vec(),
        }
    }

    /// Goes on as far as it can. `heads` is the group of the heads, if this member has begun to
    /// make it. `bell` is none if this member cannot share memory.
    pub(super) fn advance(
        mut self: Box<Self>,
        now: Nanos,
        tree: &mut impl Tree,
        heads: &mut Option<GroupId>,
        bell: Option<&Bell>,
        arrivals: &mut Arrivals,
    ) -> Result<Verdict, Error> {
        loop {
            let step = std::mem::replace(&mut self.step, Step::Begin);
            self.step = match step {
                Step::Begin => {
                    let record = Record::own(bell, self.seat);
                    Step::Telling(self.gather(now, tree, &record.write())?, record.token)
                }
                Step::Telling(exchange, token) => {
                    let Some(bytes) = exchange.outcome()? else {
                        self.step = Step::Telling(exchange, token);
                        return Ok(Verdict::Open(self));
                    };
                    match self.meet(now, &bytes, token) {
                        Some(meeting) => Step::Meeting(meeting),
                        None => return Ok(Verdict::Tree),
                    }
                }
                Step::Meeting(mut meeting) => {
                    let Some(board) = meeting.advance(now, bell, arrivals) else {
                        self.step = Step::Meeting(meeting);
                        return Ok(Verdict::Open(self));
                    };
                    // Also a head that has no board: the others cannot make the group without it.
                    let made = match &self.plan.reach {
                        Reach::Hosts(span) if meeting.me == 0 => {
                            let tag = derived_tag("heads", self.tag, &self.members, &meeting.companions.draw.0);
                            begin_heads(now, tree, span, (&self.members, tag), &self.name)
                        }
                        _ => None,
                    };
                    let (id, state) = made.unzip();
                    *heads = id;
                    Step::Joining(state, board, meeting.companions)
                }
                Step::Joining(state, board, companions) => {
                    let is_made = match (state.as_ref().map(|state| state.ready.outcome()), &self.plan.reach) {
                        (Some(None), _) => {
                            self.step = Step::Joining(state, board, companions);
                            return Ok(Verdict::Open(self));
                        }
                        (Some(Some(outcome)), _) => outcome.is_ok(),
                        // A head needs it.
                        (None, Reach::Hosts(_)) => board.as_ref().is_some_and(|board| board.me() > 0),
                        (None, Reach::Host(_)) => true,
                    };
                    let exchange = self.agree(now, tree, board.is_some() && is_made)?;
                    Step::Agreeing(exchange, board, companions)
                }
                Step::Agreeing(exchange, board, companions) => {
                    let Some(bytes) = exchange.outcome()? else {
                        self.step = Step::Agreeing(exchange, board, companions);
                        return Ok(Verdict::Open(self));
                    };
                    return Ok(match board.filter(|_| bytes == [1]) {
                        Some(board) => Verdict::Board(Box::new(self.run(board, companions))),
                        None => Verdict::Tree,
                    });
                }
            };
        }
    }

    /// When `advance` has something to do though nothing has come.
    pub(super) fn deadline(&self, now: Nanos) -> Nanos {
        match &self.step {
            Step::Begin => now,
            // A bell that was rung too often takes the board a little later.
            Step::Meeting(meeting) if meeting.own.is_some() => now + AGAIN,
            Step::Meeting(meeting) => meeting.until,
            Step::Telling(..) | Step::Joining(..) | Step::Agreeing(..) => Nanos::NEVER,
        }
    }

    fn run(self, board: Board, Companions { bells, are_roomy, .. }: Companions) -> Running {
        match self.plan.reach {
            Reach::Host(shape) => Running::new(board, shape, self.members, bells, are_roomy),
            Reach::Hosts(span) => {
                let local = span.local().iter().filter_map(|member| self.members.nth(*member)).map(|rank| rank.0);
                let local = RankList::from_ranks(local);
                Running::new(board, span.shape().clone(), local, bells, are_roomy).with_span(*span)
            }
        }
    }

    fn gather(&self, now: Nanos, tree: &mut impl Tree, own: &[u8; RECORD]) -> Result<Exchange, Error> {
        let (size, me) = (self.members.len() as usize, self.me as usize);
        let mut bytes = vec![0; RECORD * size];
        bytes[RECORD * me..][..RECORD].copy_from_slice(own);
        self.post(now, tree, operation::allgather(RECORD as u64), bytes)
    }

    fn agree(&self, now: Nanos, tree: &mut impl Tree, has: bool) -> Result<Exchange, Error> {
        let signature = operation::allreduce(1, DataType::U8, ReduceOp::Min);
        self.post(now, tree, signature, vec![u8::from(has)])
    }

    fn post(
        &self,
        now: Nanos,
        tree: &mut impl Tree,
        signature: Signature,
        mut bytes: Vec<u8>,
    ) -> Result<Exchange, Error> {
        let memory = Memory::new(&signature, self.members.len(), self.me, Input::InPlace, bytes.as_mut_ptr());
        let memory = memory.map_err(|cause| Error::Memory(format!("no memory to make a group: {cause}")))?;
        let completion = Arc::new(Completion::on_lane(0, signature));
        tree.post(now, signature, Operation::new(self.group, memory, completion.clone()))?;
        Ok(Exchange { bytes, completion })
    }

    /// Reads what all have told. `None` if one of them cannot share memory.
    fn meet(&self, now: Nanos, bytes: &[u8], token: Token) -> Option<Meeting> {
        let records: Option<Vec<Record>> = bytes.chunks_exact(RECORD).map(Record::read).collect();
        let records = records?;
        let draw = records.first()?.token;
        let local = self.local();
        let records: Vec<&Record> = local.iter().filter_map(|member| records.get(*member as usize)).collect();
        let me = local.iter().position(|member| *member == self.me)?;
        // Names of one length all are addresses, so this fails at every member or at none.
        let bells: io::Result<_> = records.iter().map(|record| BellAddress::of(record.bell)).collect();
        let bells = bells.ok()?;
        // Where it cannot be made, the others hear of that when they agree.
        let made = (me == 0).then(|| Board::create(local.len()).ok()).flatten();
        let own = made.map(|(board, memory)| (board, memory, 1));
        let token = if me == 0 { token } else { records.first()?.token };
        let seats: Vec<Seat> = records.iter().map(|record| record.seat).collect();
        let companions = Companions { bells, are_roomy: is_roomy(&seats), draw };
        Some(Meeting { me, companions, token, own, until: now + COMES })
    }
}

impl Meeting {
    /// The board, or none if there will be none; `None` while that is open.
    fn advance(&mut self, now: Nanos, bell: Option<&Bell>, arrivals: &mut Arrivals) -> Option<Option<Board>> {
        let over = now >= self.until;
        let Some(bell) = bell else { return Some(None) };
        if self.me > 0 {
            let memory = match arrivals.take(self.token) {
                Some(memory) => memory,
                None => return over.then_some(None),
            };
            let board = Board::open(&memory, self.companions.bells.len(), self.me);
            return Some(board.inspect_err(|cause| tracing::debug!(%cause, "a group's board cannot be opened")).ok());
        }
        let Some((_, memory, next)) = &mut self.own else { return Some(None) };
        while let Some(other) = self.companions.bells.get(*next) {
            match bell.send(other, self.token, memory) {
                Ok(()) => *next += 1,
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock && !over => return None,
                Err(cause) => {
                    tracing::debug!(%cause, member = *next, "a group's board cannot be sent");
                    return Some(None);
                }
            }
        }
        Some(self.own.take().map(|(board, ..)| board))
    }
}

/// Begins to make the group of the heads. What refuses it at this head does so at all. Its tag is
/// one of its own each time: a member that has freed the group early has begun none, and would
/// count the creations of one tag otherwise than the other heads from then on.
fn begin_heads(
    now: Nanos,
    tree: &mut impl Tree,
    span: &Span,
    (members, tag): (&RankList, u64),
    name: &GroupName,
) -> Option<(GroupId, Arc<GroupState>)> {
    let heads = span.heads(members);
    let name = between_hosts(name.as_str());
    let state = Arc::new(GroupState::new(span.home(), &heads, tag, name, 1));
    let made = tree.begin_heads(now, heads, tag, state.clone());
    let made = made.inspect_err(|cause| tracing::debug!(%cause, "there is no group of a group's first members"));
    made.ok().map(|id| (id, state))
}

impl Tree for Lane {
    fn post(&mut self, now: Nanos, signature: Signature, operation: Operation) -> Result<(), Error> {
        Lane::post(self, now, None, signature, operation)
    }

    fn begin_heads(
        &mut self,
        now: Nanos,
        members: RankList,
        tag: u64,
        state: Arc<GroupState>,
    ) -> Result<GroupId, Error> {
        self.create_group(now, members, (tag, true), state)
    }
}

impl Exchange {
    /// What has come; none while it is under way.
    fn outcome(&self) -> Result<Option<Vec<u8>>, Error> {
        match self.completion.outcome() {
            None => Ok(None),
            Some(outcome) => outcome.map(|()| Some(self.bytes.clone())),
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.completion.is_done() {
            // The engine may still write there.
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}

/// What a member tells the others.
struct Record {
    bell: BellName,
    token: Token,
    seat: Seat,
}

impl Record {
    /// This member's, and the token of a board that it would make. Zeros say that it cannot.
    fn own(bell: Option<&Bell>, seat: Seat) -> Record {
        let token = bell.and_then(|_| Token::draw().ok());
        let bell = bell.filter(|_| token.is_some()).map_or(BellName([0; 16]), Bell::name);
        Record { bell, token: token.unwrap_or(Token([0; 16])), seat }
    }

    /// `None` if that member cannot share memory.
    fn read(bytes: &[u8]) -> Option<Record> {
        let (bell, bytes) = bytes.split_first_chunk()?;
        let (token, bytes) = bytes.split_first_chunk()?;
        let (seat, _) = bytes.split_first_chunk()?;
        let record = Record { bell: BellName(*bell), token: Token(*token), seat: Seat::read(*seat) };
        (record.bell.0 != [0; 16]).then_some(record)
    }

    fn write(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..16].copy_from_slice(&self.bell.0);
        bytes[16..32].copy_from_slice(&self.token.0);
        bytes[32..].copy_from_slice(&self.seat.write());
        bytes
    }
}

/// In bytes.
const RECORD: usize = 32 + Seat::LEN;
/// How long a board may be on its way. Who sends it does so at once when all have told.
const COMES: Nanos = Nanos::from_millis(5000);
/// When a board that its receiver could not take is sent again.
const AGAIN: Nanos = Nanos::from_millis(1);
/// How many boards wait for their groups at most.
const ARRIVALS_MAX: usize = 64;
