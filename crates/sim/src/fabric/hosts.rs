//! Hosts as a level of a tree: ranks that share a host hang below a node in one of their processes.
//!
//! ```text
//!   node                             node
//!    |- r0 r1 r2 r3 r4       =>       |- host, in r0, else in r1, else in r3
//!    `- r5                            |   |- domain, in the same ones      r0 r1
//!                                     |   |- domain, in the same ones      r2 r3
//!                                     |   `- r4
//!                                     `- r5
//! ```

use trib_wire::{ChildKind, NodeId};

use super::{Home, Tree, TreeNode};
use crate::random::Rng;

impl Tree {
    /// A tree with so many ranks on each host and one root above, or none if there is only one
    /// host. The first three ranks of a host may host its node.
    pub fn of_hosts(ranks_on: &[u32]) -> Tree {
        let mut tree = Tree::regular(ranks_on);
        let first = tree.nodes.len() - ranks_on.len();
        for node in &mut tree.nodes[first..] {
            node.home = Home::Ranks(node.ranks.iter().copied().take(3).collect());
        }
        tree.node_hosts = first;
        tree
    }

    /// The same tree, in which nodes in ranks' processes stand above most ranks. Sometimes the
    /// whole tree is one host.
    #[must_use]
    pub fn with_hosts(mut self, rng: &mut Rng) -> Tree {
        let ranks = self.leaves.len() as u32;
        if ranks > 1 && rng.chance(LONE) {
            let mut lone = Tree::of_hosts(&[ranks]);
            let all: Vec<u32> = (0..ranks).collect();
            let home = home(rng, &all).unwrap_or_else(|| all[..2].to_vec());
            lone.nodes[0].home = Home::Ranks(home.clone());
            lone.part(rng, 0, &home);
            lone.number();
            return lone;
        }
        for node in 0..self.nodes.len() {
            let mut children = Vec::new();
            let mut rest: &[ChildKind] = &std::mem::take(&mut self.nodes[node].children);
            while let Some(first) = rest.first() {
                let is_rank = |child: &ChildKind| matches!(child, ChildKind::Rank(_));
                let most = rest.iter().take_while(|child| is_rank(child)).count().max(1);
                let wanted = if rng.chance(ALONE) { 1 } else { rng.between(2, HOST_MAX) as usize };
                let (some, others) = rest.split_at(wanted.min(most));
                rest = others;
                match home(rng, &ranks_of(some)).filter(|_| is_rank(first)) {
                    None => children.extend(some),
                    Some(home) => {
                        children.push(self.put(some.to_vec(), home.clone()));
                        self.part(rng, self.nodes.len() - 1, &home);
                    }
                }
            }
            self.nodes[node].children = children;
        }
        self.number();
        self
    }

    /// Puts nodes for the NUMA domains of a host between its node and its ranks.
    fn part(&mut self, rng: &mut Rng, host: usize, home: &[u32]) {
        let ranks = self.nodes[host].children.len();
        if ranks < 3 || !rng.chance(PARTED) {
            return;
        }
        let all = std::mem::take(&mut self.nodes[host].children);
        let (mut rest, mut children) = (&all[..], Vec::new());
        while !rest.is_empty() {
            let (some, others) = rest.split_at(rng.between(1, (ranks as u64 - 1).min(rest.len() as u64)) as usize);
            rest = others;
            match some {
                [only] => children.push(*only),
                _ => children.push(self.put(some.to_vec(), home.to_vec())),
            }
        }
        self.nodes[host].children = children;
    }

    /// A new node above these ranks, whose parent is not set yet.
    fn put(&mut self, children: Vec<ChildKind>, home: Vec<u32>) -> ChildKind {
        let mut ranks = ranks_of(&children);
        ranks.sort_unstable();
        self.nodes.push(TreeNode { parent: None, children, ranks, home: Home::Ranks(home) });
        ChildKind::Node(NodeId(self.nodes.len() as u16 - 1))
    }

    /// Tells all children where they hang.
    fn number(&mut self) {
        for node in 0..self.nodes.len() {
            for (position, child) in self.nodes[node].children.clone().into_iter().enumerate() {
                let seat = (node, position as u16);
                match child {
                    ChildKind::Rank(rank) => self.leaves[rank.0 as usize] = seat,
                    ChildKind::Node(below) => self.nodes[usize::from(below.0)].parent = Some(seat),
                }
            }
        }
    }
}

/// The ranks that may host the nodes of a host with these ranks, which are the lowest that are able
/// to; `None` if the first of them would have no other to go to.
fn home(rng: &mut Rng, ranks: &[u32]) -> Option<Vec<u32>> {
    let mut able: Vec<u32> = ranks.iter().copied().filter(|_| !rng.chance(UNABLE)).collect();
    able.sort_unstable();
    able.truncate(rng.between(2, 3) as usize);
    (able.len() > 1).then_some(able)
}

fn ranks_of(children: &[ChildKind]) -> Vec<u32> {
    let rank = |child: &ChildKind| match child {
        ChildKind::Rank(rank) => Some(rank.0),
        ChildKind::Node(_) => None,
    };
    children.iter().filter_map(rank).collect()
}

/// How many trees in a thousand are one host.
const LONE: u64 = 200;
/// How many ranks in a thousand are alone on their hosts.
const ALONE: u64 = 150;
/// The largest number of ranks on a host, unless that is alone.
const HOST_MAX: u64 = 6;
/// How many hosts of more than two ranks in a thousand have domains.
const PARTED: u64 = 300;
/// How many ranks in a thousand are unable to host nodes.
const UNABLE: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_of_a_host_hangs_below_nodes_that_it_or_its_neighbours_host() {
        let (mut hosts, mut lone, mut domains) = (0, 0, 0);
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let ranks = rng.between(1, 24) as u32;
            let tree = Tree::random(&mut rng, ranks, 3).with_hosts(&mut rng);
            assert_eq!(tree.nodes[0].ranks.len(), ranks as usize);
            for (rank, (node, child)) in tree.leaves.iter().enumerate() {
                assert_eq!(ranks_of(&tree.nodes[*node].children[usize::from(*child)..][..1]), [rank as u32]);
            }
            for (at, node) in tree.nodes.iter().enumerate() {
                let Home::Ranks(home) = &node.home else { continue };
                assert!((2..=3).contains(&home.len()) && home.is_sorted());
                let parent = node.parent.map(|(parent, child)| {
                    assert_eq!(tree.nodes[parent].children[usize::from(child)], ChildKind::Node(NodeId(at as u16)));
                    assert!(parent < at);
                    &tree.nodes[parent]
                });
                let host = parent.filter(|parent| parent.home == node.home).unwrap_or(node);
                assert!(home.iter().all(|rank| host.ranks.contains(rank)));
                (hosts, lone) = (hosts + 1, lone + u64::from(parent.is_none()));
                domains += u64::from(parent.is_some_and(|parent| parent.home == node.home));
            }
        }
        assert!(hosts > 500 && lone > 50 && domains > 50, "{hosts} {lone} {domains}");
    }
}
