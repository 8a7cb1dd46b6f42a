//! What a leaf core is told about its place and quota.

use trib_wire::{ChildIndex, Epoch, JobId, NodeId, Rank};

use crate::limits::Limits;

/// One rank of one job.
#[derive(Clone, Debug)]
pub struct LeafConfig {
    /// The job.
    pub job: JobId,
    /// Placement epoch.
    pub epoch: Epoch,
    /// This rank.
    pub rank: Rank,
    /// Ranks of the job.
    pub world_size: u32,
    /// The node above.
    pub node: NodeId,
    /// Our position there.
    pub child: ChildIndex,
    /// The quota.
    pub limits: Limits,
}
