//! Random logical trees: they have uneven depths, nodes with one child, cascades inside one
//! process, and ranks at inner nodes. Some have `hosts`, whose nodes are in ranks' processes.

mod hosts;

use trib_proto::node::NodeChild;
use trib_wire::{ChildKind, NodeId, Rank, RankList};

use crate::random::Rng;

/// One logical node.
#[derive(Clone, Debug)]
pub struct TreeNode {
    /// The parent, and the position among the parent's children.
    pub parent: Option<(usize, u16)>,
    /// Children in fold order.
    pub children: Vec<ChildKind>,
    /// All ranks at or below, ascending.
    pub ranks: Vec<u32>,
    /// Where it lives.
    pub home: Home,
}

/// Where a logical node lives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Home {
    /// In this process, which is no rank; several nodes of a cascade share one.
    Process(usize),
    /// In the process of the first of these ranks that can host it.
    Ranks(Vec<u32>),
}

/// A job's logical tree; node 0 is its root.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The nodes; a parent comes before its children.
    pub nodes: Vec<TreeNode>,
    /// The node of every rank, and the position among that node's children.
    pub leaves: Vec<(usize, u16)>,
    /// How many processes host nodes that are no ranks.
    pub node_hosts: usize,
}

impl Tree {
    /// A random tree for this many ranks and at most `levels` levels of nodes.
    pub fn random(rng: &mut Rng, ranks: u32, levels: u64) -> Tree {
        let mut numbers: Vec<u32> = (0..ranks).collect();
        if rng.chance(300) {
            rng.shuffle(&mut numbers);
        }
        let mut tree = Tree { nodes: Vec::new(), leaves: vec![(0, 0); ranks as usize], node_hosts: 0 };
        tree.grow(rng, None, &numbers, levels.max(1));
        tree
    }

    /// A tree with these ranks below each node of the lower level and one root above, or one node
    /// if there is only one set.
    pub fn regular(ranks_below: &[u32]) -> Tree {
        let total = ranks_below.iter().sum();
        let mut tree = Tree { nodes: Vec::new(), leaves: vec![(0, 0); total as usize], node_hosts: 0 };
        let all: Vec<u32> = (0..total).collect();
        let root = tree.add(None, &all, None);
        let mut first = 0;
        for count in ranks_below {
            let ranks = &all[first as usize..(first + count) as usize];
            let node = if ranks_below.len() == 1 { root } else { tree.add(Some(root), ranks, None) };
            for rank in ranks {
                tree.attach(node, *rank);
            }
            first += count;
        }
        tree
    }

    /// The children of a node as its core wants them.
    pub fn children_of(&self, node: usize) -> Vec<NodeChild> {
        let children = self.nodes[node].children.iter();
        children
            .map(|kind| NodeChild {
                kind: *kind,
                ranks: RankList::from_ranks(match kind {
                    ChildKind::Rank(rank) => vec![rank.0],
                    ChildKind::Node(id) => self.nodes[usize::from(id.0)].ranks.clone(),
                }),
            })
            .collect()
    }

    fn grow(&mut self, rng: &mut Rng, parent: Option<usize>, ranks: &[u32], levels: u64) {
        let cascade = parent.filter(|_| rng.chance(150));
        let node = self.add(parent, ranks, cascade);
        if levels == 1 || (parent.is_some() && rng.chance(150)) {
            for rank in ranks {
                self.attach(node, *rank);
            }
            return;
        }
        let mut rest = ranks;
        while !rest.is_empty() {
            let take = rng.between(1, (rest.len() as u64).div_ceil(2)) as usize;
            let (some, others) = rest.split_at(take);
            rest = others;
            if rng.chance(200) {
                for rank in some {
                    self.attach(node, *rank);
                }
            } else {
                self.grow(rng, Some(node), some, levels - 1);
            }
        }
    }

    fn add(&mut self, parent: Option<usize>, ranks: &[u32], cascade: Option<usize>) -> usize {
        let node = self.nodes.len();
        let home = match cascade {
            Some(parent) => self.nodes[parent].home.clone(),
            None => {
                self.node_hosts += 1;
                Home::Process(self.node_hosts - 1)
            }
        };
        let mut ranks = ranks.to_vec();
        ranks.sort_unstable();
        let parent = parent.map(|parent| {
            let children = &mut self.nodes[parent].children;
            children.push(ChildKind::Node(NodeId(node as u16)));
            (parent, children.len() as u16 - 1)
        });
        self.nodes.push(TreeNode { parent, children: Vec::new(), ranks, home });
        node
    }

    fn attach(&mut self, node: usize, rank: u32) {
        let children = &mut self.nodes[node].children;
        self.leaves[rank as usize] = (node, children.len() as u16);
        children.push(ChildKind::Rank(Rank(rank)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_hangs_once_and_parents_come_first() {
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let ranks = rng.between(1, 24) as u32;
            let levels = rng.between(1, 4);
            let tree = Tree::random(&mut rng, ranks, levels);
            assert_eq!(tree.nodes[0].ranks.len(), ranks as usize);
            for (rank, (node, child)) in tree.leaves.iter().enumerate() {
                let kind = tree.nodes[*node].children[usize::from(*child)];
                assert_eq!(kind, ChildKind::Rank(Rank(rank as u32)));
            }
            for (at, node) in tree.nodes.iter().enumerate() {
                assert!(node.parent.is_none_or(|(parent, _)| parent < at));
                assert!(!node.children.is_empty() && node.children.len() <= 64);
            }
        }
    }
}
