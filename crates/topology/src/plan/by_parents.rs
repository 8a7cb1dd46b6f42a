//! The part of a tree by hand that the hosts of a program's ranks need.

use super::{Needed, Program, ranks_at};
use crate::topology::Topology;

/// `entries` holds the index of each rank's host in the topology, by rank.
pub(super) fn needed(topology: &Topology, program: &Program<'_>, entries: &[usize]) -> Needed {
    let nodes = topology.nodes();
    let ranks_at = ranks_at(nodes.len(), spread(topology, program, entries));
    let mut needed: Vec<bool> = ranks_at.iter().map(|ranks| !ranks.is_empty()).collect();
    for i in 0..nodes.len() {
        let mut above = if needed[i] { nodes[i].parent } else { None };
        while let Some(parent) = above.filter(|parent| !needed[*parent]) {
            needed[parent] = true;
            above = nodes[parent].parent;
        }
    }
    let mut children = vec![Vec::new(); nodes.len()];
    for i in (0..nodes.len()).filter(|i| needed[*i]) {
        if let Some(parent) = nodes[i].parent {
            children[parent].push(i);
        }
    }
    let root = nodes.iter().position(|node| node.parent.is_none()).expect("a topology has a root");
    Needed::new(ranks_at, children, root)
}

/// The aggregation node of each rank. What is dealt to the leaves of an entry, in contiguous blocks
/// whose sizes differ by at most one, is what the leaves will have as children: its ranks, or whole
/// hosts.
fn spread(topology: &Topology, program: &Program<'_>, entries: &[usize]) -> Vec<usize> {
    let dealt = program.dealt();
    let entry = |group: &[u32]| entries[group[0] as usize];
    let mut totals = vec![0usize; topology.hosts().len()];
    dealt.iter().for_each(|group| totals[entry(group)] += 1);
    let mut before = vec![0usize; topology.hosts().len()];
    let mut nodes = vec![0; entries.len()];
    for group in &dealt {
        let entry = entry(group);
        let leaves = &topology.hosts()[entry].leaves;
        let leaf = leaves[before[entry] * leaves.len() / totals[entry]];
        before[entry] += 1;
        group.iter().for_each(|rank| nodes[*rank as usize] = leaf);
    }
    nodes
}
