//! The cost of one or several trees.

use std::collections::{BTreeMap, HashMap};

use super::{Candidate, Model, Way};
use crate::graph::Graph;
use crate::trees::Tree;

/// What bounds the vectors of a job on its trees. The vector is cut into equal parts, one for each
/// tree.
pub(super) struct TreeCost {
    /// Seconds that any vector takes.
    pub(super) latency: f64,
    /// Seconds per byte on the slowest link of a host, for each rank there.
    pub(super) host_link: f64,
    /// Seconds per byte on links between switches, where they do not depend on the ranks of a host.
    pub(super) trunk: f64,
    /// For every node, the streams from below, and its seconds per byte.
    pub(super) nodes: Vec<(f64, f64)>,
    /// Seconds per byte of the whole.
    pub(super) byte: f64,
    /// What takes longest for a byte, in words.
    limit: String,
}

impl TreeCost {
    /// The cost over `trees` with `lanes` lanes over each, for a job whose ranks are on these hosts
    /// (by rank).
    pub(super) fn of(graph: &Graph, trees: &[Tree], lanes: usize, ranks: &[usize], model: &Model) -> TreeCost {
        let part = 1.0 / trees.len() as f64;
        let mut on_host: HashMap<usize, u32> = HashMap::new();
        ranks.iter().for_each(|host| *on_host.entry(*host).or_default() += 1);
        let mut links: BTreeMap<usize, f64> = BTreeMap::new();
        let mut nodes: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for tree in trees {
            let copies = tree.copies_of(|host| on_host.get(&host).copied().unwrap_or(1));
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
        let (mut host_link, mut trunk): (f64, f64) = (0.0, 0.0);
        for (link, streams) in links {
            let rate = graph.links()[link].rate;
            let byte = 8.0 * streams / (rate.bits_per_second() as f64 * model.tree_share);
            match graph.links()[link].ends.iter().find(|end| graph.is_host(**end)) {
                Some(host) => {
                    host_link = host_link.max(byte / f64::from(on_host.get(host).copied().unwrap_or(1)));
                }
                None => trunk = trunk.max(byte),
            }
            slowest.offer(byte, || format!("the link {} of {rate}, {}", ends(graph, link), vectors(streams)));
        }
        // A lane belongs to one worker all the time.
        let workers = model.workers.min(lanes as f64).max(1.0);
        let mut at_nodes = Vec::with_capacity(nodes.len());
        for (node, (below, above)) in nodes {
            let name = &graph.nodes()[node].name;
            let mut byte = 2.0 * model.node_byte * (below + above) / workers;
            let spread = if workers > 1.0 { format!(", over {workers} workers") } else { String::new() };
            slowest.offer(byte, || format!("the processor of node {name}, {} from below{spread}", vectors(below)));
            if let Some(nic) = graph.nodes()[node].nic {
                let wire = 8.0 * (below + above) / (nic.bits_per_second() as f64 * model.tree_share);
                slowest.offer(wire, || format!("the NIC of {name}, {nic}, {}", vectors(below + above)));
                byte = byte.max(wire);
            }
            at_nodes.push((below, byte));
        }
        let latency = trees.iter().map(|tree| latency(tree, &on_host, model)).fold(0.0, f64::max);
        let Slowest { byte, limit } = slowest;
        TreeCost { latency, host_link, trunk, nodes: at_nodes, byte, limit }
    }

    /// The cost as that of a candidate.
    pub(super) fn candidate(self, way: Way) -> Candidate {
        Candidate { way, latency: self.latency, byte: self.byte, limit: self.limit }
    }

    /// Seconds per byte for a part of the job: `ranks` altogether, at most `each` on a host.
    pub(super) fn byte_of_part(&self, ranks: f64, each: f64, model: &Model) -> f64 {
        let at_nodes = self.nodes.iter().map(|(below, byte)| byte * (ranks / below).min(1.0));
        at_nodes.fold(self.trunk.max(self.host_link * each).max(model.host_byte), f64::max)
    }
}

/// The way that takes longest, up and down again: a hop for each level, and the messages that nodes
/// have to receive and to send.
fn latency(tree: &Tree, on_host: &HashMap<usize, u32>, model: &Model) -> f64 {
    let mut below = vec![(0u32, 0.0f64); tree.branches.len()];
    for leaf in &tree.leaves {
        below[leaf.parent.0].0 += on_host.get(&leaf.host).copied().unwrap_or(1);
    }
    for (at, branch) in tree.branches.iter().enumerate().rev() {
        let (streams, seconds) = below[at];
        let up = match branch.node {
            Some(_) => (1, seconds + 2.0 * (model.hop + model.message * f64::from(streams))),
            None => (streams, seconds),
        };
        match branch.parent {
            Some((parent, _)) => below[parent] = (below[parent].0 + up.0, below[parent].1.max(up.1)),
            None => return up.1,
        }
    }
    0.0
}

struct Slowest {
    byte: f64,
    limit: String,
}

impl Slowest {
    fn offer(&mut self, byte: f64, limit: impl FnOnce() -> String) {
        // Sums of parts are not exact, so of equal ones the first is kept.
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
