//! The manager's figures at one moment, for people who watch it.

use std::collections::BTreeMap;

use trib_control::Histogram;
use trib_messages::reply::{JobStatus, Resource};
use trib_messages::tenant::TenantStatus;

use crate::fabric::Fabric;
use crate::records::ledger::Counts;
use crate::tenancy::Sight;

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
    /// The figures of its socket.
    pub doors: Doors,
}

/// The figures of the socket, of which a manager without one has none.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Doors {
    /// The number of established connections.
    pub established: usize,
    /// The number of connections in their handshake.
    pub handshaking: usize,
    /// The number of connections that were not let in, by the kind of their failure.
    pub rejected: BTreeMap<&'static str, u64>,
    /// The number of certificates on the list of withdrawn ones, as it was read last.
    pub withdrawn: usize,
}

impl ManagerReport {
    /// The figures now.
    pub(crate) fn of(fabric: &Fabric, doors: Doors) -> ManagerReport {
        let node = |name: &String| (name.clone(), fabric.registry.connected(name).is_some());
        let Counts { admitted, refused, refusals } = fabric.ledger.counts();
        ManagerReport {
            fabric: fabric.topology.name().to_owned(),
            nodes: fabric.topology.nodes().iter().map(|known| node(&known.name)).collect(),
            jobs: fabric.jobs.list(),
            tenants: fabric.tenancy.tenants(&Sight::All),
            waiting: fabric.tenancy.waiting(),
            refusals,
            admitted,
            refused,
            doors,
        }
    }
}
