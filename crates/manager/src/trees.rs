//! The trees of admitted jobs in a fabric that is given as a graph: what they take of links and nodes, so that the next
//! job's tree goes elsewhere.
//!
//! A job of an earlier manager is not counted: its nodes are known, its links are not. A fabric whose tree is given has
//! nothing to choose and nothing here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trib_topology::trees::{Loads, Tree};
use trib_topology::{Plan, PlanError, Topology, plan};
use trib_wire::ids::JobId;

/// The trees.
pub(crate) struct Trees {
    loads: Arc<Mutex<Loads>>,
    held: Mutex<BTreeMap<JobId, Claim>>,
}

/// What one tree takes, until this is dropped.
pub(crate) struct Claim {
    loads: Arc<Mutex<Loads>>,
    tree: Tree,
}

impl Trees {
    pub(crate) fn new(topology: &Topology) -> Self {
        Self { loads: Arc::new(Mutex::new(topology.idle_loads())), held: Mutex::default() }
    }

    /// Plans beside the trees that are there, and claims what the plan's tree takes.
    pub(crate) fn plan(&self, topology: &Topology, hosts: &[String]) -> Result<(Plan, Option<Claim>), PlanError> {
        // Two jobs that are planned at once see each other.
        let mut loads = lock(&self.loads);
        let mut plan = plan(topology, hosts, &loads)?;
        let claim = plan.tree.take().map(|tree| {
            loads.add(&tree);
            Claim { loads: self.loads.clone(), tree }
        });
        Ok((plan, claim))
    }

    /// Keeps a claim as long as the job lives.
    pub(crate) fn hold(&self, job: JobId, claim: Option<Claim>) {
        if let Some(claim) = claim {
            lock(&self.held).insert(job, claim);
        }
    }

    /// Takes the locks once.
    pub(crate) fn touch(&self) {
        drop(lock(&self.loads));
        drop(lock(&self.held));
    }

    /// The job has ended.
    pub(crate) fn release(&self, job: JobId) {
        let claim = lock(&self.held).remove(&job);
        drop(claim);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.loads).remove(&self.tree);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
