//! What one or several trees cost.

use std::collections::BTreeMap;

use super::{Candidate, Model, Way};
use crate::graph::Graph;
use crate::trees::Tree;

/// The vector is cut into equal parts, one for each tree.
pub(super) fn candidate(graph: &Graph, trees: &[Tree], model: &Model) -> Candidate {
    let part = 1.0 / trees.len() as f64;
    let mut links: BTreeMap<usize, f64> = BTreeMap::new();
    let mut nodes: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for tree in trees {
        let copies = tree.copies();
        for (link, count) in copies.links {
            *links.entry(link).or_default() += f64::from(count) * part;
        }
        for (node, below, above) in copies.nodes {
            let streams = nodes.entry(node).or_default();
            streams.0 += f64::from(below) * part;
            streams.1 += f64::from(above) * part;
        }
    }
    let mut slowest = Slowest { byte: model.host_byte, limit: "a host's processor".to_owned() };
    for (link, streams) in links {
        let rate = graph.links()[link].rate;
        let byte = 8.0 * streams / (rate.bits_per_second() as f64 * model.tree_efficiency);
        slowest.offer(byte, || format!("the link {} of {rate}, {}", ends(graph, link), vectors(streams)));
    }
    for (node, (below, above)) in nodes {
        let name = &graph.nodes()[node].name;
        if let Some(nic) = graph.nodes()[node].nic {
            let byte = 8.0 * (below + above) / (nic.bits_per_second() as f64 * model.tree_efficiency);
            slowest.offer(byte, || format!("the NIC of {name}, {nic}, {}", vectors(below + above)));
        }
        let byte = model.node_byte * 2.0 * below;
        slowest.offer(byte, || format!("the processor of node {name}, {} from below", vectors(below)));
    }
    let depth = trees.iter().map(Tree::depth).max().unwrap_or(0);
    let latency = f64::from(depth) * model.level_latency;
    Candidate { way: Way::Trees(trees.len()), latency, byte: slowest.byte, limit: slowest.limit }
}

struct Slowest {
    byte: f64,
    limit: String,
}

impl Slowest {
    fn offer(&mut self, byte: f64, limit: impl FnOnce() -> String) {
        // Sums of parts are not exact; what is equal keeps the first.
        if byte > self.byte * (1.0 + 1e-9) {
            *self = Self { byte, limit: limit() };
        }
    }
}

fn vectors(streams: f64) -> String {
    match (streams * 100.0).round() / 100.0 {
        1.0 => "one vector each way".to_owned(),
        count => format!("{count} vectors each way"),
    }
}

fn ends(graph: &Graph, link: usize) -> String {
    let [first, second] = graph.links()[link].ends.map(|end| &graph.vertices()[end].name);
    format!("{first} to {second}")
}
