//! Which of several links, and which of several addresses of a node, a lane takes: its port.
//!
//! ```text
//!   h0 10.0.0.1 ---- 10.0.1.1 leaf0        lane 0: port 0
//!      10.1.0.1 ---- 10.1.1.1              lane 1: port 1, the same tree
//! ```
//! A node with several addresses has a port for each. A lane takes one port everywhere: the p-th
//! address of such a node, the p-th of the parallel links to its switch, and the p-th address of a
//! host whose links the file does not tell. If there are fewer than p, it counts round. So each
//! logical node of a lane is at one address, and the network of one port needs no way to those of
//! others. Below nodes with one address, each lane chooses among parallel links edge by edge.
//!
//! Lanes of one job over one tree take different ports and links as far as there are any. A lane
//! takes the one that the fewest lanes have; among these the one that other trees leave the most
//! of; then the first.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;

use trib_messages::via::Via;
use trib_wire::ChildKind;

use super::in_graph::node_at;
use super::{Home, Plan};
use crate::graph::Graph;
use crate::topology::{Host, Topology};
use crate::trees::{Loads, Tree, parallel};

/// Chooses a port and links for `plan`, besides `lanes`, which are over the same tree, and fills in
/// all addresses.
pub(super) fn choose(plan: &mut Plan, topology: &Topology, loads: &Loads, lanes: &[&Plan]) {
    let ports = plan.at_nodes().map(|(index, _)| topology.nodes()[index].ports()).max().unwrap_or(1);
    match (topology.graph(), &mut plan.tree) {
        // A single lane over nodes with one address each keeps what the search chose.
        (Some(_), Some(_)) if ports == 1 && lanes.is_empty() => {}
        (Some(graph), Some(tree)) => {
            let edges = edges(topology, graph, tree);
            plan.port = best_port(ports, graph, &edges, loads, lanes);
            take_links(tree, graph, &edges, plan.port, loads, lanes);
        }
        _ => {
            let hosts = plan.hosts.iter().map(|host| topology.hosts()[*host].addresses.len()).max().unwrap_or(1);
            plan.port = (0..ports.max(hosts)).min_by_key(|port| taken(*port, lanes)).unwrap_or(0);
        }
    }
    fill_in(plan, topology);
}

/// The number of lanes that go by a port.
fn taken(port: usize, lanes: &[&Plan]) -> usize {
    lanes.iter().filter(|lane| lane.port == port).count()
}

/// An edge of a tree: the leaf or branch at its lower end, and the links that it may take.
struct Edge {
    lower: Lower,
    parallel: Vec<usize>,
    /// Whether the node above has several ports.
    has_ports: bool,
}

#[derive(Clone, Copy)]
enum Lower {
    Leaf(usize),
    Branch(usize),
}

impl Lower {
    fn link(self, tree: &mut Tree) -> Option<&mut usize> {
        match self {
            Lower::Leaf(leaf) => tree.leaves.get_mut(leaf).map(|leaf| &mut leaf.parent.1),
            Lower::Branch(branch) => tree.branches.get_mut(branch)?.parent.as_mut().map(|(_, link)| link),
        }
    }

    fn link_in(self, lane: &Plan) -> Option<usize> {
        let tree = lane.tree.as_ref()?;
        match self {
            Lower::Leaf(leaf) => tree.leaves.get(leaf).map(|leaf| leaf.parent.1),
            Lower::Branch(branch) => tree.branches.get(branch)?.parent.map(|(_, link)| link),
        }
    }
}

/// The edges at which there is a choice.
fn edges(topology: &Topology, graph: &Graph, tree: &Tree) -> Vec<Edge> {
    let edge = |lower, vertex: usize, above: usize| {
        let parallel: Vec<usize> = parallel(graph, vertex, tree.branches[above].switch).collect();
        let has_ports = topology.nodes()[node_at(tree, above)].ports() > 1;
        (parallel.len() > 1).then_some(Edge { lower, parallel, has_ports })
    };
    let leaves = tree.leaves.iter().enumerate();
    let leaves = leaves.filter_map(|(at, leaf)| edge(Lower::Leaf(at), leaf.host, leaf.parent.0));
    let branches = tree.branches.iter().enumerate();
    let branches = branches
        .filter_map(|(at, branch)| branch.parent.and_then(|(above, _)| edge(Lower::Branch(at), branch.switch, above)));
    leaves.chain(branches).collect()
}

