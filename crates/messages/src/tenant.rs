//! Tenants: for which tenant a job counts, what each tenant has, and which jobs wait.

use alloc::string::String;
use alloc::vec::Vec;

use crate::reply::Refusal;

/// What a job counts as while it lives. Together with its limits this says what the job takes
/// where.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct JobCharge {
    /// The tenant of the certificate that asked for it; `None` where that names none.
    pub tenant: Option<String>,
    /// The aggregation node at the root of each of its lanes' trees.
    pub roots: Vec<String>,
    /// How many of its lanes each of its aggregation nodes has, in the order of the nodes.
    pub lanes: Vec<u64>,
    /// Bytes of the buffers of all its lanes together, at each of its aggregation nodes.
    pub memory_bytes: Vec<u64>,
    /// The kernel memory that datagrams take which may be under way to each of them at once, in
    /// bytes. A manager of an earlier release does not say it.
    #[serde(default)]
    pub datagram_bytes: Vec<u64>,
}

/// How much a tenant has of one resource, at one node or in the fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct TenantAmount {
    /// What its jobs have.
    pub used: u64,
    /// The most that it could have if there were no other tenant; `None` where that is not bounded.
    pub limit: Option<u64>,
    /// What no other tenant may take.
    pub reserved: u64,
}

/// What a tenant has at one aggregation node.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct TenantAt {
    /// The node's name.
    pub node: String,
    /// Groups alive at once.
    pub groups: TenantAmount,
    /// Slots of all groups.
    pub osts: TenantAmount,
    /// Stream contexts.
    pub streams: TenantAmount,
    /// Bytes of buffers.
    pub memory_bytes: TenantAmount,
}

/// One tenant.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct TenantStatus {
    /// Its name; `*` stands for all tenants that the manager's tenants file does not name,
    /// together.
    pub name: String,
    /// Its priority: jobs of a higher one go first.
    pub priority: i32,
    /// Hosts that are kept for it.
    pub hosts: u32,
    /// Its jobs in the fabric.
    pub jobs: TenantAmount,
    /// Jobs of it that wait for their turn.
    pub waiting: u32,
    /// The aggregation nodes that its jobs use, by name.
    pub nodes: Vec<TenantAt>,
}

/// A job that waits for its turn.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct QueuedJob {
    /// The program's name.
    pub name: String,
    /// Who runs it, as the program said.
    pub user: String,
    /// The tenant of its certificate.
    pub tenant: Option<String>,
    /// Its priority: jobs of a higher one go first.
    pub priority: i32,
    /// Ranks.
    pub ranks: u32,
    /// Since when it waits, seconds since 1970-01-01 UTC.
    pub since: u64,
    /// What it lacks.
    pub reason: Refusal,
}
