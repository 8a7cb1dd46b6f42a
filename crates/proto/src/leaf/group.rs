//! One group of this rank.

use trib_wire::{
    Body, Fault, Generation, GroupIndex, GroupKey, GroupName, Header, Kind, Marks, RankList, Reason, Standing,
};

use super::board::Board;
use super::config::LeafConfig;
use super::llt::Datagrams;
use super::operation::Seat;
use super::output::{GroupId, LeafOutput, Payload};
use super::sat::{Activity, Streams};
use super::state::{Event, State, transition};
use crate::Path;
use crate::time::Nanos;

/// The rank's only edge, which leads to its node.
pub(super) struct Edge {
    pub(super) config: LeafConfig,
    /// Frames that the stream has brought: signs of life.
    pub(super) signs: u64,
}

/// What the node calls the group; `None` while it is in the making.
pub(super) type Name = Option<(GroupIndex, Generation)>;

impl Edge {
    pub(super) fn header(&self, kind: Kind) -> Header {
        let LeafConfig { job, epoch, node, child, .. } = self.config;
        Header { witness: self.config.rank.0, ..Header::new(kind, job, epoch, node, child) }
    }

    pub(super) fn group_header(&self, name: &Name, kind: Kind) -> Header {
        let (group, generation) = name.unwrap_or_default();
        Header { group, generation, ..self.header(kind) }
    }

    /// A fault that this side found out itself.
    pub(super) fn fault(&self, reason: Reason) -> Fault {
        let LeafConfig { node, rank, .. } = self.config;
        Fault { reason, node, rank_a: rank, rank_b: rank, signatures: None }
    }
}

pub(super) struct Group {
    pub(super) id: GroupId,
    pub(super) key: GroupKey,
    /// What the program calls it.
    pub(super) title: GroupName,
    /// It is made for another group.
    pub(super) companion: bool,
    /// Whether the node has been asked for it in this epoch.
    pub(super) joined: bool,
    /// Whether its creation was begun in an earlier epoch.
    pub(super) resumed: bool,
    /// Whether this rank has left it in this epoch, and whether it has said when it joined that it
    /// will.
    pub(super) said_left: bool,
    said_freed: bool,
    /// Whether the node has been told in this epoch why the group cannot go on, and its root is to
    /// decide.
    reported: bool,
    /// Whether it has failed while the node was asked for it.
    owes_a_report: bool,
    pub(super) name: Name,
    pub(super) seat: Seat,
    state: State,
    pub(super) failed: Option<Fault>,
    pub(super) datagrams: Datagrams,
    pub(super) streams: Streams,
    pub(super) board: Board,
    /// Whether the rank looks at its timers.
    pub(super) armed: bool,
    /// How the rank counts this group: as one that asks for the lock, as one that streams, or as
    /// neither.
    pub(super) activity: Activity,
    /// The bytes of copies that the rank counts for it.
    pub(super) counted: u64,
    op_seq: u64,
}

impl Group {
    pub(super) fn new(id: GroupId, (key, title): (GroupKey, GroupName), me: u32, edge: &Edge) -> Group {
        Group {
            id,
            reported: false,
            owes_a_report: false,
            joined: false,
            resumed: false,
            said_left: false,
            said_freed: false,
            name: None,
            seat: Seat { size: key.members.len(), me },
            key,
            title,
            companion: false,
            state: State::Joining,
            failed: None,
            datagrams: Datagrams::new(&edge.config),
            streams: Streams::new(&edge.config),
            board: Board::default(),
            armed: false,
            activity: Activity::None,
            counted: 0,
            op_seq: 0,
        }
    }

    /// When one of its timers is due.
    pub(super) fn deadline(&self) -> Nanos {
        self.datagrams.deadline().min(self.datagrams.tidings.due()).min(self.streams.tidings.due())
    }