/// The port that the fewest lanes have; among these the one whose slowest link leaves the most.
fn best_port(ports: usize, graph: &Graph, edges: &[Edge], loads: &Loads, lanes: &[&Plan]) -> usize {
    let rank = |port: &usize| {
        let links = edges.iter().filter(|edge| edge.has_ports).map(|edge| edge.at(*port));
        let left = links.map(|link| loads.left(graph, link)).min();
        (taken(*port, lanes), Reverse(left), *port)
    };
    (0..ports).min_by_key(rank).unwrap_or(0)
}

impl Edge {
    fn at(&self, port: usize) -> usize {
        self.parallel[port % self.parallel.len()]
    }
}

fn take_links(tree: &mut Tree, graph: &Graph, edges: &[Edge], port: usize, loads: &Loads, lanes: &[&Plan]) {
    for edge in edges {
        let rank = |link: &usize| {
            let there = lanes.iter().filter(|lane| edge.lower.link_in(lane) == Some(*link)).count();
            (there, Reverse(loads.left(graph, *link)), *link)
        };
        let best = match edge.has_ports {
            true => Some(edge.at(port)),
            // The search has already chosen a link, with regard to the whole tree.
            false if lanes.is_empty() => None,
            false => edge.parallel.iter().copied().min_by_key(rank),
        };
        if let (Some(best), Some(link)) = (best, edge.lower.link(tree)) {
            *link = best;
        }
    }
}

/// Fills in from and to which addresses ranks and nodes connect, and by which transport.
fn fill_in(plan: &mut Plan, topology: &Topology) {
    let addresses = host_addresses(plan, topology);
    let homes: Vec<Home> = plan.nodes.iter().map(|node| node.home).collect();
    for node in &mut plan.nodes {
        node.port = plan.port;
        node.address = node.home.node().and_then(|index| topology.nodes()[index].reached_at(plan.port));
        for child in &mut node.children {
            let home = match child.kind {
                ChildKind::Rank(rank) => Home::Rank(rank),
                ChildKind::Node(id) => homes[usize::from(id.0)],
            };
            (child.address, child.via) = match (node.home, home) {
                // What stays inside one process, or on one host, may come from any address there.
                (above, below) if above == below => (None, Via::Tcp),
                (Home::Rank(_), _) => (None, Via::Tcp),
                (Home::Node(_), Home::Node(index)) => {
                    let below = &topology.nodes()[index];
                    (below.connects_from(plan.port), below.via)
                }
                (Home::Node(_), Home::Rank(rank)) => {
                    let rank = rank.0 as usize;
                    (addresses[rank], topology.hosts()[plan.hosts[rank]].via)
                }
            };
        }
    }
    for ((leaf, host), address) in plan.leaves.iter_mut().zip(&plan.hosts).zip(addresses) {
        // A host with one address has no choice, and what stays there needs none.
        let (host, leaves) = (&topology.hosts()[*host], homes[usize::from(leaf.node.0)].node().is_some());
        leaf.address = address.filter(|_| leaves && host.addresses.len() > 1);
        leaf.via = if leaves { host.via } else { Via::Tcp };
    }
}

/// The addresses of hosts, by rank: that of the link by which the host is in the tree, or that of
/// the port.
fn host_addresses(plan: &Plan, topology: &Topology) -> Vec<Option<IpAddr>> {
    let hosts = plan.hosts.iter().map(|host| &topology.hosts()[*host]);
    let (Some(graph), Some(tree)) = (topology.graph(), &plan.tree) else {
        return hosts.map(|host| at_port(&host.addresses, plan.port)).collect();
    };
    let links: HashMap<usize, usize> = tree.leaves.iter().map(|leaf| (leaf.host, leaf.parent.1)).collect();
    let address = |host: &Host| {
        let [_, _, ..] = host.addresses[..] else { return host.addresses.first().copied() };
        let vertex = graph.find(&host.name)?;
        let rail = graph.links_at(vertex).iter().position(|link| links.get(&vertex) == Some(link))?;
        host.addresses.get(rail).copied()
    };
    hosts.map(address).collect()
}

fn at_port(addresses: &[IpAddr], port: usize) -> Option<IpAddr> {
    addresses.get(port % addresses.len().max(1)).copied()
}

#[cfg(test)]
mod tests;
