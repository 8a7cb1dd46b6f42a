//! Reduction trees in a fabric's graph.
//!
//! ```text
//!   fabric       s0    s1            hosts h0 h1 h4         s0       root: lowest common node
//!               / | \ / | \          of a job              /   \
//!             l0   l1   l2                               l0     l2   links of the tree
//!            h0 h1 h2 h3 h4 h5                          h0 h1   h4   its leaves
//! ```
//! A tree spans exactly the given hosts and is a tree of the graph: no link is in it twice. Its
//! root is
//!
//! - the *lowest common node*: on the lowest level, a switch with a node from which all hosts are
//!   reached by going down;
//! - in a graph without one (torus, hypercube, between groups of a dragonfly) the node with the
//!   least depth, that is, with the fewest links to the farthest host.
//!
//! Among equals, that root wins whose slowest link leaves the tree the most beside other trees;
//! then the one whose node, and then whose links, are in the fewest trees; then the first in the
//! file. So stripes of one job, and trees of concurrent jobs, spread over spines without a rule of
//! their own.
//!
//! A switch without a node passes data through. If several children of a node meet in such a
//! switch, each of their streams takes the link above on its own. [`Tree::copies`] counts them, and
//! the search avoids this if it can. A node that is closed ([`Loads::close`]) is treated as if its
//! switch had none.

mod footprint;
mod loads;
mod search;

use std::collections::HashSet;

use crate::graph::Graph;

pub use footprint::Footprint;
pub(crate) use footprint::parallel;
pub use loads::Loads;
pub use search::{TreeError, find_tree};

/// One tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// Its switches, parents before children, the root first.
    pub branches: Vec<Branch>,
    /// Its hosts, in the order in which they were asked for.
    pub leaves: Vec<Leaf>,
}

/// A switch of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Branch {
    /// The switch's vertex.
    pub switch: usize,
    /// The node that folds there; `None` if data passes through.
    pub node: Option<usize>,
    /// The branch above, and the link to it; `None` at the root.
    pub parent: Option<(usize, usize)>,
}

/// A host of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The host's vertex.
    pub host: usize,
    /// The branch to which it is attached, and the link to it.
    pub parent: (usize, usize),
}

/// How many streams of vectors a tree puts on the parts of a fabric, each way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Copies {
    /// The streams by link, in the tree's order.
    pub links: Vec<(usize, u32)>,
    /// By node, the streams from below and from above.
    pub nodes: Vec<(usize, u32, u32)>,
}

impl Copies {
    /// What is on links on which `others` have nothing.
    #[must_use]
    pub fn beyond(mut self, others: &[Copies]) -> Copies {
        let known: HashSet<usize> = others.iter().flat_map(|other| &other.links).map(|(link, _)| *link).collect();
        self.links.retain(|(link, _)| !known.contains(link));
        self.nodes.clear();
        self
    }
}

impl Tree {
    /// The vertex of the root.
    pub fn root(&self) -> usize {
        self.branches[0].switch
    }

    /// The number of levels of nodes that a vector passes on the longest way up.
    pub fn depth(&self) -> u32 {
        let mut depths = vec![0; self.branches.len()];
        for (at, branch) in self.branches.iter().enumerate() {
            depths[at] = branch.parent.map_or(0, |(above, _)| depths[above]) + u32::from(branch.node.is_some());
        }
        self.leaves.iter().map(|leaf| depths[leaf.parent.0]).max().unwrap_or(0)
    }

    /// What it carries: one stream on a link whose lower end folds; otherwise all streams that come
    /// from below.
    pub fn copies(&self) -> Copies {
        self.copies_of(|_| 1)
    }

    /// The same if host h gives `streams(h)` streams.
    pub fn copies_of(&self, streams: impl Fn(usize) -> u32) -> Copies {
        let mut below = vec![0u32; self.branches.len()];
        let mut links = Vec::with_capacity(self.leaves.len() + self.branches.len());
        let mut nodes = Vec::new();
        for leaf in &self.leaves {
            let streams = streams(leaf.host);
            below[leaf.parent.0] += streams;
            links.push((leaf.parent.1, streams));
        }
        for (at, branch) in self.branches.iter().enumerate().rev() {
            let above = if branch.node.is_some() { 1 } else { below[at] };
            if let Some((parent, link)) = branch.parent {
                below[parent] += above;
                links.push((link, above));
            }
            if let Some(node) = branch.node {
                nodes.push((node, below[at], u32::from(branch.parent.is_some())));
            }
        }
        Copies { links, nodes }
    }

    /// For a branch with a node, the nearest branch above with a node: the logical tree. `None` for
    /// the root.
    pub fn parent_node(&self, branch: usize) -> Option<usize> {
        let mut above = self.branches[branch].parent;
        while let Some((parent, _)) = above.filter(|(parent, _)| self.branches[*parent].node.is_none()) {
            above = self.branches[parent].parent;
        }
        above.map(|(parent, _)| parent)
    }
}

/// Trees over the same hosts for one job, each with the node of another root. There are at most
/// `count` and at least one.
///
/// The streams that they carry are added to `loads`.
pub fn find_stripes(graph: &Graph, hosts: &[usize], count: usize, loads: &mut Loads) -> Result<Vec<Tree>, TreeError> {
    let mut trees: Vec<Tree> = Vec::new();
    for _ in 0..count.max(1) {
        let tree = find_tree(graph, hosts, loads)?;
        // Another stripe through the same root would only share what the first one has.
        if trees.iter().any(|known| known.branches[0].node == tree.branches[0].node) {
            break;
        }
        loads.add(&tree);
        trees.push(tree);
    }
    Ok(trees)
}

#[cfg(test)]
mod tests;
