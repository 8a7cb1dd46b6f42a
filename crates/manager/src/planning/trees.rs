//! The trees of admitted jobs in a fabric that is given as a graph: what they take of links and
//! nodes, so that the next job's tree goes elsewhere, and around nodes that are away.
//!
//! A job of an earlier manager counts with what the file of jobs says about its tree. In a fabric
//! whose tree is given there is nothing to choose, and nothing is kept here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use trib_topology::predict::{Model, stands_in};
use trib_topology::trees::{Copies, Footprint, Loads, Tree};
use trib_topology::{Plan, PlanError, Program, Topology, plan};
use trib_wire::ids::JobId;

use super::wish::Wish;
use crate::lock::lock;

/// The trees of admitted jobs.
pub(crate) struct Trees {
    loads: Arc<Mutex<Loads>>,
    held: Mutex<BTreeMap<JobId, Vec<Claim>>>,
    model: Model,
}

/// What one tree takes, until this value is dropped.
pub(crate) struct Claim {
    loads: Arc<Mutex<Loads>>,
    copies: Copies,
}

/// One lane of a job.
pub(crate) struct PlannedLane {
    /// The number of the tree over which it goes, among the job's.
    pub(crate) tree: usize,
    pub(crate) plan: Plan,
}

/// A job's lanes over its trees.
pub(crate) struct Planned {
    pub(crate) lanes: Vec<PlannedLane>,
    pub(crate) claims: Vec<Claim>,
    /// The nodes of its best tree that are away or do not answer, so that it got another tree.
    pub(crate) around: Vec<String>,
}

impl Trees {
    pub(crate) fn new(topology: &Topology, model: Model) -> Self {
        Self { loads: Arc::new(Mutex::new(topology.idle_loads())), held: Mutex::default(), model }
    }

    /// Plans the lanes of one job beside the trees that are there, and claims what they take. They
    /// go over as many trees as the job has a use for, no two of which have the same nodes and all
    /// of which fold as the first does. If these are fewer than the lanes, several go over each
    /// tree, by different ports and links of it. If the best tree has nodes that are not `here` and
    /// another one does without these, the other one is taken.
    pub(crate) fn plan(
        &self,
        topology: &Topology,
        program: &Program<'_>,
        here: &BTreeSet<String>,
        wish: &Wish,
    ) -> Result<Planned, PlanError> {
        // The lock is kept meanwhile, so that two jobs that are planned at once see each other.
        let mut loads = lock(&self.loads);
        let best = plan(topology, program, &loads)?;
        let (first, around) = go_around(topology, program, here, &mut loads, best, &self.model);
        let mut claims: Vec<Claim> = Vec::new();
        let mut claim = |loads: &mut Loads, plan: &Plan| {
            claims.extend(plan.tree.as_ref().map(|tree| self.claim(loads, tree.copies())));
        };
        claim(&mut loads, &first);
        let mut trees = vec![first];
        let mut pressed: Vec<Copies> = Vec::new();
        while trees.len() < wish.trees_most() {
            let Ok(another) = plan(topology, program, &loads) else { break };
            let Some(tree) = &another.tree else { break };
            if !is_here(&another, here) || !trees[0].folds_as(&another) {
                break;
            } else if trees.iter().all(|known| !has_same_nodes(known, &another)) {
                claim(&mut loads, &another);
                trees.push(another);
            } else if pressed.len() < PRESSES {
                // The best plan is a tree that the job has already, over other links. If these
                // links count as taken, another tree may be the best.
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
            // A link counts once for all lanes of a tree, which share the vector that the tree
            // carries.
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

    /// The number of jobs of which something is held.
    pub(crate) fn holders(&self) -> usize {
        lock(&self.held).len()
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
    /// What the tree takes, for the next manager.
    pub(crate) fn footprint(&self, topology: &Topology) -> Option<Footprint> {
        topology.graph().map(|graph| Footprint::of(graph, &self.copies))
    }
}

/// Whether two plans have the same nodes, whatever their links are.
fn has_same_nodes(plan: &Plan, other: &Plan) -> bool {
    let homes = |plan: &Plan| plan.nodes.iter().map(|node| node.home).collect::<Vec<_>>();
    homes(plan) == homes(other)
}

/// Whether all aggregation nodes of a tree are there.
fn is_here(plan: &Plan, here: &BTreeSet<String>) -> bool {
    plan.at_nodes().all(|(_, node)| here.contains(&node.name))
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.loads).remove_copies(&self.copies);
    }
}

/// The best plan. If nodes of it are away, another plan without any that are, if it is good enough;
/// if there is none, the best plan again, to be refused with the names of its nodes. Returns also
/// the nodes that it goes around.
fn go_around(
    topology: &Topology,
    program: &Program<'_>,
    here: &BTreeSet<String>,
    loads: &mut Loads,
    best: Plan,
    model: &Model,
) -> (Plan, Vec<String>) {
    let away: BTreeSet<&String> =
        best.at_nodes().map(|(_, node)| &node.name).filter(|name| !here.contains(*name)).collect();
    let (Some(graph), Some(better), false) = (topology.graph(), &best.tree, away.is_empty()) else {
        return (best, Vec::new());
    };
    let closed = topology.nodes().iter().enumerate().filter(|(_, node)| !here.contains(&node.name));
    closed.for_each(|(node, _)| loads.close(node));
    let other = plan(topology, program, loads);
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

/// How often the search for another tree is repeated, each time with more of the known trees taken.
const PRESSES: usize = 2;
