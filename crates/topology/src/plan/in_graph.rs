//! The tree in a graph over the hosts of a program's ranks.

use std::collections::HashMap;

use super::{Needed, PlanError, ranks_at};
use crate::graph::Graph;
use crate::topology::{DEPTH_MAX, Topology};
use crate::trees::{Loads, Tree, find_tree};

/// `entries` holds the index of each rank's host in the topology, by rank.
pub(super) fn needed(
    topology: &Topology,
    graph: &Graph,
    entries: &[usize],
    loads: &Loads,
) -> Result<(Needed, Tree), PlanError> {
    // Each host stands once, in the order of its first rank.
    let (mut hosts, mut leaf_of) = (Vec::new(), HashMap::new());
    for entry in entries {
        leaf_of.entry(*entry).or_insert_with(|| {
            hosts.push(graph.find(&topology.hosts()[*entry].name).expect("the topology's hosts are the graph's"));
            hosts.len() - 1
        });
    }
    let tree = find_tree(graph, &hosts, loads)?;
    // Plans are made by recursion over the levels of nodes, so these are bounded.
    if tree.depth() > DEPTH_MAX as u32 + 1 {
        return Err(PlanError::TooDeep(tree.depth()));
    }
    let nodes = entries.iter().map(|entry| node_at(&tree, tree.leaves[leaf_of[entry]].parent.0));
    let ranks_at = ranks_at(topology.nodes().len(), nodes);
    let mut children = vec![Vec::new(); topology.nodes().len()];
    for (at, branch) in tree.branches.iter().enumerate() {
        if let (Some(node), Some(above)) = (branch.node, tree.parent_node(at)) {
            children[node_at(&tree, above)].push(node);
        }
    }
    // Children are in the file's order, so that the order of folding does not depend on how the
    // tree was found.
    children.iter_mut().for_each(|children| children.sort_unstable());
    let root = node_at(&tree, 0);
    Ok((Needed::new(ranks_at, children, root), tree))
}

/// The node that folds what comes to a branch: the branch's own, or the nearest one above.
pub(super) fn node_at(tree: &Tree, branch: usize) -> usize {
    let folding = tree.branches[branch].node.map_or_else(|| tree.parent_node(branch), |_| Some(branch));
    folding.and_then(|branch| tree.branches[branch].node).expect("the root of a tree has a node")
}
