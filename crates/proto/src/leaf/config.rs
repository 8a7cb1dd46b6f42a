//! What a leaf core is told about its position in the tree and its quota.

use trib_wire::{ChildIndex, Epoch, JobId, NodeId, Rank};

use crate::limits::Limits;

/// One rank of one job.
#[derive(Clone, Debug)]
pub struct LeafConfig {
    /// The job.
    pub job: JobId,
    /// The epoch of the job's placement.
    pub epoch: Epoch,
    /// This rank.
    pub rank: Rank,
    /// The number of ranks of the job.
    pub world_size: u32,
    /// The node above this rank.
    pub node: NodeId,
    /// This rank's position among the children of that node.
    pub child: ChildIndex,
    /// The quota of the job.
    pub limits: Limits,
    /// Whether the job goes on when a node dies: groups then wait for the next epoch.
    pub recovers: bool,
    /// The bytes that it may keep for other ranks of what it has given to operations that are over.
    /// Beyond them it sends no new fragment, and does not ask for the lock.
    pub memory: u64,
    /// Whether an operation is over only when every rank has its results. This is for jobs that go
    /// on when a node dies.
    pub strict: bool,
}
