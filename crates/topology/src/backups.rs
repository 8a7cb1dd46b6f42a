//! Which aggregation nodes may host a logical node when its own dies: its backups, by rank.
//!
//! ```text
//!   spine             of leaf0:  leaf1, leaf2, spine
//!    |- leaf0         of leaf1:  leaf2, leaf0, spine      the first backups of the leaves are
//!    |- leaf1         of leaf2:  leaf0, leaf1, spine      all at different nodes
//!    `- leaf2         of spine:  leaf0, leaf1, leaf2
//! ```
//! Nodes of the same level come first, and among these the nearest: a backup is to have the ways
//! that the node had. Of several as near, the one that hosts the fewest logical nodes comes first,
//! primaries and backups of the same rank together, and then the next one in the file, counted
//! round. So equal input gives equal ranks, and what one dead process hosted goes to several.

use std::collections::{BTreeSet, VecDeque};

use crate::graph::Graph;
use crate::plan::{Home, Plan};
use crate::topology::Topology;

/// For each logical node of a plan its backups, first the best: indices in [`Topology::nodes`], at
/// most `most` of those in `may`. A node that is at home in a rank has none.
pub fn backups(topology: &Topology, plan: &Plan, may: &BTreeSet<usize>, most: usize) -> Vec<Vec<usize>> {
    let total = topology.nodes().len();
    let lines: Vec<Vec<usize>> = (0..total).map(|at| line(topology, at)).collect();
    let mut near: Vec<Option<Vec<Nearness>>> = vec![None; total];
    let mut hosted = vec![0usize; total];
    plan.at_nodes().for_each(|(index, _)| hosted[index] += 1);
    let mut ranked: Vec<Vec<usize>> = vec![Vec::new(); plan.nodes.len()];
    for rank in 0..most.min(may.len()) {
        // What a rank of backups brings counts among the backups of this rank only: the second
        // backups of a node matter when its first has died, too.
        let mut load = hosted.clone();
        for (node, known) in plan.nodes.iter().zip(&mut ranked) {
            let Home::Node(index) = node.home else { continue };
            let near = near[index].get_or_insert_with(|| match topology.graph() {
                Some(graph) => in_graph(graph, index),
                None => in_tree(&lines, index),
            });
            let is_free = |at: &usize| *at != index && !known.contains(at);
            let round = |at: usize| (at + total - index) % total;
            let best = may.iter().copied().filter(is_free).min_by_key(|at| (near[*at], load[*at], round(*at)));
            if let Some(best) = best.filter(|_| known.len() == rank) {
                load[best] += 1;
                known.push(best);
            }
        }
    }
    ranked
}

/// How near another node is: whether its level is another one, and how many links are between.
type Nearness = (bool, usize);

/// A node and those above it, the root first.
fn line(topology: &Topology, at: usize) -> Vec<usize> {
    let mut line: Vec<usize> = std::iter::successors(Some(at), |at| topology.nodes()[*at].parent).collect();
    line.reverse();
    line
}

fn in_tree(lines: &[Vec<usize>], index: usize) -> Vec<Nearness> {
    let own = &lines[index];
    let near = |line: &Vec<usize>| {
        let common = own.iter().zip(line).take_while(|(own, other)| own == other).count();
        (line.len() != own.len(), own.len() + line.len() - 2 * common)
    };
    lines.iter().map(near).collect()
}

/// Hosts connect nothing: a way leads over switches.
fn in_graph(graph: &Graph, index: usize) -> Vec<Nearness> {
    let start = graph.nodes()[index].switch;
    let mut links = vec![usize::MAX; graph.vertices().len()];
    links[start] = 0;
    let mut reached = VecDeque::from([start]);
    while let Some(vertex) = reached.pop_front() {
        for link in graph.links_at(vertex) {
            let other = graph.links()[*link].other(vertex);
            if links[other] == usize::MAX && !graph.is_host(other) {
                links[other] = links[vertex] + 1;
                reached.push_back(other);
            }
        }
    }
    let level = |switch: usize| graph.vertices()[switch].level;
    graph.nodes().iter().map(|node| (level(node.switch) != level(start), links[node.switch])).collect()
}

#[cfg(test)]
mod tests;
