//! Grants as a manager would make them.

use std::net::SocketAddr;

use trib_keys::{EdgeKeys, JobKey};
use trib_messages::job::{GrantChild, GrantParent, Limits, NodeGrant, ParentCandidate};
use trib_messages::via::Via;
use trib_wire::{ChildIndex, ChildKind, Epoch, JobId, Mode, NodeId, Placement, Rank, RankList};

/// Small limits, so that a vector has many fragments or segments.
fn limits() -> Limits {
    Limits {
        groups: 16,
        window: 4,
        osts: 64,
        payload: 1024,
        streams: 2,
        segment: 32 * 1024,
        staging: 3,
        flight: 6,
        control_memory: 1 << 20,
        stream_threshold: 16 * 1024,
        lease_operations: 0,
        heartbeat_ms: 500,
        dead_after_ms: 20_000,
        recovery: trib_messages::policy::Recovery::Retry,
        mode: Mode::Checked,
        faults: false,
    }
}

/// A root with `leaves` leaf nodes below it, and `ranks` ranks under each of these, or under the
/// root if there are none.
#[derive(Clone, Debug)]
pub struct Tree {
    pub job: JobId,
    pub key: JobKey,
    pub limits: Limits,
    pub leaves: u16,
    pub ranks: u16,
}

impl Tree {
    pub fn new(job: u32, leaves: u16, ranks: u16) -> Tree {
        Tree { job: JobId(job), key: JobKey([job as u8; 32]), limits: limits(), leaves, ranks }
    }

    pub fn world_size(&self) -> u32 {
        u32::from(self.leaves.max(1)) * u32::from(self.ranks)
    }

    /// The grant of the root.
    pub fn root(&self) -> NodeGrant {
        let children = if self.leaves == 0 {
            self.rank_children(0)
        } else {
            (0..self.leaves)
                .map(|leaf| {
                    let first = u32::from(leaf) * u32::from(self.ranks);
                    GrantChild {
                        kind: ChildKind::Node(NodeId(leaf + 1)),
                        candidates: 1,
                        in_rank: false,
                        ranks: RankList::from_ranks(first..first + u32::from(self.ranks)),
                        addresses: Vec::new(),
                        via: Via::Tcp,
                    }
                })
                .collect()
        };
        self.grant(NodeId(0), None, children)
    }

    /// The grant of leaf node `leaf`, whose parent takes streams at `parent`.
    pub fn leaf(&self, leaf: u16, parent: SocketAddr) -> NodeGrant {
        let key = self.key.node(self.job, NodeId(0), 0).edge(ChildIndex(leaf), 0);
        let candidates = vec![ParentCandidate { stream: parent, key }];
        let parent = GrantParent { node: NodeId(0), child: ChildIndex(leaf), candidates, via: Via::Tcp };
        self.grant(NodeId(leaf + 1), Some(parent), self.rank_children(leaf))
    }

    /// The node under which rank `rank` is, and its position there.
    pub fn attachment(&self, rank: u32) -> (NodeId, ChildIndex) {
        let per_node = u32::from(self.ranks);
        let node = if self.leaves == 0 { 0 } else { rank / per_node + 1 };
        (NodeId(node as u16), ChildIndex((rank % per_node) as u16))
    }

    /// The keys of the edge over which rank `rank` reaches its node, before anything has moved.
    pub fn rank_keys(&self, rank: u32) -> EdgeKeys {
        let (node, child) = self.attachment(rank);
        self.key.node(self.job, node, 0).edge(child, 0).keys(&Placement::FIRST)
    }

    fn rank_children(&self, leaf: u16) -> Vec<GrantChild> {
        let first = u32::from(leaf) * u32::from(self.ranks);
        (first..first + u32::from(self.ranks))
            .map(|rank| GrantChild {
                kind: ChildKind::Rank(Rank(rank)),
                candidates: 1,
                in_rank: true,
                ranks: RankList::from_ranks([rank]),
                addresses: vec![[127, 0, 0, 1].into()],
                via: Via::Tcp,
            })
            .collect()
    }

    fn grant(&self, node: NodeId, parent: Option<GrantParent>, children: Vec<GrantChild>) -> NodeGrant {
        NodeGrant {
            job: self.job,
            epoch: Epoch(1),
            mark: self.key.mark(self.job),
            key: self.key.node(self.job, node, 0),
            root: parent.is_none().then(|| self.key.root(self.job, node)),
            limits: self.limits.clone(),
            world_size: self.world_size(),
            node,
            name: format!("node{}", node.0),
            lane: 0,
            address: None,
            candidate: 0,
            candidates: vec!["10.0.0.1:4000".parse().unwrap()],
            in_ranks: Vec::new(),
            recovers: false,
            parent,
            children,
        }
    }
}
