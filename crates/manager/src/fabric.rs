//! All that the manager knows, shared by its threads.

use std::sync::Arc;

use trib_topology::Topology;
use trib_topology::predict::Constants;

use crate::Error;
use crate::nodes::deputies::Deputies;
use crate::nodes::registry::Registry;
use crate::planning::trees::Trees;
use crate::programs::launches::Launches;
use crate::programs::rendezvous::Rendezvous;
use crate::records::jobs::Jobs;
use crate::records::ledger::Ledger;
use crate::records::past::Past;
use crate::records::store::Store;
use crate::tenancy::{Policy, Tenancy};
use crate::time::Time;

/// The fabric. Each part has its own lock, and no lock is held while another is taken.
pub(crate) struct Fabric {
    pub topology: Topology,
    /// The constants with which predictions are made.
    pub constants: Constants,
    pub registry: Arc<Registry>,
    pub deputies: Arc<Deputies>,
    pub jobs: Jobs,
    pub tenancy: Tenancy,
    pub trees: Trees,
    pub rendezvous: Rendezvous,
    pub launches: Launches,
    pub ledger: Ledger,
    pub past: Past,
    /// When the manager started, milliseconds since 1970-01-01 UTC. Since then it knows what the
    /// topology says.
    pub started_ms: u64,
    pub time: Time,
}

impl Fabric {
    pub(crate) fn new(
        topology: Topology,
        store: Option<Store>,
        policy: Policy,
        constants: Constants,
        time: Time,
    ) -> Result<Self, Error> {
        let kept = store.as_ref().map(Store::load).transpose().map_err(Error::State)?.unwrap_or_default();
        let trees = Trees::new(&topology, constants.model);
        for job in &kept.jobs {
            if let Some(footprint) = kept.footprints.get(&job.id) {
                trees.adopt(&topology, job.id, footprint);
            }
        }
        let store = store.map(Arc::new);
        let remembered = kept.past.clone();
        let jobs = Jobs::new(store.clone(), kept);
        let (past, old) = Past::new(remembered, store.as_ref()).map_err(Error::Thread)?;
        if let Some(store) = store.filter(|_| !old.is_empty()) {
            store.trim(&old).map_err(Error::State)?;
        }
        let tenancy = Tenancy::new(policy, &jobs.list(), time.clone());
        let (registry, deputies) = (Arc::default(), Arc::default());
        let (rendezvous, ledger) = (Rendezvous::new(time.clone()), Ledger::default());
        let launches = Launches::default();
        let started_ms = time.unix_ms();
        Ok(Fabric {
            topology,
            constants,
            registry,
            deputies,
            jobs,
            tenancy,
            trees,
            rendezvous,
            launches,
            ledger,
            past,
            started_ms,
            time,
        })
    }

    /// Takes every lock once.
    pub(crate) fn touch(&self) {
        self.registry.touch();
        self.deputies.touch();
        self.jobs.touch();
        self.tenancy.touch();
        self.trees.touch();
        self.rendezvous.touch();
        self.ledger.touch();
        self.past.touch();
    }
}
