//! The manager's figures at one moment, for people who watch it.

use std::collections::BTreeMap;
use std::sync::Weak;

use trib_control::Histogram;
use trib_messages::reply::{JobStatus, Resource};
use trib_messages::tenant::TenantStatus;

use crate::records::ledger::Counts;
use crate::server::Shared;

/// The figures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManagerReport {
    /// The name of the fabric.
    pub fabric: String,
    /// The topology's nodes, and whether each is connected.
    pub nodes: Vec<(String, bool)>,
    /// All jobs, the oldest first.
    pub jobs: Vec<JobStatus>,
    /// The tenants by name, if there is a tenants file.
    pub tenants: Vec<TenantStatus>,
    /// The number of jobs that wait for their turn.
    pub waiting: usize,
    /// The number of refusals that were sent, by resource.
    pub refusals: BTreeMap<Resource, u64>,
    /// How long granted requests for a job took.
    pub admitted: Histogram,
    /// How long refused requests took.
    pub refused: Histogram,
    /// The number of established connections.
    pub established: usize,
    /// The number of connections in their handshake.
    pub handshaking: usize,
}

/// A handle with which any thread looks at a manager that runs. It asks no node and waits for
/// nothing. It does not keep the manager alive: the file of jobs is closed when the manager ends,
/// whether handles are left or not.
#[derive(Clone)]
pub struct Observer(pub(crate) Weak<Shared>);

impl Observer {
    /// The figures now; `None` when the manager has ended.
    pub fn report(&self) -> Option<ManagerReport> {
        let shared = self.0.upgrade()?;
        let fabric = &shared.fabric;
        let node = |name: &String| (name.clone(), fabric.registry.connected(name).is_some());
        let (established, handshaking) = shared.connections();
        let Counts { admitted, refused, refusals } = fabric.ledger.counts();
        Some(ManagerReport {
            fabric: fabric.topology.name().to_owned(),
            nodes: fabric.topology.nodes().iter().map(|known| node(&known.name)).collect(),
            jobs: fabric.jobs.list(),
            tenants: fabric.tenancy.tenants(),
            waiting: fabric.tenancy.waiting(),
            refusals,
            admitted,
            refused,
            established,
            handshaking,
        })
    }
}
