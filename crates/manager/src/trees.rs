//! The trees of admitted jobs in a fabric that is given as a graph: what they take of links and nodes, so that the next
//! job's tree goes elsewhere, and around nodes that are away.
//!
//! A job of an earlier manager counts with what the file of jobs says about its tree. A fabric whose tree is given has
//! nothing to choose and nothing here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trib_topology::predict::{Model, stands_in};
use trib_topology::trees::{Copies, Footprint, Loads, Tree};
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
    copies: Copies,
}

/// A job's tree.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) claim: Option<Claim>,
    /// Nodes of its best tree that are away, so that it got this one.
    pub(crate) around: Vec<String>,
}

impl Trees {
    pub(crate) fn new(topology: &Topology) -> Self {
        Self { loads: Arc::new(Mutex::new(topology.idle_loads())), held: Mutex::default() }
    }

    /// Plans beside the trees that are there, and claims what the plan's tree takes. Where the best tree has nodes that are not
    /// `here` and another one does without them, it is that one.
    pub(crate) fn plan(
        &self,
        topology: &Topology,
        hosts: &[String],
        here: &BTreeSet<String>,
    ) -> Result<Planned, PlanError> {
        // Two jobs that are planned at once see each other.
        let mut loads = lock(&self.loads);
        let best = plan(topology, hosts, &loads)?;
        let (mut plan, around) = go_around(topology, hosts, here, &mut loads, best);
        let claim = plan.tree.take().map(|tree| self.claim(&mut loads, tree.copies()));
        Ok(Planned { plan, claim, around })
    }

    /// Counts the tree of a job that an earlier manager admitted.
    pub(crate) fn adopt(&self, topology: &Topology, job: JobId, footprint: &Footprint) {
        let Some(graph) = topology.graph() else { return };
        let claim = self.claim(&mut lock(&self.loads), footprint.in_graph(graph));
        self.hold(job, Some(claim));
    }

    fn claim(&self, loads: &mut Loads, copies: Copies) -> Claim {
        loads.add_copies(&copies);
        Claim { loads: self.loads.clone(), copies }
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

impl Claim {
    /// What it takes, for the next manager.
    pub(crate) fn footprint(&self, topology: &Topology) -> Option<Footprint> {
        topology.graph().map(|graph| Footprint::of(graph, &self.copies))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.loads).remove_copies(&self.copies);
    }
}

/// The best plan, or where nodes of it are away one without any that are, if it is good enough; the best again where there is
/// none, to be refused with their names. Gives with it what it goes around.
fn go_around(
    topology: &Topology,
    hosts: &[String],
    here: &BTreeSet<String>,
    loads: &mut Loads,
    best: Plan,
) -> (Plan, Vec<String>) {
    let away: BTreeSet<&String> =
        best.nodes.iter().map(|node| &node.name).filter(|name| !here.contains(*name)).collect();
    let (Some(graph), Some(better), false) = (topology.graph(), &best.tree, away.is_empty()) else {
        return (best, Vec::new());
    };
    let closed = topology.nodes().iter().enumerate().filter(|(_, node)| !here.contains(&node.name));
    closed.for_each(|(node, _)| loads.close(node));
    let other = plan(topology, hosts, loads);
    loads.open();
    let does = |tree: &Tree| stands_in(graph, tree, better, &Model::default());
    match other {
        Ok(other) if other.tree.as_ref().is_some_and(does) => {
            let away = away.into_iter().cloned().collect();
            (other, away)
        }
        _ => (best, Vec::new()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
