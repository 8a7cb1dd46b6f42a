//! What the existing trees take of links and nodes.

use super::{Copies, Tree};
use crate::graph::{Graph, LinkRate};

/// Streams on each link and at each node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Loads {
    links: Vec<u32>,
    // For a server, the streams in the busier direction of its NIC.
    nodes: Vec<u32>,
    // Nodes that no new tree may use.
    closed: Vec<bool>,
}

impl Loads {
    /// The loads of a fabric without trees.
    pub fn idle(graph: &Graph) -> Self {
        let nodes = graph.nodes().len();
        Self { links: vec![0; graph.links().len()], nodes: vec![0; nodes], closed: vec![false; nodes] }
    }

    /// Adds a tree.
    pub fn add(&mut self, tree: &Tree) {
        self.add_copies(&tree.copies());
    }

    /// Adds a tree of which only the streams are known.
    pub fn add_copies(&mut self, copies: &Copies) {
        for (link, count) in &copies.links {
            self.links[*link] += count;
        }
        for (node, below, above) in &copies.nodes {
            self.nodes[*node] += below + above;
        }
    }

    /// Removes a tree that has ended.
    pub fn remove(&mut self, tree: &Tree) {
        self.remove_copies(&tree.copies());
    }

    /// Removes streams that were added.
    pub fn remove_copies(&mut self, copies: &Copies) {
        for (link, count) in &copies.links {
            self.links[*link] -= count;
        }
        for (node, below, above) in &copies.nodes {
            self.nodes[*node] -= below + above;
        }
    }

    /// Forbids this node to new trees: data passes through its switch, unless the switch has
    /// another node.
    pub fn close(&mut self, node: usize) {
        self.closed[node] = true;
    }

    /// Allows all nodes to new trees again.
    pub fn open(&mut self) {
        self.closed.fill(false);
    }

    /// Whether new trees may use a node.
    pub(super) fn is_open(&self, node: usize) -> bool {
        !self.closed[node]
    }

    /// The number of streams on a link.
    pub fn link(&self, link: usize) -> u32 {
        self.links[link]
    }

    /// The rate that a link leaves for one more stream, in bits per second.
    pub(crate) fn left(&self, graph: &Graph, link: usize) -> u64 {
        share(graph.links()[link].rate, self.links[link], 1)
    }

    /// The number of streams at a node.
    pub fn node(&self, node: usize) -> u32 {
        self.nodes[node]
    }

    /// Whether the trunks and nodes of a tree are in no other tree, so that it has them for itself
    /// alone. The hosts' own links do not count.
    pub fn leaves_alone(&self, graph: &Graph, tree: &Tree) -> bool {
        let is_idle = |branch: &super::Branch| {
            let link = branch.parent.is_none_or(|(_, link)| self.links[link] == 0);
            let server = branch.node.filter(|node| graph.nodes()[*node].nic.is_some());
            link && server.is_none_or(|node| self.nodes[node] == 0)
        };
        tree.branches.iter().all(is_idle)
    }
}

/// The share of `rate` for each stream, in bits per second, when `more` streams are added to those
/// that are there.
pub(super) fn share(rate: LinkRate, there: u32, more: u32) -> u64 {
    rate.bits_per_second() / u64::from(there.saturating_add(more).max(1))
}
