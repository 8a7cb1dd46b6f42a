//! One group of this rank.

use trib_wire::{Body, Fault, Generation, GroupIndex, GroupKey, Header, Kind, Reason};

use super::config::LeafConfig;
use super::llt::Datagrams;
use super::operation::Seat;
use super::output::{GroupId, LeafOutput, Payload};
use super::sat::{Activity, Streams};
use super::state::{Event, State, transition};
use crate::Path;

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
    pub(super) name: Name,
    pub(super) seat: Seat,
    state: State,
    pub(super) failed: Option<Fault>,
    pub(super) datagrams: Datagrams,
    pub(super) streams: Streams,
    /// How the rank counts this group: as one that asks for the lock, as one that streams, or as
    /// neither.
    pub(super) activity: Activity,
    op_seq: u64,
}

impl Group {
    pub(super) fn new(id: GroupId, key: GroupKey, me: u32, edge: &Edge) -> Group {
        let limits = &edge.config.limits;
        Group {
            id,
            name: None,
            seat: Seat { size: key.members.len(), me },
            state: State::Joining,
            failed: None,
            datagrams: Datagrams::new(limits),
            streams: Streams::new(limits),
            activity: Activity::None,
            op_seq: 0,
        }
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

    /// Whether the program has freed it before the node answered.
    pub(super) fn is_abandoned(&self) -> bool {
        self.state == State::Abandoned
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

    pub(super) fn fail_operations(&mut self, fault: Fault, out: &mut impl LeafOutput) {
        for op in self.datagrams.abandon().into_iter().chain(self.streams.abandon()) {
            out.complete(op, Err(fault));
        }
    }

    /// This rank has found out why the group cannot go on, and tells the others.
    pub(super) fn give_up(&mut self, edge: &Edge, reason: Reason, out: &mut impl LeafOutput) {
        let fault = edge.fault(reason);
        out.transmit(Path::Stream, &self.header(edge, Kind::GroupError), Payload::Body(&Body::GroupError(fault)));
        self.fail(fault, out);
    }

    pub(super) fn fail(&mut self, fault: Fault, out: &mut impl LeafOutput) {
        if self.step(Event::Fault) == Some(State::Failed) {
            self.failed = Some(fault);
            self.fail_operations(fault, out);
            out.group_failed(self.id, fault);
        }
    }
}
