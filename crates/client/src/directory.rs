//! The names of a job's nodes and ranks for people, as the ticket gives them.

use std::collections::BTreeMap;

use trib_wire::control::job::JobTicket;
use trib_wire::control::processes::Processes;
use trib_wire::{Directory, NodeId, Rank};

/// The names of one job.
#[derive(Default)]
pub(crate) struct JobDirectory {
    nodes: BTreeMap<NodeId, String>,
    processes: Processes,
}

impl JobDirectory {
    pub(crate) fn of(ticket: &JobTicket) -> JobDirectory {
        let nodes = ticket.nodes.iter().map(|node| (node.node, node.name.clone())).collect();
        JobDirectory { nodes, processes: ticket.processes.clone() }
    }
}

impl Directory for JobDirectory {
    fn node(&self, node: NodeId) -> String {
        // A fault may come from a node of another lane, but never from one that the ticket lacks.
        self.nodes.get(&node).cloned().unwrap_or_else(|| node.to_string())
    }

    fn rank(&self, rank: Rank) -> String {
        match self.processes.of(rank) {
            Some(process) => format!("rank {} {process}", rank.0),
            None => format!("rank {}", rank.0),
        }
    }
}
