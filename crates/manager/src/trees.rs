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

use crate::lanes::Wish;

/// The trees.
pub(crate) struct Trees {
    loads: Arc<Mutex<Loads>>,
    held: Mutex<BTreeMap<JobId, Vec<Claim>>>,
    model: Model,
}

/// What one tree takes, until this is dropped.
pub(crate) struct Claim {
    loads: Arc<Mutex<Loads>>,
    copies: Copies,
}

/// One lane of a job.
pub(crate) struct PlannedLane {
    /// Which of the job's trees it goes over.
    pub(crate) tree: usize,
    pub(crate) plan: Plan,
}

/// A job's lanes over its trees.
pub(crate) struct Planned {
    pub(crate) lanes: Vec<PlannedLane>,
    pub(crate) claims: Vec<Claim>,
    /// Nodes of its best tree that are away or do not answer, so that it got another one.
    pub(crate) around: Vec<String>,
}

impl Trees {
    pub(crate) fn new(topology: &Topology, model: Model) -> Self {
        Self { loads: Arc::new(Mutex::new(topology.idle_loads())), held: Mutex::default(), model }
    }

    /// Plans the lanes of one job beside the trees that are there, and claims what they take: over as many trees as it has a use for, no
    /// two of the same nodes and all folding as the first; and where these are fewer than the lanes, several over each, by
    /// different ports and links of it. Where the best tree has nodes that are not `here` and another one does without them, it is
    /// that one.
    pub(crate) fn plan(
        &self,
        topology: &Topology,
        hosts: &[String],
        here: &BTreeSet<String>,
        wish: &Wish,
    ) -> Result<Planned, PlanError> {
        // Two jobs that are planned at once see each other.
        let mut loads = lock(&self.loads);
        let best = plan(topology, hosts, &loads)?;
        let (first, around) = go_around(topology, hosts, here, &mut loads, best, &self.model);
        let mut claims: Vec<Claim> = Vec::new();
        let mut claim = |loads: &mut Loads, plan: &Plan| {
            claims.extend(plan.tree.as_ref().map(|tree| self.claim(loads, tree.copies())));
        };
        claim(&mut loads, &first);
        let mut trees = vec![first];
        let mut pressed: Vec<Copies> = Vec::new();
        while trees.len() < wish.trees_most() {
            let Ok(another) = plan(topology, hosts, &loads) else { break };
            let Some(tree) = &another.tree else { break };
            if !is_here(&another, here) || !trees[0].folds_as(&another) {
                break;
            } else if trees.iter().all(|known| !has_same_nodes(known, &another)) {
                claim(&mut loads, &another);
                trees.push(another);
            } else if pressed.len() < PRESSES {
                // Other links of a tree that is there look best: as if they were taken, another tree may.
                let taken = tree.copies();
                loads.add_copies(&taken);
                pressed.push(taken);
            } else {
                break;
            }
        }
        pressed.iter().for_each(|copies| loads.remove_copies(copies));
        let count = trees.len();
        let mut lanes: Vec<PlannedLane> =
            trees.into_iter().enumerate().map(|(tree, plan)| PlannedLane { tree, plan }).collect();
        for lane in count..wish.lanes() {
            let tree = lane % count;
            let own: Vec<&Plan> = lanes.iter().filter(|lane| lane.tree == tree).map(|lane| &lane.plan).collect();
            let next = own[0].beside(topology, &loads, &own);
            let copies = |plan: &Plan| plan.tree.as_ref().map(|tree| tree.copies());
            let known: Vec<Copies> = own.iter().filter_map(|plan| copies(plan)).collect();
            // A link counts once for all lanes of a tree, which share the vector that the tree carries.
            let further = copies(&next).map(|copies| copies.beyond(&known)).filter(|copies| !copies.links.is_empty());
            claims.extend(further.map(|copies| self.claim(&mut loads, copies)));
            lanes.push(PlannedLane { tree, plan: next });
        }
        Ok(Planned { lanes, claims, around })
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

/// Whether two plans are over the same nodes, by whatever links.
fn has_same_nodes(plan: &Plan, other: &Plan) -> bool {
    let places = |plan: &Plan| plan.nodes.iter().map(|node| node.place).collect::<Vec<_>>();
    places(plan) == places(other)
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
    model: &Model,
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
    let does = |tree: &Tree| stands_in(graph, tree, better, model);
    match other {
        Ok(other) if other.tree.as_ref().is_some_and(does) => {
            let away = away.into_iter().cloned().collect();
            (other, away)
        }
        _ => (best, Vec::new()),
    }
}

/// How often the search for another tree is repeated with more of those that are known taken.
const PRESSES: usize = 2;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
