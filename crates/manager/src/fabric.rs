//! All that the manager knows, shared by its threads.

use trib_topology::Topology;

use crate::Error;
use crate::jobs::{Jobs, JobsError};
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
}

impl Fabric {
    pub(crate) fn new(topology: Topology, store: Option<Store>) -> Result<Self, Error> {
        let jobs = Jobs::new(store).map_err(|error| match error {
            JobsError::Random(cause) => Error::Random(cause),
            JobsError::Store(error) => Error::State(error),
        })?;
        let trees = Trees::new(&topology);
        Ok(Fabric { topology, registry: Registry::default(), jobs, trees, rendezvous: Rendezvous::default() })
    }
}
