//! The leaf: one rank of one job.
//!
//! Map: `at` (an event at a group), `group` (one group), `operation` (how an operation is cut),
//! `llt` (datagrams, with the only retransmission timers of the system), `rtt` (how long a probe
//! takes), `resends` (how much is sent again at once), `sat` (streams and the lease), `streaming`
//! (who shares the flight), `kept` (operations that are over here and perhaps not elsewhere),
//! `tidings` (when the node is told that they are), `room` (how much of them may be kept),
//! `delivered` (which results are here), `begun` (how many creations were begun), `concluded` (how
//! groups have ended that are not here any more), `board` (what the node hears of groups that need
//! none), `config` and `output` (what the driver says and is asked for). Tables of transitions:
//! `phase` of the lease, `state` of a group.
//!
//! ```text
//!   create_group: Joining --Ready--> Ready --GroupError--> Failed --freed--> Gone
//!                    |`---Refused---> Failed
//!                    |                  `---freed---> Left --all members have left: Freed--> Gone
//!                    `---freed---> Abandoned --Ready--> Left
//!                                            `---Refused---> Gone
//! ```
//! A rank whose connection is gone waits for another one, which belongs to the next epoch. There it
//! joins all its groups again, and sends again what some rank lacks. Only ranks remember anything
//! from one epoch to the next (docs/protocol.md#10). Where the job does not go on in another epoch,
//! all groups fail instead.

mod at;
mod begun;
mod board;
mod concluded;
mod config;
mod delivered;
mod group;
mod kept;
mod llt;
mod operation;
mod output;
mod phase;
mod resends;
mod room;
mod rtt;
mod sat;
mod state;
mod streaming;
mod tidings;

pub use board::Standstill;
pub use config::LeafConfig;
pub use output::{GroupId, LeafOutput, Note, OpId, Payload, Slice};

use std::collections::BTreeMap;

use trib_wire::header::NUMBER_MAX;
use trib_wire::{
    Body, Epoch, Fault, Generation, GroupIndex, GroupKey, GroupName, Header, Kind, Marks, Placement, RankList, Reason,
    Signature, Standing,
};

use crate::liveness::{Liveness, Need, Peer, Tick, next_tick};
use crate::surprise::cannot_happen;
use crate::window;
use crate::{Nanos, Path};
use at::At;
use begun::Begun;
use concluded::Concluded;
use group::{Edge, Group, Name};
use operation::{Cut, Operation};
use room::Room;
use rtt::RoundTrip;
use sat::Activity;
use state::{Event, State};
use streaming::Streaming;

/// Why a call was refused at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeafError {
    /// This rank is not in the member list, or the list is not valid.
    BadMembers,
    /// The order of the members needs more runs than a frame carries. The caller can sort them, or
    /// use fewer.
    TooManyRuns,
    /// This rank has no such group.
    UnknownGroup,
    /// The root is not a rank of the group.
    BadRoot,
    /// The vector has 2^63 bytes or more, or the group's pieces would get numbers that no frame
    /// carries.
    TooLong,
    /// The operator is not defined for the type.
    Unsupported,
    /// What counts as an element in the wire format is longer than a piece may be.
    NoRoom,
    /// The group has failed.
    Failed(Fault),
}

/// A group that is to be made.
#[derive(Clone, Debug)]
pub struct NewGroup {
    /// Its ranks. The position of a rank in this list is its rank in the group.
    pub members: RankList,
    /// Tells apart groups with equal members.
    pub tag: u64,
    /// Its name for people, which may be empty.
    pub name: GroupName,
    /// It is made for another group, beside which the quota of groups does not count it. All
    /// members say so.
    pub companion: bool,
}

/// An operation that is to be posted.
#[derive(Clone, Copy, Debug)]
pub struct Post {
    /// Its name in this core, from `next_op`.
    pub id: OpId,
    /// The operation's number, if the caller counts: a group with several lanes has a core for
    /// each, and its operations are counted from 1 over all of them. Beside it stands 0, or, for a
    /// part of an operation that is cut over lanes, one more than the number of the lane. `None`
    /// means that it is the group's next operation in this core.
    pub number: Option<(u64, u16)>,
    /// The collective, the type, the operator, the length and the root.
    pub signature: Signature,
    /// The count of the longer call of which this is a stretch, if the others are posted before and
    /// behind it; else 0. Its segments are as long as those of that call. All members say the same.
    pub stretch_of: u64,
}

