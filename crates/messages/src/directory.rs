//! How people call the nodes, ranks and collectives of one job.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use trib_wire::{Collective, Directory, NodeId, Rank};

use crate::processes::{Process, Processes};

/// The names of one job's nodes, where its ranks run, and what its program calls collectives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobDirectory {
    nodes: BTreeMap<NodeId, String>,
    processes: Processes,
    calls: BTreeMap<Collective, String>,
}

impl JobDirectory {
    /// Of these nodes and processes.
    pub fn new(nodes: impl IntoIterator<Item = (NodeId, String)>, processes: Processes) -> JobDirectory {
        JobDirectory { nodes: nodes.into_iter().collect(), processes, calls: BTreeMap::new() }
    }

    /// The same for users of a program that has names of its own for these collectives.
    #[must_use]
    pub fn with_calls(self, calls: BTreeMap<Collective, String>) -> JobDirectory {
        JobDirectory { calls, ..self }
    }

    /// Where a rank runs, if that is known.
    pub fn process(&self, rank: Rank) -> Option<Process> {
        self.processes.of(rank)
    }
}

impl Directory for JobDirectory {
    fn node(&self, node: NodeId) -> String {
        // Only a peer that errs, or lies, names one that the job does not have.
        self.nodes.get(&node).cloned().unwrap_or_else(|| "(unknown)".into())
    }

    fn rank(&self, rank: Rank) -> String {
        match self.processes.of(rank) {
            Some(process) => format!("rank {} {process}", rank.0),
            None => format!("rank {}", rank.0),
        }
    }

    fn call(&self, collective: Collective) -> String {
        self.calls.get(&collective).map_or_else(|| collective.to_string(), String::clone)
    }
}
