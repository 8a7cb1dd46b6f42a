//! The cost of one or several trees.

use std::collections::BTreeMap;

use super::host_based::steps_of;
use super::{Candidate, Model, Ranks, Way};
use crate::graph::Graph;
use crate::trees::Tree;

/// What bounds the vectors of a job on its trees. The vector is cut into equal parts, one for each
/// tree.
pub(super) struct TreeCost {
    /// Seconds that any vector takes.
    pub(super) latency: f64,
    /// Seconds per byte on the slowest link of a host, for each stream that the host has there.
    host_link: f64,
    /// Seconds per byte on links between switches, where they do not depend on the ranks of a host.
    trunk: f64,
    /// For every aggregation node, the streams from below, and its seconds per byte.
    nodes: Vec<(f64, f64)>,
    /// Whether the ranks of a host hang below a node of it.
    levels: bool,
    /// Seconds per byte of the whole.
    pub(super) byte: f64,
    /// What takes longest for a byte, in words.
    limit: String,
}

impl TreeCost {
    /// The cost over `trees` with `lanes` lanes over each, for a job with these ranks.
    pub(super) fn of(graph: &Graph, trees: &[Tree], lanes: usize, ranks: Ranks<'_>, model: &Model) -> TreeCost {
        let part = 1.0 / trees.len() as f64;
        let on_host = ranks.on_hosts();
        let streams_of = |host: usize| if ranks.levels { 1 } else { on_host.get(&host).copied().unwrap_or(1) };
        let mut links: BTreeMap<usize, f64> = BTreeMap::new();
        let mut nodes: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for tree in trees {
            let copies = tree.copies_of(streams_of);
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
                    host_link = host_link.max(byte / f64::from(streams_of(*host)));
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
        let mut latency = trees.iter().map(|tree| latency(tree, streams_of, model)).fold(0.0, f64::max);
        if ranks.levels
            && let Some((each, host)) =
                on_host.iter().map(|(host, each)| (*each, *host)).filter(|(each, _)| *each > 1).max()
        {
            latency += at_host(each, model);
            let (each, name) = (f64::from(each), &graph.vertices()[host].name);
            slowest.offer(host_byte(each, model), || format!("a rank of {name}, with {} from below", vectors(each)));
        }
        let Slowest { byte, limit } = slowest;
        TreeCost { latency, host_link, trunk, nodes: at_nodes, levels: ranks.levels, byte, limit }
    }

    /// The cost as that of a candidate.
    pub(super) fn candidate(self, way: Way) -> Candidate {
        Candidate { way, latency: self.latency, byte: self.byte, limit: self.limit }
    }

    /// Seconds per byte for a part of the job: on this many hosts, at most `each` ranks on one.
    pub(super) fn byte_of_part(&self, hosts: f64, each: f64, model: &Model) -> f64 {
        let (from_host, at_host) = match self.levels {
            true => (1.0, if each > 1.0 { host_byte(each, model) } else { 0.0 }),
            false => (each, 0.0),
        };
        let at_nodes = self.nodes.iter().map(|(below, byte)| byte * (hosts * from_host / below).min(1.0));
        at_nodes.fold(self.trunk.max(self.host_link * from_host).max(model.host_byte).max(at_host), f64::max)
    }
}

/// What a host's ranks and node add to the way of a short vector, up and down. The ranks meet in
/// memory, which takes the steps that hosts' own ways with leaders take there, and one of them is
/// one step more away from the node, for which it is a message in and one out.
fn at_host(each: u32, model: &Model) -> f64 {
    let steps = f64::from(steps_of(each as usize) + 1);
    2.0 * (steps * model.local_step + model.message)
}

/// Seconds per byte at the node of a host with `each` ranks. It has one worker, in one of them.
fn host_byte(each: f64, model: &Model) -> f64 {
    2.0 * model.node_byte * (each + 1.0)
}

/// The way that takes longest, up and down again: a hop for each level, and the messages that nodes
/// have to receive and to send.
fn latency(tree: &Tree, streams_of: impl Fn(usize) -> u32, model: &Model) -> f64 {
    let mut below = vec![(0u32, 0.0f64); tree.branches.len()];
    for leaf in &tree.leaves {
        below[leaf.parent.0].0 += streams_of(leaf.host);
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
