//! One group of this rank.

use trib_wire::{Fault, Generation, GroupIndex, GroupKey, Header, Kind, Reason};

use super::config::LeafConfig;
use super::datagram::Datagrams;
use super::operation::Seat;
use super::output::{GroupId, LeafOutput};
use super::stream::{Activity, Streams};

/// The rank's only edge: up to its node.
pub(super) struct Edge {
    pub(super) config: LeafConfig,
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
    pub(super) failed: Option<Fault>,
    /// Freed by the user before the node answered.
    pub(super) abandoned: bool,
    pub(super) datagrams: Datagrams,
    pub(super) streams: Streams,
    /// What it counts as among the groups of the rank.
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
            failed: None,
            abandoned: false,
            datagrams: Datagrams::new(limits),
            streams: Streams::new(limits),
            activity: Activity::None,
            op_seq: 0,
        }
    }

    pub(super) fn is_joining(&self) -> bool {
        self.name.is_none() && self.failed.is_none()
    }

    /// The number given, or the next, and which part the operation is.
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

    pub(super) fn fail(&mut self, fault: Fault, out: &mut impl LeafOutput) {
        if self.failed.is_none() {
            self.failed = Some(fault);
            self.fail_operations(fault, out);
            out.group_failed(self.id, fault);
        }
    }
}
