//! The leaf: one rank of one job.
//!
//! Map: `at` (an event at a group), `group` (one group), `operation` (how an operation is cut),
//! `llt` (datagrams, with the only retransmission timers of the system), `rtt` (how long a probe
//! takes), `sat` (streams and the lease), `streaming` (who shares the flight), `config` and
//! `output` (what the driver says and is asked for). Tables of transitions: `phase` of the lease,
//! `state` of a group.
//!
//! ```text
//!   create_group: Joining --Ready--> Ready --GroupError / link lost--> Failed --freed--> Gone
//!                    |`---Refused / link lost---> Failed
//!                    `---freed---> Abandoned --Ready / Refused / link lost--> Gone
//! ```

mod at;
mod config;
mod group;
mod llt;
mod operation;
mod output;
mod phase;
mod rtt;
mod sat;
mod state;
mod streaming;

pub use config::LeafConfig;
pub use output::{GroupId, LeafOutput, Note, OpId, Payload, Slice};

use std::collections::{BTreeMap, VecDeque};

use trib_wire::{Body, Fault, GroupIndex, GroupKey, GroupName, Header, Kind, RankList, Reason, Signature};

use crate::liveness::{Liveness, Need, Peer};
use crate::window;
use crate::{Nanos, Path};
use at::At;
use group::{Edge, Group};
use operation::{Cut, Operation};
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
    /// The vector has 2^63 bytes or more.
    TooLong,
    /// The operator is not defined for the type.
    Unsupported,
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
}

