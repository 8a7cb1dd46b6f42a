//! A tree with names instead of indices, for people and for JSON.

use serde::Serialize;

use crate::graph::{Graph, LinkRate};
use crate::hostlist::compress;
use crate::trees::Tree;

/// One tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TreeReport {
    /// The root's switch.
    pub root: String,
    /// Levels of nodes.
    pub levels: u32,
    /// Its switches, parents before children.
    pub branches: Vec<BranchReport>,
}

/// One switch of a tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BranchReport {
    /// The switch.
    pub switch: String,
    /// The node that folds there; `None` if data passes through.
    pub node: Option<String>,
    /// The switch above.
    pub parent: Option<String>,
    /// The rate of the link to its parent.
    pub rate: Option<LinkRate>,
    /// The streams on that link, each way. There is more than one below a switch without a node.
    pub streams: Option<u32>,
    /// The hosts attached to it, as a list like `h[0-15]`.
    pub hosts: String,
    /// How many switches lie between it and the root.
    pub depth: u32,
}

impl TreeReport {
    /// The report on a tree in its graph, with branches in the order of an indented drawing.
    pub fn new(graph: &Graph, tree: &Tree) -> Self {
        let name = |vertex: usize| graph.vertices()[vertex].name.clone();
        let mut children = vec![Vec::new(); tree.branches.len()];
        let mut depths = vec![0; tree.branches.len()];
        for (at, branch) in tree.branches.iter().enumerate() {
            if let Some((parent, _)) = branch.parent {
                children[parent].push(at);
                depths[at] = depths[parent] + 1;
            }
        }
        let mut hosts = vec![Vec::new(); tree.branches.len()];
        for leaf in &tree.leaves {
            hosts[leaf.parent.0].push(graph.vertices()[leaf.host].name.as_str());
        }
        let copies = tree.copies();
        let streams: std::collections::BTreeMap<usize, u32> = copies.links.into_iter().collect();
        let (mut open, mut branches) = (vec![0], Vec::with_capacity(tree.branches.len()));
        while let Some(at) = open.pop() {
            open.extend(children[at].iter().rev());
            let branch = &tree.branches[at];
            branches.push(BranchReport {
                switch: name(branch.switch),
                node: branch.node.map(|node| graph.nodes()[node].name.clone()),
                parent: branch.parent.map(|(parent, _)| name(tree.branches[parent].switch)),
                rate: branch.parent.map(|(_, link)| graph.links()[link].rate),
                streams: branch.parent.map(|(_, link)| streams[&link]),
                hosts: compress(hosts[at].iter().copied()),
                depth: depths[at],
            });
        }
        Self { root: name(tree.root()), levels: tree.depth(), branches }
    }
}
