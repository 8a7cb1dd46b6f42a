//! All that the manager knows, shared by its threads.

use trib_topology::Topology;

use crate::Error;
use crate::jobs::{Jobs, JobsError};
use crate::ledger::Ledger;
use crate::registry::Registry;
use crate::rendezvous::Rendezvous;
use crate::store::Store;
use crate::trees::Trees;

/// The fabric. Each part has its own lock, none is held while another is taken.
pub(crate) struct Fabric {
    pub topology: Topology,
    pub registry: Registry,
    pub jobs: Jobs,
    pub trees: Trees,
    pub rendezvous: Rendezvous,
    pub ledger: Ledger,
}

impl Fabric {
    pub(crate) fn new(topology: Topology, store: Option<Store>) -> Result<Self, Error> {
        let jobs = Jobs::new(store).map_err(|error| match error {
            JobsError::Random(cause) => Error::Random(cause),
            JobsError::Store(error) => Error::State(error),
        })?;
        let trees = Trees::new(&topology);
        let (registry, rendezvous, ledger) = (Registry::default(), Rendezvous::default(), Ledger::default());
        Ok(Fabric { topology, registry, jobs, trees, rendezvous, ledger })
    }

    /// Takes every lock once.
    pub(crate) fn touch(&self) {
        self.registry.touch();
        self.jobs.touch();
        self.trees.touch();
        self.rendezvous.touch();
        self.ledger.touch();
    }
}
