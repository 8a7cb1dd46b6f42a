//! What the unit tests of a node's machines share: a node with two ranks below it, events for it,
//! and a driver that writes down what it is asked for.

use trib_wire::header::FLAG_IN_TURN;
use trib_wire::{
    Body, ChildIndex, ChildKind, Collective, DataType, Epoch, Generation, GroupIndex, GroupKey, GroupName, Header,
    JobId, Kind, Marks, NodeId, Placement, Rank, RankList, ReduceOp, Signature, WireFormat,
};

use super::at::At;
use super::config::{NodeChild, NodeConfig};
use super::frame::Frame;
use super::identity::Identity;
use super::info::{Duty, GroupInfo, Member};
use super::output::{Fold, NodeOutput, Note, Part, Payload, Target};
use crate::{Limits, Nanos, Path};

/// The number of bytes of every fragment and segment.
const LEN: u32 = 8;

/// The bits of both children.
pub(super) const BOTH: u64 = 0b11;

pub(crate) const LIMITS: Limits = Limits {
    groups: 1,
    window: 1,
    osts: 1,
    payload: 16,
    streams: 1,
    segment: 16,
    staging: 2,
    flight: 3,
    control_memory: 1 << 20,
    stream_threshold: 200,
    lease_operations: 0,
    heartbeat: Nanos::from_millis(1000),
    dead_after: Nanos::from_millis(60_000),
};

/// A frame that the driver was to send.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Sent {
    pub(super) target: Target,
    pub(super) kind: Kind,
    pub(super) seq: u64,
    pub(super) bytes: Vec<u8>,
}

/// A driver that writes down what it is asked for. Its folds are sums of bytes.
#[derive(Default)]
pub(super) struct Log {
    pub(super) sent: Vec<Sent>,
    /// What has to stay behind the segments that were sent before it.
    pub(super) in_turn: Vec<Kind>,
    pub(super) notes: Vec<Note>,
    pub(super) suspected: Vec<NodeId>,
    pub(super) moves: Vec<Placement>,
}

impl Log {
    /// What was sent since the last call.
    pub(super) fn take_sent(&mut self) -> Vec<Sent> {
        core::mem::take(&mut self.sent)
    }
}

impl NodeOutput for Log {
    type Buffer = Vec<u8>;

    fn transmit(&mut self, target: Target, _: Path, header: &Header, payload: Payload<'_, Vec<u8>>) {
        let bytes = match payload {
            Payload::None | Payload::Body(_) => Vec::new(),
            Payload::Data { buffer, from } => buffer[from as usize..][..header.payload_len as usize].to_vec(),
        };
        if header.flags & FLAG_IN_TURN != 0 {
            self.in_turn.push(header.kind);
        }
        self.sent.push(Sent { target, kind: header.kind, seq: header.seq, bytes });
    }

    fn fold(&mut self, _: &Fold, parts: impl Iterator<Item = Part<Vec<u8>>>) -> Vec<u8> {
        let sum = |sum: Vec<u8>, piece: Vec<u8>| sum.iter().zip(piece).map(|(a, b)| a + b).collect();
        parts.map(|part| part.buffer).reduce(sum).expect("a fold has parts")
    }

    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    fn suspect(&mut self, node: NodeId) {
        self.suspected.push(node);
    }

    fn move_to(&mut self, placement: &Placement) {
        self.moves.push(placement.clone());
    }
}

/// One group at one node, for a machine of which events are made.
pub(super) struct Bench {
    identity: Identity,
    pub(super) info: GroupInfo,
    pub(super) out: Log,
}

impl Bench {
    /// The root of the tree, which is the group's root.
    pub(super) fn at_the_root() -> Bench {
        Bench::new(None, Duty::Root)
    }

    /// A node whose parent has ranks of the group elsewhere below it.
    pub(super) fn below_a_parent() -> Bench {
        Bench::new(Some((NodeId(0), ChildIndex(0))), Duty::Inner)
    }

    fn new(parent: Option<(NodeId, ChildIndex)>, duty: Duty) -> Bench {
        let identity = Identity::new(config(parent));
        let members = [0, 1].map(|rank| Member {
            child: ChildIndex(rank as u16),
            ranks: RankList::from_ranks([rank]),
            first: Rank(rank),
        });
        let info = GroupInfo {
            index: GroupIndex(0),
            generation: Generation(0),
            key: key(),
            name: GroupName::default(),
            size: 2,
            up: parent.map(|_| (GroupIndex(0), Generation(0))),
            duty,
            companion: false,
            members: members.into(),
            all: BOTH,
            inner: 0,
            start: Marks::default(),
            nodes: RankList::default(),
        };
        Bench { identity, info, out: Log::default() }
    }

    /// The node, for what is made once.
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// An event at the group.
    pub(super) fn at(&mut self) -> At<'_, Log> {
        At { identity: &self.identity, info: &self.info, now: Nanos(0), out: &mut self.out }
    }

    /// The header of a piece of the allreduce that has the number of the fragment or segment.
    pub(super) fn piece(&self, kind: Kind, position: usize, seq: u64) -> Header {
        let signature = Signature {
            collective: Collective::Allreduce,
            dtype: DataType::U8,
            op: ReduceOp::Sum,
            format: WireFormat::Plain,
            root: 0,
            count: u64::from(LEN),
        };
        let edge = self.identity.down(kind, self.info.members[position].child);
        Header { signature, op_seq: seq, seq, elements: LEN, payload_len: LEN, ..edge }
    }
}

/// A frame whose vector consists of equal bytes.
pub(super) fn data(path: Path, header: &Header, byte: u8) -> Frame<'_, Vec<u8>> {
    Frame { path, header, body: &NO_BODY, data: Some(bytes(byte)) }
}

/// The bytes of such a frame.
pub(super) fn bytes(byte: u8) -> Vec<u8> {
    vec![byte; LEN as usize]
}

/// A node with two ranks below it.
pub(super) fn config(parent: Option<(NodeId, ChildIndex)>) -> NodeConfig {
    let child = |rank| NodeChild { kind: ChildKind::Rank(Rank(rank)), ranks: RankList::from_ranks([rank]) };
    NodeConfig {
        job: JobId(1),
        epoch: Epoch(1),
        node: NodeId(1),
        parent,
        children: vec![child(0), child(1)],
        world_size: 2,
        limits: LIMITS,
        recovers: false,
        strict: false,
        moves: 0,
    }
}

/// The key of a group of both ranks.
pub(super) fn key() -> GroupKey {
    GroupKey { tag: 7, creation: 0, members: RankList::from_ranks([0, 1]) }
}

static NO_BODY: Body = Body::None;
