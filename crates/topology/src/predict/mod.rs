//! How long an allreduce takes with each candidate plan, which plan is the best, and for which
//! lengths of vectors a tree is at least as fast as the hosts alone.
//!
//! The model is Hockney's: a time is a latency and a number of seconds per byte, `T(n) = a + n x
//! b`. (R. W. Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2",
//! Parallel Computing 20, 1994.)
//!
//! - *Trees.* `a` is one hop up and one down for each level of nodes, and the time that nodes
//!   spend on the messages of their children. `b` is that of the slowest part, because segments
//!   overlap. On a link it is 8 over its rate for each stream of the plan on it. A host has one
//!   there, or, if its ranks have no node of their own, one for each. On a server's NIC it is
//!   the same for all its children's streams and its own. At a node or host it is the
//!   processor's time per byte moved. Stripes carry equal parts of the vector; lanes over one
//!   tree spread over the workers of its nodes.
//! - *Host-based.* A ring takes `2(p-1)` steps and moves `2(p-1)/p` of the vector through each
//!   rank. Recursive doubling takes `log2 p` steps and moves the vector in each. Halving and
//!   doubling takes twice as many steps and moves `2(p-1)/p` of it (R. Thakur, R. Rabenseifner,
//!   W. Gropp, "Optimization of collective communication operations in MPICH", 2005). If hosts
//!   have several ranks, there are also algorithms that sum within a host first. If neighbours or
//!   partners are on different switches, they share the links that go up from their switch.
//!   Beyond that every link is taken as free, in favour of these plans.
//!
//! Map: `constants` (the figures from which it predicts), `tree_cost`, `host_based`, `table` (what
//! a job is told), `job` (its fabric as a graph, whatever form the topology file has), `fit`,
//! `stand_in`, `report`.

mod constants;
mod fit;
mod host_based;
mod job;
mod report;
mod stand_in;
mod table;
mod tree_cost;

use std::collections::HashMap;

use serde::Serialize;
use trib_messages::prediction::Range;

use crate::graph::Graph;
use crate::trees::{Loads, Tree, TreeError, find_stripes};

use host_based::Members;
use tree_cost::TreeCost;

pub use constants::{About, CONSTANTS, Constant, Constants, ConstantsError, Measured, Model, laboratory_file, written};
pub use fit::{Fit, Stop, fit};
pub use job::{JobGround, predict_job};
pub use report::{BranchReport, TreeReport};
pub use stand_in::stands_in;

/// A way to do the operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// This many trees that share the vector equally. With 1, a tree carries all of it.
    Trees(usize),
    /// One tree with this many lanes, over which the vector is cut.
    Lanes(usize),
    /// A ring of the ranks.
    Ring,
    /// Recursive doubling among the ranks; for a reduce, a tree of ranks.
    Doubling,
    /// Recursive halving and doubling among the ranks (Rabenseifner).
    Halving,
    /// A tree of the ranks, for a reduce.
    HostTree,
    /// Within each host first, then recursive doubling among leaders, or segment by segment up and
    /// down a tree of them (Open MPI's `han`), whose root sends and receives as many vectors.
    LeadersDoubling,
    /// Within each host first, then recursive halving and doubling among leaders.
    LeadersHalving,
    /// Within each host first, then a tree of leaders, for a reduce.
    LeadersTree,
    /// Shared memory: all ranks are on one host.
    Memory,
}

impl Way {
    /// Whether it is a way of ours, over a tree.
    pub fn is_tree(self) -> bool {
        matches!(self, Way::Trees(_) | Way::Lanes(_))
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Way::Trees(1) => f.write_str("one tree"),
            Way::Trees(count) => write!(f, "{count} trees"),
            Way::Lanes(count) => write!(f, "{count} lanes"),
            Way::Ring => f.write_str("host ring"),
            Way::Doubling => f.write_str("host doubling"),
            Way::Halving => f.write_str("host halving"),
            Way::HostTree => f.write_str("host tree"),
            Way::LeadersDoubling => f.write_str("leaders doubling"),
            Way::LeadersHalving => f.write_str("leaders halving"),
            Way::LeadersTree => f.write_str("leaders tree"),
            Way::Memory => f.write_str("shared memory"),
        }
    }
}

