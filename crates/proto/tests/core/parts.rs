//! Nodes and leaves with real bytes, and the frames between them, for tests that bring these from
//! one to the other: a tree of six ranks, root 0 with the nodes 1 (ranks 0..3) and 2 (ranks 3..6).

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use trib_messages::policy::Recovery;
use trib_proto::leaf::{self, GroupId, LeafConfig, LeafCore, LeafOutput, NewGroup, OpId, Slice};
use trib_proto::node::{self, Fold, Link, NodeChild, NodeConfig, NodeCore, NodeOutput, Part, Stage, Target};
use trib_proto::{Limits, Nanos, Path, window};
use trib_wire::{
    Body, ChildIndex, ChildKind, Collective, DataType, Epoch, Fault, GroupName, Header, JobId, Kind, NodeId, Placement,
    Rank, RankList, ReduceOp, Signature, WireFormat,
};

pub(crate) const RANKS: u32 = 6;
const JOB: JobId = JobId(7);
pub(crate) const EPOCH: Epoch = Epoch(1);

/// What a rank has of the vector when an operation is over: its results, over the block that it has
/// given to an allgather. What it lacks of what it gets is not as `expected` says.
pub(crate) fn received(
    results: Option<&BTreeMap<u64, Vec<u8>>>,
    signature: &Signature,
    (size, me): (u32, u32),
    expected: &[u8],
) -> Vec<u8> {
    let element = signature.dtype.size();
    let mut all: Vec<u8> = expected.iter().map(|byte| !byte).collect();
    if signature.collective == Collective::Allgather {
        let own = window::given(signature, size, me);
        let own = own.start as usize * element..own.end as usize * element;
        all[own.clone()].copy_from_slice(&expected[own]);
    }
    for (first, bytes) in results.into_iter().flatten() {
        all[*first as usize * element..][..bytes.len()].copy_from_slice(bytes);
    }
    let gotten = window::gotten(signature, size, me);
    all[gotten.start as usize * element..gotten.end as usize * element].to_vec()
}

pub(crate) struct Frame {
    pub(crate) to: End,
    pub(crate) path: Path,
    pub(crate) header: Header,
    pub(crate) body: Body,
    pub(crate) data: Vec<u8>,
}

#[derive(Clone, Copy)]
pub(crate) enum End {
    Leaf(u32),
    Node(u16, Link),
}

pub(crate) struct Leaf {
    pub(crate) core: LeafCore,
    pub(crate) memory: LeafMemory,
}

#[derive(Default)]
pub(crate) struct LeafMemory {
    pub(crate) rank: u32,
    pub(crate) sent: Vec<Frame>,
    pub(crate) inputs: HashMap<OpId, Vec<u8>>,
    pub(crate) results: HashMap<OpId, BTreeMap<u64, Vec<u8>>>,
    pub(crate) done: HashMap<OpId, Result<Range<u64>, Fault>>,
    pub(crate) ready: Vec<GroupId>,
    pub(crate) failed: Vec<(GroupId, Fault)>,
    pub(crate) incoming: Vec<u8>,
    pub(crate) notes: Vec<leaf::Note>,
    /// What the node says now breaks the protocol.
    pub(crate) node_is_wrong: bool,
}

impl LeafOutput for LeafMemory {
    fn transmit(&mut self, path: Path, header: &Header, payload: leaf::Payload<'_>) {
        let (body, data) = match payload {
            leaf::Payload::None => (Body::None, Vec::new()),
            leaf::Payload::Body(body) => (body.clone(), Vec::new()),
            leaf::Payload::Data(slice) => {
                let from = slice.first as usize * header.signature.dtype.size();
                (Body::None, self.inputs[&slice.op][from..from + slice.bytes as usize].to_vec())
            }
        };
        let to = End::Node(header.node.0, Link::Child(header.child));
        self.sent.push(Frame { to, path, header: *header, body, data });
    }

    fn deliver(&mut self, slice: Slice) {
        assert_eq!(self.incoming.len(), slice.bytes as usize);
        self.results.entry(slice.op).or_default().insert(slice.first, self.incoming.clone());
    }