/// The state machine of one rank of one job.
pub struct LeafCore {
    edge: Edge,
    groups: BTreeMap<GroupId, Group>,
    /// The groups in the making, by key. A verdict of the node is about the oldest of its key.
    joining: BTreeMap<GroupKey, VecDeque<GroupId>>,
    /// The groups by the node's index for them.
    by_index: Vec<Option<GroupId>>,
    /// The groups that may have a probe timer running.
    armed: Vec<GroupId>,
    /// The groups that stream now.
    streaming: Streaming,
    /// The number of groups that wait for the lock.
    asking: u64,
    /// The number of groups that have it and no operation.
    holding: u64,
    next_group: u64,
    next_op: u64,
    link: Option<Liveness>,
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
            by_index: Vec::new(),
            armed: Vec::new(),
            streaming: Streaming::new(config.limits.flight),
            edge: Edge { config, signs: 0 },
            asking: 0,
            holding: 0,
            next_group: 0,
            next_op: 0,
            link: None,
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
        let NewGroup { members, tag, name } = group;
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
        let key = GroupKey { tag, members };
        let body = Body::Join { key: key.clone(), fault: None, nodes: RankList::EMPTY, name };
        out.transmit(Path::Stream, &self.edge.header(Kind::Join), Payload::Body(&body));
        self.groups.insert(id, Group::new(id, key.clone(), me, &self.edge));
        self.joining.entry(key).or_default().push_back(id);
        Ok(())
    }

    /// Leaves the group. Its operations that are still outstanding complete with a fault.
    pub fn free_group(&mut self, _now: Nanos, group: GroupId, out: &mut impl LeafOutput) {
        let Some(state) = self.groups.get_mut(&group) else { return };
        state.fail_operations(self.edge.fault(Reason::MemberLeft), out);
        if state.step(Event::Free) == Some(State::Gone) {
            self.leave(group, out);
        }
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
        let Post { id, number, signature } = *post;
        let state = self.groups.get_mut(&group).filter(|g| !g.is_abandoned()).ok_or(LeafError::UnknownGroup)?;
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
        let cut = Cut::new(&self.edge.config.limits, signature.layout(), total);
        let operation = Operation::new(id, signature, state.seat, state.take_number(number), cut);
        match cut.path {
            Path::Stream => state.streams.post(operation),
            Path::Datagram => state.datagrams.post(operation),
        }
        self.pump(now, group, out);
        Ok(cut.path)
    }

    /// Where the payload of this frame belongs, so that a driver can read it straight to there. The
    /// frame is parsed but not yet authenticated. `None` means that the payload belongs nowhere and
    /// has to be read aside. This changes nothing: `on_frame` decides later by calling `deliver`.
    pub fn place(&self, header: &Header) -> Option<Slice> {
        let config = &self.edge.config;
        let ours = header.job == config.job && header.epoch == config.epoch;
        if header.kind != Kind::Result || header.payload_len == 0 || !ours {
            return None;
        }
        let group = self.groups.get(&self.find(header)?)?;
        let operation =
            if header.is_stream() { group.streams.expected(header.seq) } else { group.datagrams.expected(header.seq) }?;
        operation.result_slice(header)
    }

    /// Where the payload of a stream's frame that has not come yet will belong; `None` if no such
    /// frame can come. It is like `place`, but results between the next one and this one may still
    /// be missing.
    pub fn foresee(&self, header: &Header) -> Option<Slice> {
        let group = self.groups.get(&self.find(header)?)?;
        group.streams.awaited(header.seq)?.result_slice(header)
    }

    /// An authenticated frame came from the node. This calls `deliver` at most once, for the
    /// payload of this frame.
    pub fn on_frame(&mut self, now: Nanos, path: Path, header: &Header, body: Body, out: &mut impl LeafOutput) {
        if let Some(liveness) = &mut self.link {
            liveness.heard();
        }
        if path == Path::Stream {
            self.edge.signs += 1;
        }
        if header.job != self.edge.config.job || header.epoch != self.edge.config.epoch {
            return out.note(Note::Violation);
        }
        match (header.kind, path, body) {
            (Kind::Heartbeat, Path::Stream, _) => self.answer_heartbeat(now, out),
            (Kind::Ready, Path::Stream, Body::Ready(key)) => self.on_ready(now, header, &key, out),
            (Kind::Refused, Path::Stream, Body::Refused(key, fault)) => self.on_refused(&key, fault, out),
            (_, _, body) => self.on_group_frame(now, path, header, body, out),
        }
    }

    /// The stream connection is open and authenticated. The first frame tells the node that this
    /// rank knows.
    pub fn on_link_up(&mut self, now: Nanos, out: &mut impl LeafOutput) {
        self.link = Some(Liveness::new(now, Peer::Node));
        self.next_tick = now + self.edge.config.limits.heartbeat;
        self.beat(now, out);
    }

    /// The stream connection is gone, so every group fails.
    pub fn on_link_down(&mut self, _now: Nanos, out: &mut impl LeafOutput) {
        self.link = None;
        self.lost = true;
        self.next_tick = Nanos::NEVER;
        let fault = self.edge.fault(Reason::NodeDead);
        self.joining.clear();
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in ids {
            if let Some(group) = self.groups.get_mut(&id) {
                group.fail(fault, out);
                if group.is_gone() {
                    self.groups.remove(&id);
                }
            }
        }
    }

    /// The clock has reached `next_deadline`.
    pub fn on_timer(&mut self, now: Nanos, out: &mut impl LeafOutput) {
        if now >= self.next_tick {
            self.next_tick = now + self.edge.config.limits.heartbeat;
            let limits = self.edge.config.limits;
            match self.link.as_mut().map_or(Need::Nothing, |l| l.need(now, &limits)) {
                Need::Nothing => {}
                Need::Heartbeat => self.beat(now, out),
                Need::Dead => self.on_link_down(now, out),
            }
        }
        let longest = rtt::longest_pause(self.armed.len());
        let (groups, edge, round_trip) = (&mut self.groups, &self.edge, &mut self.round_trip);
        let mut given_up = Vec::new();
        self.armed.retain(|id| {
            let Some(group) = groups.get_mut(id) else { return false };
            if group.failed.is_none() {
                let mut at =
                    At { edge, name: &group.name, group: *id, now, round_trip: &mut *round_trip, out: &mut *out };
                if let Some(reason) = group.datagrams.on_timer(&mut at, longest) {
                    group.give_up(edge, reason, out);
                    given_up.push(*id);
                }
            }
            group.datagrams.deadline() != Nanos::NEVER
        });
        for id in given_up {
            self.count(id);
        }
    }

    /// The kernel knows that a datagram with this header is too long for the way to the node.
    pub fn on_too_long(&mut self, header: &Header, out: &mut impl LeafOutput) {
        let Some(id) = self.find(header) else { return };
        if let Some(group) = self.groups.get_mut(&id).filter(|group| group.failed.is_none()) {
            group.give_up(&self.edge, Reason::DatagramTooLong, out);
        }
        self.count(id);
    }

    /// When this rank next judges whether the node is still there. The driver reads all that has
    /// come before that time.
    pub fn next_judgement(&self) -> Nanos {
        self.next_tick
    }

    /// When `on_timer` wants to be called, for probes and heartbeats.
    pub fn next_deadline(&self) -> Nanos {
        let probes = self.armed.iter().filter_map(|id| self.groups.get(id)).map(|g| g.datagrams.deadline());
        probes.min().unwrap_or(Nanos::NEVER).min(self.next_tick)
    }

    /// The bytes of results that will come over the stream before any other frame on it matters to
    /// this rank: those for what it has sent, and those for the whole operation. A thread that
    /// waits for the stream may sleep until part of them is there.
    pub fn results_due(&self) -> (u64, u64) {
        if self.asking > 0 || !self.joining.is_empty() {
            return (0, 0);
        }
        let due = |id: GroupId| self.groups.get(&id).and_then(|group: &Group| group.streams.due()).unwrap_or_default();
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

    /// Whether the node above is gone, because its connection is lost or it was silent for too
    /// long. Nothing works any more then.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    fn beat(&mut self, now: Nanos, out: &mut impl LeafOutput) {
        if let Some(liveness) = &mut self.link {
            liveness.spoke(now);
            out.transmit(Path::Stream, &self.edge.header(Kind::Heartbeat), Payload::None);
        }
    }

    fn answer_heartbeat(&mut self, now: Nanos, out: &mut impl LeafOutput) {
        if self.link.is_some_and(|liveness| liveness.owes_answer(now, &self.edge.config.limits)) {
            self.beat(now, out);
        }
    }

    fn find(&self, header: &Header) -> Option<GroupId> {
        let id = (*self.by_index.get(header.group.0 as usize)?)?;
        let name = self.groups.get(&id)?.name?;
        (name == (header.group, header.generation)).then_some(id)
    }

    fn on_ready(&mut self, now: Nanos, header: &Header, key: &GroupKey, out: &mut impl LeafOutput) {
        let at = header.group.0 as usize;
        if at >= 2 * self.edge.config.limits.groups as usize {
            return out.note(Note::Violation);
        }
        let Some(id) = self.take_joining(key) else { return out.note(Note::Violation) };
        if self.by_index.len() <= at {
            self.by_index.resize(at + 1, None);
        }
        self.by_index[at] = Some(id);
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.name = Some((header.group, header.generation));
        if group.step(Event::Ready) == Some(State::Gone) {
            return self.leave(id, out);
        }
        out.group_ready(id);
        self.pump(now, id, out);
    }

    fn on_refused(&mut self, key: &GroupKey, fault: Fault, out: &mut impl LeafOutput) {
        let Some(id) = self.take_joining(key) else { return out.note(Note::Violation) };
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.fail(fault, out);
        if group.is_gone() {
            self.groups.remove(&id);
        }
    }

    fn take_joining(&mut self, key: &GroupKey) -> Option<GroupId> {
        let line = self.joining.get_mut(key)?;
        let id = line.pop_front();
        if line.is_empty() {
            self.joining.remove(key);
        }
        id
    }

    fn leave(&mut self, id: GroupId, out: &mut impl LeafOutput) {
        let Some(group) = self.groups.remove(&id) else { return };
        self.recount(id, group.activity, Activity::None);
        if let Some((index, _)) = group.name {
            self.forget_index(index, id);
            if !self.lost {
                out.transmit(Path::Stream, &group.header(&self.edge, Kind::Leave), Payload::None);
            }
        }
    }

    fn forget_index(&mut self, index: GroupIndex, id: GroupId) {
        if let Some(entry) = self.by_index.get_mut(index.0 as usize)
            && *entry == Some(id)
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
        let Some(group) = self.groups.get_mut(&id) else { return };
        if group.failed.is_some() {
            return;
        }
        let (edge, name, round_trip) = (&self.edge, &group.name, &mut self.round_trip);
        let mut at = At { edge, name, group: id, now, round_trip, out: &mut *out };
        let (datagrams, streams) = (&mut group.datagrams, &mut group.streams);
        match (header.kind, path, body) {
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
            (Kind::GroupError, Path::Stream, Body::GroupError(fault)) => group.fail(fault, out),
            _ => out.note(Note::Violation),
        }
        self.pump(now, id, out);
    }

    /// Sends what the windows allow now.
    fn pump(&mut self, now: Nanos, id: GroupId, out: &mut impl LeafOutput) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        if group.failed.is_some() || group.name.is_none() {
            return self.count(id);
        }
        let (edge, name, round_trip) = (&self.edge, &group.name, &mut self.round_trip);
        let mut at = At { edge, name, group: id, now, round_trip, out };
        let idle = group.datagrams.deadline() == Nanos::NEVER;
        group.datagrams.pump(&mut at);
        group.streams.pump(&mut at, self.streaming.sharers(id));
        if idle && group.datagrams.deadline() != Nanos::NEVER && !self.armed.contains(&id) {
            self.armed.push(id);
        }
        self.count(id);
    }

    /// Counts the group anew after its activity may have changed.
    fn count(&mut self, id: GroupId) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let now = if group.failed.is_some() { Activity::None } else { group.streams.activity() };
        let before = core::mem::replace(&mut group.activity, now);
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