    /// The bytes that the driver keeps for other ranks.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.datagrams.kept_bytes() + self.streams.kept_bytes()
    }

    /// Takes an event. Returns the state that follows, if the event leads to one.
    pub(super) fn step(&mut self, event: Event) -> Option<State> {
        let next = transition(self.state, event);
        self.state = next.unwrap_or(self.state);
        next
    }

    /// Whether the rank can forget the group.
    pub(super) fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// Whether the program has freed it.
    pub(super) fn is_freed(&self) -> bool {
        matches!(self.state, State::Abandoned | State::Left | State::Gone)
    }

    /// Whether it was ready, and waits for the others in a new epoch.
    pub(super) fn is_rejoining(&self) -> bool {
        self.state == State::Ready && self.name.is_none()
    }

    /// Asks the node to make the group, or to go on with it in a new epoch.
    pub(super) fn join(&mut self, edge: &Edge, out: &mut impl LeafOutput) {
        self.joined = true;
        self.said_freed = self.is_freed();
        let (exists, freed) = (matches!(self.state, State::Ready | State::Left), self.said_freed);
        let (resumed, companion) = (self.resumed, self.companion);
        let standing = Standing { resumed, exists, freed, companion, marks: self.held(), ..Standing::NEW };
        let body = Body::Join {
            key: self.key.clone(),
            fault: self.failed,
            standing,
            nodes: RankList::EMPTY,
            name: self.title.clone(),
        };
        let heard = if edge.config.strict { self.heard() } else { Marks::default() };
        let header = heard.said_by(edge.header(Kind::Join));
        out.transmit(Path::Stream, &header, Payload::Body(&body));
    }

    /// This rank has the results below these numbers.
    fn held(&self) -> Marks {
        Marks { fragments: self.datagrams.low(), segments: self.streams.low() }
    }

    /// Every member has the results below these numbers, as far as this rank has heard. Under
    /// `strict` it has told its program so, too.
    pub(super) fn heard(&self) -> Marks {
        Marks { fragments: self.datagrams.tidings.stable(), segments: self.streams.tidings.stable() }
    }

    /// The connection is gone, and the next one is of a new epoch.
    pub(super) fn suspend(&mut self) {
        self.resumed |= self.joined;
        (self.name, self.joined, self.reported) = (None, false, false);
        (self.said_left, self.said_freed, self.owes_a_report) = (false, false, false);
        self.datagrams.suspend();
        self.streams.suspend();
    }

    /// The group exists in this epoch, which begins with these pieces. Returns false if it cannot.
    pub(super) fn resume(&mut self, start: Marks, out: &mut impl LeafOutput) -> bool {
        self.datagrams.resume(start.fragments, out) && self.streams.resume(start.segments, out)
    }

    /// Tells the node that the program has freed the group, if all that others need of this rank in
    /// this epoch has been given.
    ///
    /// Under `strict` this rank may hold back others on one path while it waits for them on the
    /// other one. Two such ranks would wait for each other, and neither would leave. So it tells
    /// the group's root, which decides.
    pub(super) fn say_left(&mut self, edge: &Edge, out: &mut impl LeafOutput) {
        let is_due = self.state == State::Left && self.name.is_some() && !self.said_left;
        if !is_due {
            return;
        }
        if self.datagrams.is_idle() && self.streams.is_idle() {
            self.said_left = true;
            // The time has come for all that is left to be said.
            self.tell_marks(edge, Nanos::NEVER, out);
            out.transmit(Path::Stream, &self.header(edge, Kind::Leave), Payload::None);
        } else if edge.config.strict
            && !self.reported
            && (self.datagrams.holds_others_up() || self.streams.holds_others_up())
        {
            self.give_up(edge, Reason::MemberLeft, out);
        }
    }

    /// Whether the program has freed it in this epoch, which has to go on with it. The node will
    /// hear of that later.
    pub(super) fn owes_a_leave(&self) -> bool {
        self.state == State::Left && self.resumed && self.joined && !self.said_left && !self.said_freed
    }

    /// Tells the node which results are here, if it has not heard of all and the time has come.
    pub(super) fn tell_marks(&mut self, edge: &Edge, now: Nanos, out: &mut impl LeafOutput) {
        for tidings in [&mut self.datagrams.tidings, &mut self.streams.tidings] {
            tidings.tell(edge, &self.name, now, out);
        }
    }

    /// Returns the operation's number, which is the given one or else the next, and which part of
    /// an operation it is.
    pub(super) fn take_number(&mut self, known: Option<(u64, u16)>) -> (u64, u16) {
        let (op_seq, lane) = known.unwrap_or((self.op_seq + 1, 0));
        self.op_seq = op_seq;
        (op_seq, lane)
    }

    pub(super) fn header(&self, edge: &Edge, kind: Kind) -> Header {
        edge.group_header(&self.name, kind)
    }

    pub(super) fn outstanding(&self) -> usize {
        self.datagrams.outstanding() + self.streams.outstanding()
    }

    /// Whether an operation waits for nothing but the word that every rank has its results.
    pub(super) fn is_undecided(&self) -> bool {
        self.datagrams.is_undecided() || self.streams.is_undecided()
    }

    /// What this rank does with the stream in this group, or waits for there.
    pub(super) fn activity(&self) -> Activity {
        match self.streams.activity() {
            _ if self.failed.is_some() => Activity::None,
            Activity::None | Activity::Holds if self.is_undecided() => Activity::Asks,
            activity => activity,
        }
    }

    /// Looks at its activity anew. Returns the one before and the one now.
    #[inline]
    pub(super) fn change_activity(&mut self) -> (Activity, Activity) {
        let now = self.activity();
        (core::mem::replace(&mut self.activity, now), now)
    }

    /// The bytes of results still to come, as `Streams::due` says, if no other frame matters.
    pub(super) fn due(&self) -> Option<(u64, u64)> {
        if self.is_undecided() { None } else { self.streams.due() }
    }

    /// The program frees the group: what it has not waited for fails. But what this rank holds may
    /// be over elsewhere, under `strict`, and stays undecided.
    pub(super) fn drop_operations(&mut self, edge: &Edge, now: Nanos, out: &mut impl LeafOutput) {
        let held = self.held();
        let below = if edge.config.strict { held } else { Marks::default() };
        self.fail_operations(below, edge.fault(Reason::MemberLeft), out);
        if edge.config.strict && self.name.is_some() {
            // What was to say so is not sent again, and may have been lost.
            self.datagrams.tidings.hold(now, held.fragments);
            self.streams.tidings.hold(now, held.segments);
            self.tell_marks(edge, now, out);
        }
    }

    /// Fails all operations that end beyond these pieces.
    fn fail_operations(&mut self, below: Marks, fault: Fault, out: &mut impl LeafOutput) {
        let given_up = self.datagrams.abandon(below.fragments).into_iter();
        for op in given_up.chain(self.streams.abandon(below.segments)) {
            out.complete(op, Err(fault));
        }
    }

    /// This rank has found out why the group cannot go on, and tells the others.
    pub(super) fn give_up(&mut self, edge: &Edge, reason: Reason, out: &mut impl LeafOutput) {
        self.report(edge, edge.fault(reason), out);
    }

    /// The group cannot go on for this reason, which the others are told. Under `strict` this rank
    /// waits for the answer of the group's root.
    pub(super) fn report(&mut self, edge: &Edge, fault: Fault, out: &mut impl LeafOutput) {
        let strict = edge.config.strict;
        if self.name.is_none() {
            // A node that is yet to be asked hears of it in the question.
            self.owes_a_report = self.joined;
            return self.fail(fault, Marks::default(), out);
        }
        if !strict || !self.reported {
            out.transmit(Path::Stream, &self.header(edge, Kind::GroupError), Payload::Body(&Body::GroupError(fault)));
        }
        self.reported = true;
        // Nobody can wait for an answer from a node that breaks the protocol.
        if !strict || fault.reason == Reason::Protocol {
            self.fail(fault, Marks::default(), out);
        }
    }

    /// The node has named the group. It hears now why that has failed, if it asked before that.
    pub(super) fn report_late(&mut self, edge: &Edge, out: &mut impl LeafOutput) {
        if let Some(fault) = self.failed.filter(|_| std::mem::take(&mut self.owes_a_report)) {
            out.transmit(Path::Stream, &self.header(edge, Kind::GroupError), Payload::Body(&Body::GroupError(fault)));
        }
    }

    /// The group cannot go on. Every member has the results below `mark`, and nobody will ever hear
    /// more: so the operations that end there succeed, and all others fail.
    pub(super) fn fail(&mut self, fault: Fault, mark: Marks, out: &mut impl LeafOutput) {
        self.datagrams.conclude(self.id, mark.fragments, out);
        self.streams.conclude(self.id, mark.segments, out);
        let next = self.step(Event::Fault);
        if next.is_some() {
            self.failed = Some(fault);
            self.fail_operations(Marks::default(), fault, out);
        }
        if next == Some(State::Failed) {
            out.group_failed(self.id, fault);
        }
        self.forget(out);
    }

    /// Drops all that was kept for other ranks.
    pub(super) fn forget(&mut self, out: &mut impl LeafOutput) {
        self.datagrams.forget(out);
        self.streams.forget(out);
    }
}