    fn complete(&mut self, op: OpId, result: Result<Range<u64>, Fault>) {
        // The program uses its input for other things now. Only a copy of what may be needed is
        // left.
        if let (Ok(kept), Some(input)) = (&result, self.inputs.get_mut(&op)) {
            let kept = kept.start as usize..kept.end as usize;
            for (at, byte) in input.iter_mut().enumerate().filter(|(at, _)| !kept.contains(at)) {
                *byte = at as u8 ^ 0xA5;
            }
            if kept.is_empty() {
                self.inputs.remove(&op);
            }
        }
        assert!(self.done.insert(op, result).is_none(), "{op:?} of rank {} completed twice", self.rank);
    }

    /// From now on only the copy that the core asks for may be read.
    fn forget(&mut self, op: OpId) {
        assert!(self.done.contains_key(&op), "{op:?} of rank {} is forgotten before it is over", self.rank);
        self.inputs.remove(&op);
    }

    fn move_to(&mut self, _: &Placement) {
        panic!("nobody has moved the tree");
    }

    fn group_ready(&mut self, group: GroupId) {
        self.ready.push(group);
    }

    fn group_failed(&mut self, group: GroupId, fault: Fault) {
        self.failed.push((group, fault));
    }

    fn note(&mut self, note: leaf::Note) {
        assert!(note != leaf::Note::Violation || self.node_is_wrong, "rank {}", self.rank);
        self.notes.push(note);
    }
}

pub(crate) struct Node {
    pub(crate) core: NodeCore<Vec<u8>>,
    pub(crate) memory: NodeMemory,
}

#[derive(Default)]
pub(crate) struct NodeMemory {
    pub(crate) node: u16,
    pub(crate) kinds: Vec<ChildKind>,
    pub(crate) parent: Option<(u16, ChildIndex)>,
    pub(crate) sent: Vec<Frame>,
    pub(crate) written: Vec<(ChildIndex, Header)>,
    pub(crate) took: Vec<(Path, Stage, Nanos)>,
    pub(crate) replayed: Vec<(Path, u64)>,
}

impl NodeOutput for NodeMemory {
    type Buffer = Vec<u8>;

    fn transmit(&mut self, target: Target, path: Path, header: &Header, payload: node::Payload<'_, Vec<u8>>) {
        let (body, data) = match payload {
            node::Payload::None => (Body::None, Vec::new()),
            node::Payload::Body(body) => (body.clone(), Vec::new()),
            node::Payload::Data { buffer, from } => {
                let from = from as usize;
                (Body::None, buffer[from..from + header.payload_len as usize].to_vec())
            }
        };
        let children: Vec<u16> = match target {
            Target::Parent => {
                let (node, child) = self.parent.expect("frames go up only where there is a parent");
                let to = End::Node(node, Link::Child(child));
                return self.sent.push(Frame { to, path, header: *header, body, data });
            }
            Target::Child(child) => vec![child.0],
            Target::Children(bits) => (0..64).filter(|c| bits >> c & 1 != 0).collect(),
        };
        for child in children {
            let to = match self.kinds[usize::from(child)] {
                ChildKind::Rank(rank) => End::Leaf(rank.0),
                ChildKind::Node(node) => End::Node(node.0, Link::Parent),
            };
            self.sent.push(Frame { to, path, header: *header, body: body.clone(), data: data.clone() });
            if header.kind == Kind::Result && path == Path::Stream {
                self.written.push((ChildIndex(child), *header));
            }
        }
    }

    fn fold(&mut self, fold: &Fold, parts: impl Iterator<Item = Part<Vec<u8>>>) -> Vec<u8> {
        let mut result = vec![0u8; fold.bytes as usize];
        let element = fold.signature.dtype.size();
        for (i, part) in parts.enumerate() {
            let data = part.buffer;
            assert_eq!(data.len(), part.bytes as usize);
            let at = (part.elements.start - fold.elements.start) as usize * element;
            for (r, d) in result[at..at + data.len()].iter_mut().zip(&data) {
                *r = match fold.reduce {
                    true if i == 0 => *d,
                    true => r.wrapping_add(*d),
                    false => *r | *d,
                };
            }
        }
        result
    }

    fn note(&mut self, note: node::Note) {
        assert_ne!(note, node::Note::Violation, "node {}", self.node);
    }

