//! A job's fabric as a graph, whatever form the topology file has, and what its manager predicts
//! for the job.

use std::collections::HashMap;

use trib_messages::prediction::{PredictedTime, Prediction, PredictionStatus};

use super::host_based::Members;
use super::table::{Ground, table};
use super::tree_cost::TreeCost;
use super::{Constants, Ranks, Way};
use crate::graph::{Graph, LinkRate, job_graph};
use crate::plan::Plan;
use crate::topology::Topology;
use crate::trees::{Loads, Tree, find_tree};

/// What a manager has decided about a job.
#[derive(Clone, Copy, Debug)]
pub struct JobGround<'a> {
    /// The fabric.
    pub topology: &'a Topology,
    /// The hosts of its ranks, by rank.
    pub hosts: &'a [String],
    /// Its lanes: the index of the tree over which each goes, and its plan.
    pub lanes: &'a [(usize, &'a Plan)],
    /// Vectors of at least this many bytes are cut over the lanes.
    pub stripe_threshold: u64,
    /// The number of worker threads of the node with the fewest.
    pub workers: u32,
}

/// The prediction for a job, for its ranks and for people. `None` if there is only one host, or if
/// no graph can be made.
pub fn predict_job(ground: &JobGround<'_>, constants: &Constants) -> Option<(Prediction, PredictionStatus)> {
    let (_, first) = ground.lanes.first()?;
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut hosts = Vec::with_capacity(ground.hosts.len());
    for host in ground.hosts {
        let next = numbers.len() as u32;
        hosts.push(*numbers.entry(host.as_str()).or_insert(next));
    }
    if numbers.len() < 2 {
        return None;
    }
    let made;
    let (graph, ranks, trees, assumed): (&Graph, Vec<usize>, Vec<Tree>, bool) = match ground.topology.graph() {
        Some(graph) => {
            let find = |entry: &usize| graph.find(&ground.topology.hosts()[*entry].name);
            let ranks = first.hosts.iter().map(find).collect::<Option<_>>()?;
            (graph, ranks, different_trees(ground.lanes)?, false)
        }
        None => {
            let (graph, ranks, assumed) = job_graph(ground.topology, first, &hosts)?;
            made = graph;
            let leaders = Members::new(&made, &ranks, &constants.model).hosts().to_vec();
            let tree = find_tree(&made, &leaders, &Loads::idle(&made)).ok()?;
            (&made, ranks, vec![tree], assumed)
        }
    };
    let model = super::Model { workers: f64::from(ground.workers.max(1)), ..constants.model };
    let members = Members::new(graph, &ranks, &model);
    let levels = first.nodes.iter().any(|node| node.home.node().is_none());
    let placed = Ranks { hosts: &ranks, levels };
    let short = TreeCost::of(graph, &trees[..1], 1, placed, &model);
    let lanes = ground.lanes.len();
    let long = (lanes > 1).then(|| TreeCost::of(graph, &trees, lanes.div_ceil(trees.len()), placed, &model));
    let way = match (lanes, trees.len()) {
        (1, _) => Way::Trees(1),
        (lanes, 1) => Way::Lanes(lanes),
        (_, trees) => Way::Trees(trees),
    };
    let (allreduces, reduces) = (members.allreduces(), members.reduces());
    let cut = Ground {
        short: &short,
        long: long.as_ref(),
        threshold: ground.stripe_threshold,
        rate: members.hosts().iter().map(|host| members.rate(*host)).fold(f64::INFINITY, f64::min),
    };
    let shapes = table(&cut, &members, [&allreduces, &reduces], &model);
    let whole = shapes.first()?.clone();
    let (short, long) = (short.candidate(Way::Trees(1)), long.map(|cost| cost.candidate(way)));
    let time = |bytes: &u64| {
        let tree = long.as_ref().filter(|_| *bytes >= ground.stripe_threshold).unwrap_or(&short);
        let best = allreduces.iter().min_by(|a, b| a.time(*bytes).total_cmp(&b.time(*bytes)))?;
        Some(PredictedTime {
            bytes: *bytes,
            tree: tree.way.to_string(),
            tree_ns: nanoseconds(tree.time(*bytes)),
            hosts: best.way.to_string(),
            hosts_ns: nanoseconds(best.time(*bytes)),
        })
    };
    let status = PredictionStatus {
        constants: constants.to_string(),
        assumed_rate: assumed.then(|| LinkRate::DEFAULT.to_string()),
        workers: ground.workers,
        whole,
        times: SIZES.iter().filter_map(time).collect(),
    };
    Some((Prediction { hosts, shapes }, status))
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// One plan's tree for each of the job's trees, in their order.
fn different_trees(lanes: &[(usize, &Plan)]) -> Option<Vec<Tree>> {
    let mut trees: Vec<Tree> = Vec::new();
    for (tree, plan) in lanes {
        if *tree == trees.len() {
            trees.push(plan.tree.clone()?);
        }
    }
    Some(trees)
}

/// The lengths of vectors, in bytes, for which people are told times.
const SIZES: [u64; 5] = [8, 4 << 10, 64 << 10, 1 << 20, 16 << 20];