impl Serialize for Way {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The ranks of a job.
#[derive(Clone, Copy, Debug)]
pub struct Ranks<'a> {
    /// The host of each rank, by rank, as a vertex of the graph.
    pub hosts: &'a [usize],
    /// Whether the ranks of a host hang below a node that lives in one of them, wherever there are
    /// two or more. Nodes for NUMA domains below it are not counted.
    pub levels: bool,
}

impl<'a> Ranks<'a> {
    /// Ranks that are all children of aggregation nodes.
    pub fn flat(hosts: &'a [usize]) -> Ranks<'a> {
        Ranks { hosts, levels: false }
    }

    /// How many of them each host has.
    fn on_hosts(&self) -> HashMap<usize, u32> {
        let mut on_host = HashMap::new();
        self.hosts.iter().for_each(|host| *on_host.entry(*host).or_default() += 1);
        on_host
    }
}

/// A plan's latency and time per byte.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Candidate {
    /// The plan.
    pub way: Way,
    /// Seconds that any vector takes.
    pub latency: f64,
    /// Seconds that each byte adds.
    pub byte: f64,
    /// What takes longest for a byte, in words.
    pub limit: String,
}

impl Candidate {
    /// The seconds that an operation on a vector of this length takes.
    pub fn time(&self, bytes: u64) -> f64 {
        self.latency + bytes as f64 * self.byte
    }
}

/// The plan for a job, and what may be expected of it.
#[derive(Debug)]
pub struct Forecast {
    /// The trees of the candidate with the most trees; each candidate takes the first of them.
    pub trees: Vec<Tree>,
    /// The candidates; that with one tree is the first.
    pub candidates: Vec<Candidate>,
}

impl Forecast {
    /// The best way for a vector of this length. It is the fastest one, but with no more trees than
    /// it takes to come within a twentieth of the fastest, because the model is no more exact. It
    /// is never a way that is predicted to be slower than the hosts alone.
    pub fn choice(&self, bytes: u64) -> &Candidate {
        let by_time = |a: &&Candidate, b: &&Candidate| a.time(bytes).total_cmp(&b.time(bytes));
        let (trees, hosts): (Vec<&Candidate>, Vec<&Candidate>) =
            self.candidates.iter().partition(|candidate| candidate.way.is_tree());
        let fastest = trees.iter().copied().min_by(by_time).expect("one tree is always a candidate");
        let hosts = hosts.into_iter().min_by(by_time);
        let bound = hosts.map_or(f64::INFINITY, |hosts| hosts.time(bytes));
        match hosts.filter(|hosts| hosts.time(bytes) < fastest.time(bytes)) {
            Some(hosts) => hosts,
            None => {
                let enough = (fastest.time(bytes) * TOLERANCE).min(bound);
                trees.into_iter().find(|tree| tree.time(bytes) <= enough).unwrap_or(fastest)
            }
        }
    }
}

impl Forecast {
    /// The lengths of vectors for which a tree is predicted to be at least as fast as all of the
    /// hosts' own ways.
    pub fn pays(&self, tree: &Candidate) -> Option<Range> {
        let hosts = self.candidates.iter().filter(|candidate| !candidate.way.is_tree());
        let lines: Vec<(f64, f64)> = hosts.map(|candidate| (candidate.latency, candidate.byte)).collect();
        table::range((tree.latency, tree.byte), &lines, 0, u64::MAX)
    }
}

/// Plans a job which is alone on the fabric, with up to `stripes` trees, or as many lanes over one.
pub fn forecast(
    graph: &Graph,
    ranks: Ranks<'_>,
    stripes: usize,
    lanes: usize,
    model: &Model,
) -> Result<Forecast, TreeError> {
    let members = Members::new(graph, ranks.hosts, model);
    let trees = find_stripes(graph, members.hosts(), stripes.min(STRIPES_MAX), &mut Loads::idle(graph))?;
    let cost = |count: usize, lanes: usize| TreeCost::of(graph, &trees[..count], lanes, ranks, model);
    let mut candidates: Vec<Candidate> =
        (1..=trees.len()).map(|count| cost(count, 1).candidate(Way::Trees(count))).collect();
    if lanes > 1 {
        candidates.push(cost(1, lanes).candidate(Way::Lanes(lanes)));
    }
    candidates.extend(members.allreduces());
    Ok(Forecast { trees, candidates })
}

/// How many times as long a plan with fewer trees may take and still be chosen.
const TOLERANCE: f64 = 1.05;
/// The most trees of one job.
pub const STRIPES_MAX: usize = 16;

#[cfg(test)]
mod tests;
