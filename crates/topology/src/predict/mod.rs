//! How long an allreduce takes over each candidate plan, and which plan is the best.
//!
//! The model is Hockney's: a time is a latency and a number of seconds per byte, `T(n) = a + n x b`. (R. W. Hockney, "The
//! communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20, 1994.)
//!
//! - *Trees.* `a` is a constant per level of nodes. `b` is that of the slowest part, because segments overlap: on a link, 8
//!   over its rate for each stream of the plan on it; on a server's NIC the same for all its children's streams and its own;
//!   at a node or host processor time per byte moved. Stripes carry equal parts of the vector.
//! - *Host-based.* A ring takes `2(p-1)` steps and moves `2(p-1)/p` of the vector through each host; recursive doubling takes `log2 p`
//!   steps and moves the vector in each (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
//!   operations in MPICH", 2005). Where ring neighbours or partners hang on different switches they share what goes up from their
//!   switch; beyond that every link is taken as free, in favour of these plans.
//!
//! The constants are from one run of the comparison that docs/performance.md shows, on a virtual machine of two cores; a test
//! holds the model against that run's times. On other machines give your own.

mod fit;
mod host_based;
mod report;
mod stand_in;
mod tree_cost;

use serde::Serialize;

use crate::graph::Graph;
use crate::trees::{Loads, Tree, TreeError, find_stripes};

pub use fit::{Fit, Stop, fit};
pub use report::{BranchReport, TreeReport};
pub use stand_in::stands_in;

/// The constants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model {
    /// Seconds that one level of nodes adds, up and down: half of the 82 us of 8 bytes over two levels.
    pub level_latency: f64,
    /// Seconds of one step between hosts: a third of the 101 us of 8 bytes among 8 hosts (MPICH).
    pub step_latency: f64,
    /// Share of a link's rate that vectors get on a tree.
    pub tree_efficiency: f64,
    /// Share of a link's rate that vectors get between hosts: Open MPI's ring has 0.99 on idle and 0.85 on blocking trunks.
    pub host_efficiency: f64,
    /// Processor seconds of a node per byte received from a child or sent to one.
    pub node_byte: f64,
    /// Processor seconds of a host per byte sent and received.
    pub host_byte: f64,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            level_latency: 41e-6,
            step_latency: 34e-6,
            tree_efficiency: 0.98,
            host_efficiency: 0.93,
            node_byte: 0.27e-9,
            host_byte: 0.46e-9,
        }
    }
}

/// How to do it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// So many trees that share the vector equally; 1 is a tree for all of it.
    Trees(usize),
    /// A ring of the hosts.
    Ring,
    /// Recursive doubling among the hosts.
    Doubling,
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Way::Trees(1) => f.write_str("one tree"),
            Way::Trees(count) => write!(f, "{count} trees"),
            Way::Ring => f.write_str("host ring"),
            Way::Doubling => f.write_str("host doubling"),
        }
    }
}

impl Serialize for Way {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
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
    /// Seconds of an allreduce.
    pub fn time(&self, bytes: u64) -> f64 {
        self.latency + bytes as f64 * self.byte
    }
}

/// What was planned for a job, and what may be expected of it.
#[derive(Debug)]
pub struct Forecast {
    /// The trees of the candidate with the most; each candidate takes the first of them.
    pub trees: Vec<Tree>,
    /// One tree first.
    pub candidates: Vec<Candidate>,
}

impl Forecast {
    /// What to do with a vector: what is fastest, but no more trees than it takes to come within a twentieth of the
    /// fastest number of them, as the model is not better than that. Never what is predicted to be slower than the hosts alone.
    pub fn choice(&self, bytes: u64) -> &Candidate {
        let by_time = |a: &&Candidate, b: &&Candidate| a.time(bytes).total_cmp(&b.time(bytes));
        let (trees, hosts): (Vec<&Candidate>, Vec<&Candidate>) =
            self.candidates.iter().partition(|candidate| matches!(candidate.way, Way::Trees(_)));
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

/// Plans a job on `hosts`, alone on the fabric, with up to `stripes` trees.
pub fn forecast(graph: &Graph, hosts: &[usize], stripes: usize, model: &Model) -> Result<Forecast, TreeError> {
    let trees = find_stripes(graph, hosts, stripes.min(STRIPES_MAX), &mut Loads::idle(graph))?;
    let mut candidates: Vec<Candidate> =
        (1..=trees.len()).map(|count| tree_cost::candidate(graph, &trees[..count], model)).collect();
    if hosts.len() > 1 {
        candidates.push(host_based::ring(graph, hosts, model));
        candidates.push(host_based::doubling(graph, hosts, model));
    }
    Ok(Forecast { trees, candidates })
}

/// How much slower fewer trees may be and still be chosen.
const TOLERANCE: f64 = 1.05;
/// Most trees of one job.
pub const STRIPES_MAX: usize = 16;

#[cfg(test)]
mod tests;
