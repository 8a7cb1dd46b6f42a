//! How many jobs of one kind fit on a fabric at the same time.

use std::collections::HashSet;

use serde::Serialize;

use crate::graph::Graph;
use crate::trees::{Loads, TreeError, find_stripes};

/// How many jobs, each with as many hosts and trees as the first, run side by side as fast as each
/// would alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Fit {
    /// The number of jobs, the first included.
    pub jobs: usize,
    /// Why there are no more.
    pub stop: Stop,
}

/// Why no further job fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// Too few hosts are left.
    Hosts,
    /// The next job's trees would share a link between switches, or a server's NIC, with another
    /// job's.
    Links,
    /// No tree connects the next job's hosts.
    Unconnected,
    /// More jobs may fit, but counting ended.
    Enough,
}

/// Counts the jobs. The hosts of further jobs are taken in the file's order from those that are
/// left.
pub fn fit(graph: &Graph, hosts: &[usize], stripes: usize) -> Result<Fit, TreeError> {
    let mut loads = Loads::idle(graph);
    find_stripes(graph, hosts, stripes, &mut loads)?;
    let taken: HashSet<usize> = hosts.iter().copied().collect();
    let free: Vec<usize> = graph.hosts().filter(|host| !taken.contains(host)).collect();
    let mut jobs = 1;
    for next in free.chunks_exact(hosts.len()) {
        if jobs == JOBS_MAX {
            return Ok(Fit { jobs, stop: Stop::Enough });
        }
        let mut with_it = loads.clone();
        let Ok(trees) = find_stripes(graph, next, stripes, &mut with_it) else {
            return Ok(Fit { jobs, stop: Stop::Unconnected });
        };
        if !trees.iter().all(|tree| loads.leaves_alone(graph, tree)) {
            return Ok(Fit { jobs, stop: Stop::Links });
        }
        loads = with_it;
        jobs += 1;
    }
    Ok(Fit { jobs, stop: Stop::Hosts })
}

/// The number of jobs at which counting ends, because each job costs a search.
const JOBS_MAX: usize = 256;
