//! What a node core is told about its position in the tree, its children and its quota.

use trib_messages::job::NodeGrant;
use trib_messages::policy::Recovery;
use trib_wire::{ChildIndex, ChildKind, Epoch, JobId, NodeId, RankList};

use crate::limits::Limits;

/// One logical node of one job.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The job.
    pub job: JobId,
    /// The epoch of the job's placement. Frames of another epoch are refused.
    pub epoch: Epoch,
    /// This node.
    pub node: NodeId,
    /// The parent, and this node's position among its children; `None` at the root of the tree.
    pub parent: Option<(NodeId, ChildIndex)>,
    /// The children in fold order, at most 64.
    pub children: Vec<NodeChild>,
    /// The number of ranks of the job.
    pub world_size: u32,
    /// The quota of the job.
    pub limits: Limits,
    /// Whether the job goes on when a node dies: groups then wait for the next epoch.
    pub recovers: bool,
    /// Whether an operation is over only when every rank has its results, and a group's root alone
    /// decides how it ends. This is for jobs that go on when a node dies.
    pub strict: bool,
    /// The number of epochs before this one. Ranks that were there then, and do not come for as
    /// long as a rank may be silent, are dead.
    pub moves: u32,
}

/// One child of a node.
#[derive(Clone, Debug)]
pub struct NodeChild {
    /// A rank or another node.
    pub kind: ChildKind,
    /// All ranks at or below it.
    pub ranks: RankList,
}

impl From<&NodeGrant> for NodeConfig {
    fn from(grant: &NodeGrant) -> NodeConfig {
        NodeConfig {
            job: grant.job,
            epoch: grant.epoch,
            node: grant.node,
            parent: grant.parent.as_ref().map(|p| (p.node, p.child)),
            children: grant.children.iter().map(|c| NodeChild { kind: c.kind, ranks: c.ranks.clone() }).collect(),
            world_size: grant.world_size,
            limits: Limits::from(&grant.limits),
            recovers: grant.recovers,
            strict: grant.recovers && grant.limits.recovery == Recovery::Strict,
            moves: 0,
        }
    }
}