/// The state machine of one rank of one job.
pub struct LeafCore {
    edge: Edge,
    groups: BTreeMap<GroupId, Group>,
    /// The groups in the making, and after a change of the epoch those that are made again.
    joining: BTreeMap<GroupKey, GroupId>,
    begun: Begun,
    /// The groups by the node's index for them, with the generation that the index has there.
    by_index: Vec<Option<(Generation, GroupId)>>,
    /// The groups that the program has freed, by their names at the node, which may have given
    /// their indices to others.
    left_behind: BTreeMap<(GroupIndex, Generation), GroupId>,
    /// Groups that have failed and that the program has freed.
    concluded: Concluded,
    /// Under `strict`: the groups that were refused after some rank was told of success, until all
    /// members know that, and whether this rank has said in this epoch that it does.
    untold: BTreeMap<GroupKey, bool>,
    /// The groups that may have a timer running, for a probe or a mark.
    armed: Vec<GroupId>,
    /// The groups that stream now.
    streaming: Streaming,
    /// The memory of what all groups keep for other ranks.
    room: Room,
    /// Whether groups are to be asked for when this rank has left others.
    joins_wait: bool,
    /// The number of groups that wait for the lock.
    asking: u64,
    /// How many operations this rank has done over boards, where no node sees them.
    at_boards: u64,
    /// The number of groups that have it and no operation.
    holding: u64,
    next_group: u64,
    next_op: u64,
    link: Option<Liveness>,
    /// The epochs that brought no result, one after the other, this one included.
    fruitless: u32,
    lost: bool,
    next_tick: Nanos,
    round_trip: RoundTrip,
}

impl LeafCore {
    /// A rank without groups.
    ///
    /// # Panics
    /// If the limits are out of range. The parser of a ticket must have checked them.
    pub fn new(config: LeafConfig) -> LeafCore {
        assert!(config.limits.are_valid(), "limits out of range");
        LeafCore {
            groups: BTreeMap::new(),
            joining: BTreeMap::new(),
            begun: Begun::default(),
            by_index: Vec::new(),
            left_behind: BTreeMap::new(),
            concluded: Concluded::default(),
            untold: BTreeMap::new(),
            armed: Vec::new(),
            streaming: Streaming::new(config.limits.flight),
            room: Room::new(config.memory),
            edge: Edge { config, signs: 0 },
            joins_wait: false,
            asking: 0,
            at_boards: 0,
            holding: 0,
            next_group: 0,
            next_op: 0,
            link: None,
            fruitless: 0,
            lost: false,
            next_tick: Nanos::NEVER,
            round_trip: RoundTrip::default(),
        }
    }

    /// Returns a name for a group that is about to be made.
    pub fn next_group(&mut self) -> GroupId {
        self.next_group += 1;
        GroupId(self.next_group - 1)
    }

    /// Starts to make a group under a name from `next_group`. The ranks' creations with equal
    /// members and tag are matched in call order. Operations may be posted at once.
    pub fn create_group(&mut self, id: GroupId, group: NewGroup, out: &mut impl LeafOutput) -> Result<(), LeafError> {
        let NewGroup { members, tag, name, companion } = group;
        if !members.is_valid(self.edge.config.world_size) {
            return Err(LeafError::BadMembers);
        }
        if members.runs().len() > trib_wire::ranks::RUNS_MAX {
            return Err(LeafError::TooManyRuns);
        }
        let me = members.position(self.edge.config.rank).ok_or(LeafError::BadMembers)?;
        if self.lost {
            return Err(LeafError::Failed(self.edge.fault(Reason::NodeDead)));
        }
        let key = GroupKey { tag, creation: self.begun.count(tag, &members), members };
        let mut group = Group::new(id, (key.clone(), name), me, &self.edge);
        group.companion = companion;
        if self.owes_a_leave() {
            self.joins_wait = true;
        } else if !self.is_detached() {
            group.join(&self.edge, out);
        }
        self.groups.insert(id, group);
        self.joining.insert(key, id);
        Ok(())
    }

    /// Leaves the group. Its operations that are still outstanding complete with a fault.
    pub fn free_group(&mut self, now: Nanos, group: GroupId, out: &mut impl LeafOutput) {
        let Some(state) = self.groups.get_mut(&group) else { return };
        state.drop_operations(&self.edge, now, out);
        match state.step(Event::Free) {
            Some(State::Left) => self.leave(group, out),
            Some(State::Gone) => {
                if state.name.is_some() && !self.lost {
                    out.transmit(Path::Stream, &state.header(&self.edge, Kind::Leave), Payload::None);
                }
                self.remove(group);
            }
            _ => {}
        }
        self.catch_up(now, out);
    }

