//! A fabric whose tree is given by hand, as a graph for one job: each node is a switch with a node
//! in it, and the job's hosts hang where the job has them, those that the file calls `*` too.

use std::collections::{BTreeMap, BTreeSet};

use super::builder::Builder;
use super::{Graph, LinkRate};
use crate::plan::Plan;
use crate::topology::Topology;

/// The graph, the host of each rank in it, and whether a rate had to be assumed. `numbers` tells
/// the ranks' hosts apart.
pub(crate) fn job_graph(topology: &Topology, plan: &Plan, numbers: &[u32]) -> Option<(Graph, Vec<usize>, bool)> {
    let mut assumed = false;
    let mut rate = |known: Option<LinkRate>| {
        assumed |= known.is_none();
        known.unwrap_or(LinkRate::DEFAULT)
    };
    let deepest = topology.nodes().iter().map(|node| node.depth).max().unwrap_or(0);
    let mut builder = Builder::new(topology.name());
    let mut switches = BTreeMap::new();
    let used: BTreeSet<usize> = plan.at_nodes().map(|(index, _)| index).collect();
    for index in used {
        let node = &topology.nodes()[index];
        // A host may be called like a node.
        let level = (deepest - node.depth) as u32 + 1;
        switches.insert(index, builder.switch(&format!("node {}", node.name), Some(level), true).ok()?);
    }
    for (index, switch) in &switches {
        let node = &topology.nodes()[*index];
        if let Some(parent) = node.parent.and_then(|parent| switches.get(&parent)) {
            builder.link([*switch, *parent], rate(node.rate), 1).ok()?;
        }
    }
    let mut vertices: BTreeMap<u32, usize> = BTreeMap::new();
    let mut ranks = Vec::with_capacity(numbers.len());
    for ((number, leaf), entry) in numbers.iter().zip(&plan.leaves).zip(&plan.hosts) {
        if let Some(vertex) = vertices.get(number) {
            ranks.push(*vertex);
            continue;
        }
        let host = &topology.hosts()[*entry];
        let name = if host.name == "*" { number.to_string() } else { host.name.clone() };
        let vertex = builder.host(&format!("host {name}")).ok()?;
        let mut above = &plan.nodes[usize::from(leaf.node.0)];
        // The nodes of a host are on it.
        while above.home.node().is_none() {
            above = &plan.nodes[usize::from(above.parent?.0.0)];
        }
        builder.link([vertex, *switches.get(&above.home.node()?)?], rate(host.rate), 1).ok()?;
        vertices.insert(*number, vertex);
        ranks.push(vertex);
    }
    Some((builder.finish().ok()?, ranks, assumed))
}
