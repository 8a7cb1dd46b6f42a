//! Tenants: what a job counts as, what each tenant has, and who waits.

use alloc::string::String;
use alloc::vec::Vec;

use super::reply::Refusal;

/// What a job counts as while it lives. With its limits it says what the job takes where.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct JobCharge {
    /// The tenant of the certificate it was asked for with; `None` where that names none.
    pub tenant: Option<String>,
    /// The aggregation node at the root of each of its lanes' trees.
    pub roots: Vec<String>,
    /// Its lanes at each of its aggregation nodes, in their order.
    pub lanes: Vec<u64>,
    /// Bytes of its buffers, of all lanes together, at each of them.
    pub memory_bytes: Vec<u64>,
}

/// How much a tenant has of something at one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct TenantAmount {
    /// What its jobs have.
    pub used: u64,
    /// The most it could have with nobody else there; `None` where that is not bounded.
    pub limit: Option<u64>,
    /// What nobody else may take.
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
    /// Its name; `*`: all that the manager's tenants file does not name, together.
    pub name: String,
    /// Whose is higher goes first.
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
    /// Whose is higher goes first.
    pub priority: i32,
    /// Ranks.
    pub ranks: u32,
    /// Waits since, seconds since 1970-01-01 UTC.
    pub since: u64,
    /// What it lacks.
    pub reason: Refusal,
}