    /// Returns a name for an operation that is about to be posted.
    pub fn next_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op - 1)
    }

    /// Posts an operation and returns the path on which it travels. It never waits. All members
    /// must post the operations of a group in the same order. The module `window` says how long the
    /// vector is, and which of its elements this rank gives and gets.
    pub fn post(
        &mut self,
        now: Nanos,
        group: GroupId,
        post: &Post,
        out: &mut impl LeafOutput,
    ) -> Result<Path, LeafError> {
        let Post { id, number, signature, stretch_of } = *post;
        let state = self.groups.get_mut(&group).filter(|g| !g.is_freed()).ok_or(LeafError::UnknownGroup)?;
        if let Some(fault) = state.failed {
            return Err(LeafError::Failed(fault));
        }
        if signature.root >= state.seat.size {
            return Err(LeafError::BadRoot);
        }
        if !signature.is_defined() {
            return Err(LeafError::Unsupported);
        }
        let total = window::vector_elements(&signature, state.seat.size).ok_or(LeafError::TooLong)?;
        let called = Signature { count: signature.count.max(stretch_of), ..signature };
        let whole = window::vector_elements(&called, state.seat.size).ok_or(LeafError::TooLong)?;
        let cut = Cut::new(&self.edge.config.limits, signature.layout(), (total, whole));
        let cut = cut.ok_or(LeafError::NoRoom)?;
        let cut = cut.with_turns(&signature);
        let posted = match cut.path {
            Path::Stream => state.streams.posted(),
            Path::Datagram => state.datagrams.posted(),
        };
        if cut.pieces() > NUMBER_MAX.saturating_sub(posted) {
            return Err(LeafError::TooLong);
        }
        let operation = Operation::new(id, signature, state.seat, state.take_number(number), cut);
        match cut.path {
            Path::Stream => state.streams.post(operation),
            Path::Datagram => state.datagrams.post(operation),
        }
        self.pump(now, group, out);
        Ok(cut.path)
    }

    /// The group's operations go over a board, where the node sees none of them, and this is why
    /// they do not go on there; `None` if they do. The node is told now, or as soon as it knows the
    /// group, and again in each epoch.
    pub fn tell_of_board(
        &mut self,
        now: Nanos,
        group: GroupId,
        standstill: Option<Standstill>,
        out: &mut impl LeafOutput,
    ) {
        let Some(group) = self.groups.get_mut(&group).filter(|g| !g.is_freed() && g.failed.is_none()) else { return };
        group.board.set(standstill);
        group.board.tell(&self.edge, &group.name, now, out);
    }

    /// The driver has found out, over the memory of its host or over another group, why a group
    /// cannot go on. All its members are told.
    pub fn report(&mut self, now: Nanos, group: GroupId, fault: Fault, out: &mut impl LeafOutput) {
        let Some(state) = self.groups.get_mut(&group).filter(|g| !g.is_freed() && g.failed.is_none()) else { return };
        state.report(&self.edge, fault, out);
        self.settle(group, out);
        self.catch_up(now, out);
    }

    /// Whether an operation succeeds at every member or at none.
    pub fn is_strict(&self) -> bool {
        self.edge.config.strict
    }

    /// Why a group has failed, if it has.
    pub fn fault_of(&self, group: GroupId) -> Option<Fault> {
        self.groups.get(&group)?.failed
    }

    /// Where the payload of this frame belongs, so that a driver can read it straight to there. The
    /// frame is parsed but not yet authenticated. `None` means that the payload belongs nowhere and
    /// has to be read aside. This changes nothing: `on_frame` decides later by calling `deliver`.
    pub fn destination(&self, header: &Header) -> Option<Slice> {
        let config = &self.edge.config;
        let ours = header.job == config.job && header.epoch == config.epoch;
        if header.kind != Kind::Result || header.payload_len == 0 || !ours {
            return None;
        }
        let group = self.groups.get(&self.find(header)?)?;
        let operation =
            if header.is_stream() { group.streams.lacking(header.seq) } else { group.datagrams.lacking(header.seq) }?;
        operation.result_slice(header)
    }

    /// Where the payload of a stream's frame that has not come yet will belong; `None` if no such
    /// frame can come. It is like `destination`, but results between the next one and this one may
    /// still be missing.
    pub fn foresee(&self, header: &Header) -> Option<Slice> {
        let group = self.groups.get(&self.find(header)?)?;
        group.streams.awaited(header.seq)?.result_slice(header)
    }

    /// An authenticated frame came from the node. This calls `deliver` at most once, for the
    /// payload of this frame.
    pub fn on_frame(&mut self, now: Nanos, path: Path, header: &Header, body: Body, out: &mut impl LeafOutput) {
        // What is of another epoch says nothing of the node of this one.
        if header.job != self.edge.config.job || header.epoch != self.edge.config.epoch {
            return out.note(Note::Violation);
        }
        if let Some(liveness) = &mut self.link {
            liveness.heard(now);
        }
        if path == Path::Stream {
            self.edge.signs += 1;
        }
        if header.kind == Kind::Result {
            self.fruitless = 0;
        }
        match (header.kind, path, body) {
            (Kind::Heartbeat, Path::Stream, _) => self.answer_heartbeat(now, out),
            (Kind::Ready, Path::Stream, Body::Ready(key, start)) => self.on_ready(now, header, (&key, start), out),
            (Kind::Refused, Path::Stream, Body::Refused(key, fault)) => {
                self.on_refused(&key, (fault, Marks::of(header)), out);
            }
            (Kind::Ask, Path::Stream, Body::Ask(key)) => self.on_ask(key, out),
            (Kind::Move, Path::Stream, Body::Move(placement)) if self.edge.config.recovers => out.move_to(&placement),
            (Kind::Freed, Path::Stream, _) => self.on_freed(header, out),
            (_, _, body) => self.on_group_frame(now, path, header, body, out),
        }
        self.catch_up(now, out);
    }

    /// A stream connection of this epoch is open and authenticated. The first frame tells the node
    /// that this rank knows. In a new epoch all groups are joined again, in the order in which they
    /// were made.
    pub fn on_link_up(&mut self, now: Nanos, epoch: Epoch, out: &mut impl LeafOutput) {
        self.edge.config.epoch = epoch;
        let peer = Peer::node(self.edge.config.recovers.then_some(self.fruitless));
        self.link = Some(Liveness::new(now, peer));
        self.fruitless = self.fruitless.saturating_add(1);
        self.next_tick = now + self.edge.config.limits.heartbeat;
        self.beat(now, out);
        self.join_all(out);
    }

    /// The stream connection is gone. If the job goes on in another epoch, all groups wait for it,
    /// else they fail.
    pub fn on_link_down(&mut self, out: &mut impl LeafOutput) {
        if !self.edge.config.recovers {
            return self.give_up(out);
        }
        self.link = None;
        self.next_tick = Nanos::NEVER;
        self.armed.clear();
        self.groups.values_mut().for_each(|group| group.armed = false);
        self.joining.clear();
        self.by_index.clear();
        self.left_behind.clear();
        self.concluded.suspend();
        self.untold.values_mut().for_each(|said| *said = false);
        for group in self.groups.values_mut() {
            group.suspend();
        }
    }

    /// The rank goes to another placement for a reason that the node above does not know. The
    /// driver writes this to the old connection, and closes that behind it: else the node would
    /// take the rank for dead.
    pub fn move_to(&self, placement: &Placement, out: &mut impl LeafOutput) {
        let body = Body::Move(placement.clone());
        out.transmit(Path::Stream, &self.edge.header(Kind::Move), Payload::Body(&body));
    }

    /// No node will be above this rank any more, so every group fails.
    pub fn give_up(&mut self, out: &mut impl LeafOutput) {
        self.link = None;
        self.lost = true;
        self.concluded = Concluded::default();
        self.untold.clear();
        self.next_tick = Nanos::NEVER;
        let fault = self.edge.fault(Reason::NodeDead);
        self.joining.clear();
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in ids {
            if let Some(group) = self.groups.get_mut(&id) {
                group.fail(fault, Marks::default(), out);
                if group.is_gone() {
                    self.remove(id);
                }
            }
        }
    }

    /// The clock has reached `next_deadline`.
    pub fn on_timer(&mut self, now: Nanos, out: &mut impl LeafOutput) {
        if now >= self.next_tick {
            let limits = self.edge.config.limits;
            let tick = Tick { due: self.next_tick, now };
            let need = self.link.as_mut().map_or(Need::Nothing, |link| link.need(tick, &limits));
            let in_doubt = self.link.is_some_and(|link| link.is_in_doubt());
            self.next_tick = next_tick(now, in_doubt, &limits);
            match need {
                Need::Nothing => {}
                Need::Heartbeat => self.beat(now, out),
                Need::Dead => self.on_link_down(out),
            }
        }
        let probing = self.armed.iter().filter_map(|id| self.groups.get(id));
        let longest = rtt::longest_pause(probing.filter(|group| group.datagrams.deadline() != Nanos::NEVER).count());
        let (groups, edge, round_trip) = (&mut self.groups, &self.edge, &mut self.round_trip);
        let mut given_up = Vec::new();
        self.armed.retain(|id| {
            let Some(group) = groups.get_mut(id) else { return false };
            if group.failed.is_none() {
                group.tell_marks(edge, now, out);
                let mut at =
                    At { edge, name: &group.name, group: *id, now, round_trip: &mut *round_trip, out: &mut *out };
                if let Some(reason) = group.datagrams.on_timer(&mut at, longest) {
                    group.give_up(edge, reason, out);
                    given_up.push(*id);
                }
            }
            group.armed = group.deadline() != Nanos::NEVER;
            group.armed
        });
        for id in given_up {
            self.settle(id, out);
        }
        self.catch_up(now, out);
    }

    /// The kernel knows that a datagram with this header is too long for the way to the node.
    pub fn on_too_long(&mut self, now: Nanos, header: &Header, out: &mut impl LeafOutput) {
        let Some(id) = self.find(header) else { return };
        if let Some(group) = self.groups.get_mut(&id).filter(|group| group.failed.is_none()) {
            group.give_up(&self.edge, Reason::DatagramTooLong, out);
        }
        self.settle(id, out);
        self.catch_up(now, out);
    }

    /// When this rank next judges whether the node is still there. The driver reads all that has
    /// come before that time.
    pub fn next_judgement(&self) -> Nanos {
        self.next_tick
    }

    /// When `on_timer` wants to be called, for probes, marks and heartbeats.
    pub fn next_deadline(&self) -> Nanos {
        let timers = self.armed.iter().filter_map(|id| self.groups.get(id)).map(Group::deadline);
        timers.min().unwrap_or(Nanos::NEVER).min(self.next_tick)
    }

    /// The bytes of results that will come over the stream before any other frame on it matters to
    /// this rank: those for what it has sent, and those for the whole operation. A thread that
    /// waits for the stream may sleep until part of them is there.
    pub fn results_due(&self) -> (u64, u64) {
        if self.asking > 0 || !self.joining.is_empty() {
            return (0, 0);
        }
        let due = |id: GroupId| self.groups.get(&id).and_then(Group::due).unwrap_or_default();
        self.streaming.ids().map(due).min().unwrap_or_default()
    }

    /// Whether nothing of this rank's is under way over the stream, and yet a word may come there
    /// that it has to answer at once: the node may ask for a lease back that no operation uses.
    pub fn may_be_revoked(&self) -> bool {
        self.holding > 0 && self.asking == 0 && self.streaming.is_empty() && !self.lost
    }

    /// The number of operations that are posted and not complete.
    pub fn outstanding(&self) -> usize {
        self.groups.values().map(Group::outstanding).sum()
    }

    /// Whether the node above is gone for good. Nothing works any more then.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether there is no connection now, and one of the next epoch is to come. The node above is
    /// gone, because its connection is lost or it was silent for too long.
    pub fn is_detached(&self) -> bool {
        self.link.is_none() && self.edge.config.recovers && !self.lost
    }

    /// This rank has done so many operations over boards. The node hears of it with the next
    /// heartbeat.
    #[inline]
    pub fn done_at_boards(&mut self, operations: u64) {
        self.at_boards = operations;
    }

    /// Whether a group that was ready is not yet whole again in this epoch.
    pub fn is_rejoining(&self) -> bool {
        self.groups.values().any(Group::is_rejoining)
    }

    /// The number of groups that the program has freed, and for which this rank has to stay all the
    /// same: other members have not freed them, and may lack a result.
    pub fn groups_left_behind(&self) -> usize {
        self.groups.values().filter(|group| group.is_freed()).count()
    }

    /// Whether this rank has to stay because others may ask it how a group has ended.
    pub fn may_be_asked(&self) -> bool {
        self.concluded.is_awaited() || !self.untold.is_empty()
    }

    fn beat(&mut self, now: Nanos, out: &mut impl LeafOutput) {
        if let Some(liveness) = &mut self.link {
            liveness.spoke(now);
            let header = Header { op_seq: self.at_boards, ..self.edge.header(Kind::Heartbeat) };
            out.transmit(Path::Stream, &header, Payload::None);
        }
    }

    fn answer_heartbeat(&mut self, now: Nanos, out: &mut impl LeafOutput) {
        if self.link.is_some_and(|liveness| liveness.owes_answer(now, &self.edge.config.limits)) {
            self.beat(now, out);
        }
    }

    fn find(&self, header: &Header) -> Option<GroupId> {
        match self.by_index.get(header.group.0 as usize) {
            Some(Some((generation, id))) if *generation == header.generation => Some(*id),
            // One that the program has freed may have lost its index to another.
            _ => self.left_behind.get(&(header.group, header.generation)).copied(),
        }
    }

    fn on_ready(&mut self, now: Nanos, header: &Header, (key, start): (&GroupKey, Marks), out: &mut impl LeafOutput) {
        let at = header.group.0 as usize;
        if at >= self.edge.config.limits.indices() {
            return out.note(Note::Violation);
        }
        // One that waits in line behind groups that this rank has yet to leave was not asked for.
        let was_asked_for = |id: &GroupId| self.groups.get(id).is_none_or(|group| group.joined);
        let Some(id) = self.joining.get(key).copied().filter(was_asked_for) else { return out.note(Note::Violation) };
        self.joining.remove(key);
        let name = Some((header.group, header.generation));
        let Some(group) = self.groups.get_mut(&id) else { return self.decline(key, &name, out) };
        if self.by_index.len() <= at {
            self.by_index.resize(at + 1, None);
        }
        self.by_index[at] = Some((header.generation, id));
        group.name = name;
        if !group.resume(start, out) {
            out.note(Note::Violation);
            group.give_up(&self.edge, Reason::Protocol, out);
        }
        if group.step(Event::Ready) == Some(State::Ready) {
            out.group_ready(id);
        }
        if group.is_gone() {
            return self.settle(id, out);
        }
        if group.is_freed() {
            self.leave(id, out);
            if !self.edge.config.recovers {
                return;
            }
        } else if group.failed.is_none() {
            group.board.tell(&self.edge, &group.name, now, out);
        } else {
            group.report_late(&self.edge, out);
        }
        self.pump(now, id, out);
    }

    /// The node has made a group that has failed at this rank, and that the program has freed,
    /// since it was asked for. The others hear that nothing comes from here.
    fn decline(&self, key: &GroupKey, name: &Name, out: &mut impl LeafOutput) {
        if let Some((fault, _)) = self.concluded.of(key) {
            let body = Body::GroupError(fault);
            out.transmit(Path::Stream, &self.edge.group_header(name, Kind::GroupError), Payload::Body(&body));
        }
        out.transmit(Path::Stream, &self.edge.group_header(name, Kind::Leave), Payload::None);
    }

    /// All members have left a group. That cannot be before this rank has said that it has: till
    /// then its own operations may not be over.
    fn on_freed(&mut self, header: &Header, out: &mut impl LeafOutput) {
        let name = (header.group, header.generation);
        let Some(id) = self.left_behind.get(&name).copied() else {
            return self.concluded.freed(&Some(name));
        };
        let group = live(&mut self.groups, id);
        if !group.said_left {
            return out.note(Note::Violation);
        }
        group.forget(out);
        group.step(Event::Freed);
        self.remove(id);
    }

    /// Somebody resumes a group. If this rank has done with it, nobody need wait for it.
    fn on_ask(&mut self, key: GroupKey, out: &mut impl LeafOutput) {
        let is_over = self.begun.contains(&key) && !self.groups.values().any(|group| group.key == key);
        if is_over {
            let standing = Standing { resumed: true, some_left: true, all_left: true, freed: true, ..Standing::NEW };
            let (nodes, name) = (RankList::EMPTY, GroupName::default());
            let (fault, heard) = self.concluded.of(&key).unzip();
            let heard = heard.filter(|_| self.edge.config.strict).unwrap_or_default();
            let header = heard.said_by(self.edge.header(Kind::Join));
            let body = Body::Join { key, fault, standing, nodes, name };
            out.transmit(Path::Stream, &header, Payload::Body(&body));
        }
    }

    fn on_refused(&mut self, key: &GroupKey, (fault, mark): (Fault, Marks), out: &mut impl LeafOutput) {
        let strict = self.edge.config.strict;
        if strict {
            self.confirm(key, (fault, mark), out);
        }
        let Some(id) = self.joining.remove(key) else {
            // Under `strict` this may be an answer to what the rank has said of a group with which
            // it has done.
            if !strict {
                out.note(Note::Violation);
            }
            return;
        };
        // It may have failed here before that, and be freed.
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.fail(fault, mark, out);
        if group.is_gone() {
            return self.remove(id);
        }
        self.count(id);
    }

    /// A group was refused under `strict`. If some rank was told of success, this one may be the
    /// only one that hears of it now: another may have gone to the next epoch, and will ask there.
    /// So each joins once more, to say that it knows. They are refused once more when all have done
    /// so, and then none of them has to stay for the others.
    fn confirm(&mut self, key: &GroupKey, (fault, mark): (Fault, Marks), out: &mut impl LeafOutput) {
        let is_answer = self.untold.get(key).copied().unwrap_or(false);
        if is_answer || mark == Marks::default() {
            self.untold.remove(key);
            return self.concluded.is_known(key);
        }
        self.untold.insert(key.clone(), true);
        let standing = Standing { resumed: true, ..Standing::NEW };
        let (key, nodes, name) = (key.clone(), RankList::EMPTY, GroupName::default());
        let header = mark.said_by(self.edge.header(Kind::Join));
        let body = Body::Join { key, fault: Some(fault), standing, nodes, name };
        out.transmit(Path::Stream, &header, Payload::Body(&body));
    }

    /// The program has freed the group. What others may still need is kept until they have freed
    /// it, too.
    fn leave(&mut self, id: GroupId, out: &mut impl LeafOutput) {
        let group = live(&mut self.groups, id);
        group.say_left(&self.edge, out);
        if !self.edge.config.recovers {
            return self.remove(id);
        }
        if let Some(name) = group.name {
            self.left_behind.insert(name, id);
        }
        self.count(id);
    }

    fn remove(&mut self, id: GroupId) {
        let Some(group) = self.groups.remove(&id) else { cannot_happen("a group is removed twice") };
        self.recount(id, group.activity, Activity::None);
        self.room.forget(group.counted);
        if self.edge.config.recovers {
            self.concluded.add(&group, self.edge.config.strict && !self.lost);
        }
        let Some(name) = group.name else { return };
        self.left_behind.remove(&name);
        if let Some(entry) = self.by_index.get_mut(name.0.0 as usize)
            && entry.is_some_and(|(_, at_index)| at_index == id)
        {
            *entry = None;
        }
    }

    fn on_group_frame(&mut self, now: Nanos, path: Path, header: &Header, body: Body, out: &mut impl LeafOutput) {
        let Some(id) = self.find(header) else {
            // A fault of the group may have crossed this rank's Leave on the stream, which is no
            // error.
            if path == Path::Datagram {
                out.note(Note::Duplicate);
            }
            return;
        };
        let group = live(&mut self.groups, id);
        if group.failed.is_some() {
            return;
        }
        let (edge, name, round_trip) = (&self.edge, &group.name, &mut self.round_trip);
        let mut at = At { edge, name, group: id, now, round_trip, out: &mut *out };
        let (datagrams, streams) = (&mut group.datagrams, &mut group.streams);
        match (header.kind, path, body) {
            (Kind::Mark, Path::Stream, _) if header.is_stream() => streams.on_mark(&mut at, header.mark),
            (Kind::Mark, Path::Stream, _) => datagrams.on_mark(&mut at, header.mark),
            // What else crosses this rank's Leave needs no answer.
            _ if group.said_left => {}
            (Kind::Result, Path::Datagram, _) if !header.is_stream() => datagrams.on_result(&mut at, header),
            (Kind::Held, Path::Datagram, Body::Held(held)) => {
                if let Some(reason) = datagrams.on_held(&mut at, &held) {
                    group.give_up(edge, reason, out);
                }
            }
            (Kind::Result, Path::Stream, _) if header.is_stream() => {
                if streams.on_result(&mut at, header) {
                    self.streaming.result(id);
                }
            }
            (Kind::Credit, Path::Stream, _) => streams.on_credit(header.seq),
            (Kind::Grant, Path::Stream, _) => streams.on_grant(header.seq),
            (Kind::Revoke, Path::Stream, _) => streams.on_revoke(&mut at, header.seq),
            (Kind::LeaseEnd, Path::Stream, _) => streams.on_lease_end(header.seq),
            (Kind::GroupError, Path::Stream, Body::GroupError(fault)) => group.fail(fault, Marks::of(header), out),
            _ => out.note(Note::Violation),
        }
        if group.is_gone() {
            return self.settle(id, out);
        }
        self.pump(now, id, out);
    }

    /// The group may have failed. If its program has freed it before, the rank has nothing to stay
    /// for any more, and says so to the node.
    fn settle(&mut self, id: GroupId, out: &mut impl LeafOutput) {
        let Some(group) = self.groups.get(&id).filter(|group| group.is_gone()) else { return self.count(id) };
        if !group.said_left {
            out.transmit(Path::Stream, &group.header(&self.edge, Kind::Leave), Payload::None);
        }
        self.remove(id);
    }

    /// Sends what the windows allow now.
    fn pump(&mut self, now: Nanos, id: GroupId, out: &mut impl LeafOutput) {
        let group = live(&mut self.groups, id);
        self.room.count(group);
        if group.failed.is_some() || group.name.is_none() {
            return self.count(id);
        }
        let (edge, name, round_trip) = (&self.edge, &group.name, &mut self.round_trip);
        let mut at = At { edge, name, group: id, now, round_trip, out: &mut *out };
        let is_open = self.room.is_open();
        group.datagrams.pump(&mut at, is_open);
        group.streams.pump(&mut at, self.streaming.sharers(id), is_open);
        if self.edge.config.strict {
            // Other ranks wait for it.
            group.tell_marks(&self.edge, now, out);
        }
        if !group.armed && group.deadline() != Nanos::NEVER {
            group.armed = true;
            self.armed.push(id);
        }
        group.say_left(&self.edge, out);
        let (before, now) = group.change_activity();
        self.room.count(group);
        self.recount(id, before, now);
    }

    /// Whether the program has freed a group in this epoch that this rank has not left yet, because
    /// it gives others what they lack. Till then it asks for no group that it has not asked for
    /// before: it would come before the room in the quota that it is to have.
    fn owes_a_leave(&self) -> bool {
        self.groups.values().any(Group::owes_a_leave)
    }

    /// Asks for all groups for which it has not asked in this epoch, in the order in which they
    /// were made.
    fn join_all(&mut self, out: &mut impl LeafOutput) {
        self.joins_wait = false;
        for (id, group) in self.groups.iter_mut().filter(|(_, group)| !group.joined) {
            group.join(&self.edge, out);
            self.joining.insert(group.key.clone(), *id);
        }
    }

    /// Goes on with what has waited for events at other groups: creations that came before this
    /// rank had left what its program has freed, and all that had no room.
    fn catch_up(&mut self, now: Nanos, out: &mut impl LeafOutput) {
        if self.joins_wait && !self.is_detached() && !self.owes_a_leave() {
            self.join_all(out);
        }
        if self.room.take_reopened() {
            let ids: Vec<GroupId> = self.groups.keys().copied().collect();
            ids.into_iter().for_each(|id| self.pump(now, id, out));
        }
    }

    /// Counts the group anew after its activity, or what it keeps, may have changed.
    fn count(&mut self, id: GroupId) {
        let group = live(&mut self.groups, id);
        let (before, now) = group.change_activity();
        self.room.count(group);
        self.recount(id, before, now);
    }

    fn recount(&mut self, id: GroupId, before: Activity, now: Activity) {
        if before == now {
            return;
        }
        match before {
            Activity::None => {}
            Activity::Asks => self.asking -= 1,
            Activity::Holds => self.holding -= 1,
            Activity::Streams => self.streaming.remove(id),
        }
        match now {
            Activity::None => {}
            Activity::Asks => self.asking += 1,
            Activity::Holds => self.holding += 1,
            Activity::Streams => self.streaming.add(id),
        }
    }
}

/// A group that the caller knows to be there.
#[inline]
#[track_caller]
fn live(groups: &mut BTreeMap<GroupId, Group>, id: GroupId) -> &mut Group {
    match groups.get_mut(&id) {
        Some(group) => group,
        None => cannot_happen("a group is gone while it is worked on"),
    }
}
