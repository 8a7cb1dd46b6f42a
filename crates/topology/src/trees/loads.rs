//! What the trees that are there already take of links and nodes.

use super::Tree;
use crate::graph::{Graph, LinkRate};

/// Streams on each link and at each node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Loads {
    links: Vec<u32>,
    // On the NIC of a server, the busier direction.
    nodes: Vec<u32>,
}

impl Loads {
    /// An idle fabric.
    pub fn idle(graph: &Graph) -> Self {
        Self { links: vec![0; graph.links().len()], nodes: vec![0; graph.nodes().len()] }
    }

    /// One more tree.
    pub fn add(&mut self, tree: &Tree) {
        let copies = tree.copies();
        for (link, count) in copies.links {
            self.links[link] += count;
        }
        for (node, below, above) in copies.nodes {
            self.nodes[node] += below + above;
        }
    }

    /// A tree has ended.
    pub fn remove(&mut self, tree: &Tree) {
        let copies = tree.copies();
        for (link, count) in copies.links {
            self.links[link] -= count;
        }
        for (node, below, above) in copies.nodes {
            self.nodes[node] -= below + above;
        }
    }

    /// Streams on a link.
    pub fn link(&self, link: usize) -> u32 {
        self.links[link]
    }

    /// Streams at a node.
    pub fn node(&self, node: usize) -> u32 {
        self.nodes[node]
    }

    /// Whether a tree over trunks and nodes that are in no other tree leaves them all to it alone; hosts' own links do not count.
    pub fn leaves_alone(&self, graph: &Graph, tree: &Tree) -> bool {
        let is_idle = |branch: &super::Branch| {
            let link = branch.parent.is_none_or(|(_, link)| self.links[link] == 0);
            let server = branch.node.filter(|node| graph.nodes()[*node].nic.is_some());
            link && server.is_none_or(|node| self.nodes[node] == 0)
        };
        tree.branches.iter().all(is_idle)
    }
}

/// Bits per second of `rate` for each stream, when `more` are added to those that are there.
pub(super) fn share(rate: LinkRate, there: u32, more: u32) -> u64 {
    rate.bits_per_second() / u64::from(there.saturating_add(more).max(1))
}