    fn suspect(&mut self, node: NodeId) {
        panic!("node {node:?} is alive");
    }

    fn move_to(&mut self, _: &Placement) {
        panic!("nobody has moved the tree");
    }

    fn took(&mut self, path: Path, stage: Stage, span: Nanos) {
        self.took.push((path, stage, span));
    }

    fn replayed(&mut self, path: Path, bytes: u64) {
        self.replayed.push((path, bytes));
    }
}

pub(crate) fn limits(streams: u32, lease_operations: u32) -> Limits {
    Limits {
        groups: 8,
        window: 3,
        osts: 64,
        payload: 16,
        streams,
        segment: 16,
        staging: 2,
        flight: 3,
        control_memory: 1 << 20,
        stream_threshold: 200,
        lease_operations,
        heartbeat: Nanos::from_millis(1000),
        dead_after: Nanos::from_millis(60_000),
    }
}

/// The nodes of one epoch.
pub(crate) fn nodes(limits: Limits, epoch: Epoch, policy: Recovery) -> Vec<Node> {
    let rank = |r: u32| NodeChild { kind: ChildKind::Rank(Rank(r)), ranks: RankList::from_ranks([r]) };
    let inner =
        |n: u16, ranks: Range<u32>| NodeChild { kind: ChildKind::Node(NodeId(n)), ranks: RankList::from_ranks(ranks) };
    let node = |id: u16, parent: Option<(u16, u16)>, children: Vec<NodeChild>| {
        let kinds = children.iter().map(|c| c.kind).collect();
        let core = NodeCore::new(NodeConfig {
            job: JOB,
            epoch,
            node: NodeId(id),
            parent: parent.map(|(n, c)| (NodeId(n), ChildIndex(c))),
            children,
            world_size: RANKS,
            limits,
            recovers: policy != Recovery::Notify,
            strict: policy == Recovery::Strict,
            moves: 0,
        });
        let parent = parent.map(|(n, c)| (n, ChildIndex(c)));
        Node { core, memory: NodeMemory { node: id, kinds, parent, ..NodeMemory::default() } }
    };
    vec![
        node(0, None, vec![inner(1, 0..3), inner(2, 3..6)]),
        node(1, Some((0, 0)), (0..3).map(rank).collect()),
        node(2, Some((0, 1)), (3..6).map(rank).collect()),
    ]
}

/// A rank in the first epoch.
pub(crate) fn leaf(rank: u32, limits: Limits, policy: Recovery) -> Leaf {
    let core = LeafCore::new(LeafConfig {
        job: JOB,
        epoch: EPOCH,
        rank: Rank(rank),
        world_size: RANKS,
        node: NodeId(1 + (rank / 3) as u16),
        child: ChildIndex((rank % 3) as u16),
        limits,
        recovers: policy != Recovery::Notify,
        memory: u64::MAX,
        strict: policy == Recovery::Strict,
    });
    Leaf { core, memory: LeafMemory { rank, ..LeafMemory::default() } }
}

/// Starts to make a group at one rank.
pub(crate) fn create(core: &mut LeafCore, members: RankList, tag: u64, memory: &mut LeafMemory) -> GroupId {
    create_as(false, core, (members, tag), memory)
}

/// The same of one that may be made for another group.
pub(crate) fn create_as(
    companion: bool,
    core: &mut LeafCore,
    (members, tag): (RankList, u64),
    memory: &mut LeafMemory,
) -> GroupId {
    let id = core.next_group();
    let group = NewGroup { members, tag, name: GroupName::default(), companion };
    core.create_group(id, group, memory).expect("members are valid");
    id
}

pub(crate) fn signature(collective: Collective, count: u64, root: u32) -> Signature {
    let op = if matches!(collective, Collective::Allreduce | Collective::Reduce | Collective::ReduceScatter) {
        ReduceOp::Sum
    } else {
        ReduceOp::BitOr
    };
    Signature { collective, dtype: DataType::U8, op, format: WireFormat::Plain, root, count }
}

pub(crate) fn vector(rank: u32, len: u64, op: u64) -> Vec<u8> {
    (0..len).map(|i| (i as u32 * 31 + rank * 17 + op as u32 * 5 + 1) as u8).collect()
}
