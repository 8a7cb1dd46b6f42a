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
    held: Mutex<BTreeMap<JobId, Vec<Claim>>>,
}

/// What one tree takes, until this is dropped.
pub(crate) struct Claim {
    loads: Arc<Mutex<Loads>>,
    copies: Copies,
}

/// A job's trees.
pub(crate) struct Planned {
    pub(crate) plans: Vec<Plan>,
    pub(crate) claims: Vec<Claim>,
    /// Nodes of its best tree that are away or do not answer, so that it got another one.
    pub(crate) around: Vec<String>,
}

impl Trees {
    pub(crate) fn new(topology: &Topology) -> Self {
        Self { loads: Arc::new(Mutex::new(topology.idle_loads())), held: Mutex::default() }
    }

    /// Plans the trees of one job beside those that are there, at least one and at most `most`, and claims what they take. No
    /// two are the same, and all fold as the first. Where the best tree has nodes that are not `here` and another one does
    /// without them, it is that one.
    pub(crate) fn plan(
        &self,
        topology: &Topology,
        hosts: &[String],
        here: &BTreeSet<String>,
        most: usize,
    ) -> Result<Planned, PlanError> {
        // Two jobs that are planned at once see each other.
        let mut loads = lock(&self.loads);
        let best = plan(topology, hosts, &loads)?;
        let (mut next, around) = go_around(topology, hosts, here, &mut loads, best);
        let (mut plans, mut claims) = (Vec::new(), Vec::new());
        loop {
            claims.extend(next.tree.as_ref().map(|tree| self.claim(&mut loads, tree.copies())));
            plans.push(next);
            if plans.len() >= most {
                break;
            }
            match plan(topology, hosts, &loads) {
                Ok(another) if is_new(&another, &plans) && is_here(&another, here) => next = another,
                _ => break,
            }
        }
        Ok(Planned { plans, claims, around })
    }

    /// Counts the trees of a job that an earlier manager admitted.
    pub(crate) fn adopt(&self, topology: &Topology, job: JobId, footprint: &Footprint) {
        let Some(graph) = topology.graph() else { return };
        let claim = self.claim(&mut lock(&self.loads), footprint.in_graph(graph));
        self.hold(job, vec![claim]);
    }

    fn claim(&self, loads: &mut Loads, copies: Copies) -> Claim {
        loads.add_copies(&copies);
        Claim { loads: self.loads.clone(), copies }
    }

    /// Keeps the claims as long as the job lives.
    pub(crate) fn hold(&self, job: JobId, claims: Vec<Claim>) {
        if !claims.is_empty() {
            lock(&self.held).insert(job, claims);
        }
    }

    /// Takes the locks once.
    pub(crate) fn touch(&self) {
        drop(lock(&self.loads));
        drop(lock(&self.held));
    }

    /// The job has ended.
    pub(crate) fn release(&self, job: JobId) {
        let claims = lock(&self.held).remove(&job);
        drop(claims);
    }
}

impl Claim {
    /// What it takes, for the next manager.
    pub(crate) fn footprint(&self, topology: &Topology) -> Option<Footprint> {
        topology.graph().map(|graph| Footprint::of(graph, &self.copies))
    }
}

/// Whether a lane may go over a tree beside those of the other lanes.
fn is_new(plan: &Plan, others: &[Plan]) -> bool {
    plan.tree.is_some() && others.iter().all(|other| other.tree != plan.tree && other.folds_as(plan))
}

/// Whether all nodes of a tree are there.
fn is_here(plan: &Plan, here: &BTreeSet<String>) -> bool {
    plan.nodes.iter().all(|node| here.contains(&node.name))
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
