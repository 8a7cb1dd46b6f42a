//! The search for the best root, and the tree below it.
//!
//! Hosts on the same switches are one group, so a candidate costs a walk over switches and not over
//! hosts. A fat tree of 10,000 hosts has 400 candidates, each of which reaches some 500 switches.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::loads::share;
use super::{Branch, Leaf, Loads, Tree};
use crate::graph::Graph;

/// Why there is no tree.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TreeError {
    /// There are no hosts.
    #[error("a tree needs hosts; name at least one")]
    NoHosts,
    /// One of the vertices is no host.
    #[error("`{0}` is a switch; name hosts only")]
    NotAHost(String),
    /// A host is named twice.
    #[error("host `{0}` is named twice; name each host once, also for several ranks on it")]
    Twice(String),
    /// A host has no link.
    #[error("host `{0}` has no link to a switch; add one")]
    Alone(String),
    /// Nothing connects the hosts.
    #[error("no switch with an aggregation node reaches all of the hosts; add a node or the missing links")]
    NotConnected,
}

/// The best tree for `hosts` beside the trees that `loads` counts.
pub fn find_tree(graph: &Graph, hosts: &[usize], loads: &Loads) -> Result<Tree, TreeError> {
    check(graph, hosts)?;
    let mut search = Search::new(graph, hosts, loads);
    let (root, down_only) = search.best_root().ok_or(TreeError::NotConnected)?;
    search.walk(root, down_only, u32::MAX);
    Ok(search.tree(hosts))
}

fn check(graph: &Graph, hosts: &[usize]) -> Result<(), TreeError> {
    let mut seen = BTreeSet::new();
    let name = |host: &usize| graph.vertices()[*host].name.clone();
    for host in hosts {
        if !graph.is_host(*host) {
            return Err(TreeError::NotAHost(name(host)));
        }
        if graph.links_at(*host).is_empty() {
            return Err(TreeError::Alone(name(host)));
        }
        if !seen.insert(*host) {
            return Err(TreeError::Twice(name(host)));
        }
    }
    if hosts.is_empty() { Err(TreeError::NoHosts) } else { Ok(()) }
}

/// How good a root is; the least is the best.
type Rank = (u32, Reverse<u64>, u32, u64, usize);

/// A switch to which a host is attached, and the rate that the host's freest link there leaves for
/// one more stream.
type End = (usize, u64);

/// From where a walk came to a switch.
#[derive(Clone, Copy)]
struct Step {
    /// The number of the walk. Steps of older walks are void.
    walk: u32,
    depth: u32,
    parent: Option<(usize, usize)>,
    /// The rate that the slowest link from the root leaves.
    share: u64,
}

struct Search<'a> {
    graph: &'a Graph,
    loads: &'a Loads,
    /// The switches to which each group of hosts is attached, and the number of its hosts.
    groups: Vec<(Vec<End>, u32)>,
    /// For each vertex, the switches next to it and the links to them.
    trunks: Vec<Vec<(usize, usize)>>,
    steps: Vec<Step>,
    /// The switches of this walk, in its order.
    order: Vec<usize>,
    walk: u32,
    /// For each vertex, the streams from below while a walk is judged.
    below: Vec<u32>,
    /// The number of links that were looked at, which bounds the whole search.
    work: u64,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, hosts: &[usize], loads: &'a Loads) -> Self {
        let count = graph.vertices().len();
        let mut trunks = vec![Vec::new(); count];
        for (at, link) in graph.links().iter().enumerate() {
            let [first, second] = link.ends;
            if !graph.is_host(first) && !graph.is_host(second) {
                trunks[first].push((second, at));
                trunks[second].push((first, at));
            }
        }
        let mut groups: BTreeMap<Vec<End>, u32> = BTreeMap::new();
        for host in hosts {
            *groups.entry(ends(graph, loads, *host)).or_default() += 1;
        }
        let void = Step { walk: 0, depth: 0, parent: None, share: 0 };
        Self {
            graph,
            loads,
            groups: groups.into_iter().collect(),
            trunks,
            steps: vec![void; count],
            order: Vec::new(),
            walk: 0,
            below: vec![0; count],
            work: 0,
        }
    }

    // The best root, and whether the whole tree goes down from it.
    fn best_root(&mut self) -> Option<(usize, bool)> {
        let starts = self.starts();
        let mut common: Option<(u32, Rank, usize)> = None;
        for root in self.ancestors(&starts) {
            let level = self.level(root);
            let is_higher = common.as_ref().is_some_and(|(lowest, ..)| *lowest < level);
            if is_higher || (common.is_some() && self.work > WORK_MAX) {
                break;
            }
            if let Some(rank) = self.rank(root, true, u32::MAX) {
                // All candidates of one level are equally low, whatever their depth.
                let rank = (0, rank.1, rank.2, rank.3, rank.4);
                if common.as_ref().is_none_or(|(_, best, _)| rank < *best) {
                    common = Some((level, rank, root));
                }
            }
        }
        match common {
            Some((_, _, root)) => Some((root, true)),
            None => self.least_deep(&starts).map(|root| (root, false)),
        }
    }

    // The switches of the first group from which all hosts can be reached. Only what can be reached
    // from these can be a root, so a fabric in several pieces costs one walk over each and no more.
    fn starts(&mut self) -> Vec<usize> {
        let mut starts = self.groups[0].0.iter().map(|end| end.0).collect::<Vec<_>>();
        starts.retain(|start| {
            self.walk(*start, false, u32::MAX);
            self.groups.iter().all(|(ends, _)| self.attachment(ends).is_some())
        });
        starts
    }

    // The switches with nodes from which one of these is reached by going down, by level.
    fn ancestors(&self, starts: &[usize]) -> Vec<usize> {
        let mut seen: BTreeSet<usize> = starts.iter().copied().collect();
        let mut open: Vec<usize> = seen.iter().copied().collect();
        while let Some(switch) = open.pop() {
            for (other, _) in &self.trunks[switch] {
                if self.level(*other) > self.level(switch) && seen.insert(*other) {
                    open.push(*other);
                }
            }
        }
        let mut roots: Vec<usize> = seen.into_iter().filter(|switch| self.has_node(*switch)).collect();
        roots.sort_by_key(|switch| (self.level(*switch), *switch));
        roots
    }

    // Takes candidates by their distance from the first group. No root has less depth than that.
    fn least_deep(&mut self, starts: &[usize]) -> Option<usize> {
        let mut near: Vec<(u32, usize)> = Vec::new();
        for start in starts {
            self.walk(*start, false, u32::MAX);
            near.extend(self.order.iter().map(|switch| (self.steps[*switch].depth, *switch)));
        }
        near.sort_unstable();
        let mut seen = BTreeSet::new();
        near.retain(|(_, switch)| seen.insert(*switch));
        let mut best: Option<(Rank, usize)> = None;
        for (distance, root) in near {
            let depth_max = best.as_ref().map_or(u32::MAX, |(rank, _)| rank.0);
            if distance > depth_max || (best.is_some() && self.work > WORK_MAX) {
                break;
            }
            if !self.has_node(root) {
                continue;
            }
            if let Some(rank) =
                self.rank(root, false, depth_max).filter(|rank| best.as_ref().is_none_or(|(b, _)| rank < b))
            {
                best = Some((rank, root));
            }
        }
        best.map(|(_, root)| root)
    }

    // Walks over switches, breadth first. At equal depth the way with the greatest share is taken,
    // then the parent that folds.
    fn walk(&mut self, root: usize, down_only: bool, depth_max: u32) {
        self.walk += 1;
        self.order.clear();
        self.order.push(root);
        self.steps[root] = Step { walk: self.walk, depth: 0, parent: None, share: u64::MAX };
        let mut next = 0;
        while let Some(switch) = self.order.get(next).copied() {
            next += 1;
            let here = self.steps[switch];
            if here.depth >= depth_max {
                break;
            }
            self.work += self.trunks[switch].len() as u64;
            for (other, link) in &self.trunks[switch] {
                if down_only && self.level(*other) >= self.level(switch) {
                    continue;
                }
                let rate = self.graph.links()[*link].rate;
                let share = here.share.min(share(rate, self.loads.link(*link), 1));
                let step = Step { walk: self.walk, depth: here.depth + 1, parent: Some((switch, *link)), share };
                let known = self.steps[*other];
                if known.walk != self.walk {
                    self.steps[*other] = step;
                    self.order.push(*other);
                } else if known.depth == step.depth && self.is_better(&step, &known) {
                    self.steps[*other] = step;
                }
            }
        }
    }

    fn is_better(&self, step: &Step, known: &Step) -> bool {
        let folds = |step: &Step| step.parent.is_some_and(|(parent, _)| self.has_node(parent));
        (step.share, folds(step)) > (known.share, folds(known))
    }

    // The switch of a group that the walk reached first, and by the best way.
    fn attachment(&self, ends: &[End]) -> Option<End> {
        let reached = ends.iter().filter(|(switch, _)| self.steps[*switch].walk == self.walk);
        reached
            .min_by_key(|(switch, left)| (self.steps[*switch].depth, Reverse(self.steps[*switch].share.min(*left))))
            .copied()
    }

    // How good the tree below `root` is; `None` if it does not reach all hosts.
    fn rank(&mut self, root: usize, down_only: bool, depth_max: u32) -> Option<Rank> {
        self.walk(root, down_only, depth_max);
        let mut used = Vec::with_capacity(self.groups.len());
        let (mut depth, mut least) = (0, u64::MAX);
        for (ends, count) in &self.groups {
            let (switch, left) = self.attachment(ends)?;
            depth = depth.max(self.steps[switch].depth);
            used.push((switch, *count));
            // A host's only link is in every tree, so it does not distinguish this one.
            if ends.len() > 1 {
                least = least.min(left);
            }
        }
        for (switch, count) in &used {
            self.below[*switch] += count;
        }
        let (mut load, mut links) = (0u64, 0);
        for at in (0..self.order.len()).rev() {
            let switch = self.order[at];
            let below = std::mem::take(&mut self.below[switch]);
            if below == 0 {
                continue;
            }
            let node = self.node_at(switch);
            let parent = self.steps[switch].parent;
            if let Some((rate, node)) = node.and_then(|node| Some((self.graph.nodes()[node].nic?, node))) {
                least = least.min(share(rate, self.loads.node(node), below + u32::from(parent.is_some())));
            }
            if let Some((parent, link)) = parent {
                let above = if node.is_some() { 1 } else { below };
                self.below[parent] += above;
                least = least.min(share(self.graph.links()[link].rate, self.loads.link(link), above));
                load += u64::from(self.loads.link(link));
                links += 1;
            }
        }
        let node_load = self.node_at(root).map_or(0, |node| self.loads.node(node));
        Some((depth, Reverse(least), node_load, load, links))
    }

    // The tree of the last walk.
    fn tree(&mut self, hosts: &[usize]) -> Tree {
        let ends: Vec<(usize, usize)> = hosts.iter().map(|host| self.host_link(*host)).collect();
        let mut needed = vec![false; self.graph.vertices().len()];
        needed[self.order[0]] = true;
        for (switch, _) in &ends {
            let mut at = Some(*switch);
            while let Some(switch) = at.filter(|switch| !needed[*switch]) {
                needed[switch] = true;
                at = self.steps[switch].parent.map(|(parent, _)| parent);
            }
        }
        let mut branch_of = BTreeMap::new();
        let mut branches = Vec::new();
        for switch in self.order.iter().filter(|switch| needed[**switch]) {
            // The order is breadth first, so the parent has a position already.
            let parent = self.steps[*switch].parent.map(|(parent, link)| (branch_of[&parent], link));
            branch_of.insert(*switch, branches.len());
            branches.push(Branch { switch: *switch, node: self.node_at(*switch), parent });
        }
        let leaf =
            |(host, (switch, link)): (&usize, (usize, usize))| Leaf { host: *host, parent: (branch_of[&switch], link) };
        Tree { branches, leaves: hosts.iter().zip(ends).map(leaf).collect() }
    }

    // The switch that the host's group uses, and the freest of the host's links there.
    fn host_link(&self, host: usize) -> (usize, usize) {
        let (switch, _) = self.attachment(&ends(self.graph, self.loads, host)).expect("the root reaches all hosts");
        let there = self.graph.links_at(host).iter().filter(|link| self.graph.links()[**link].other(host) == switch);
        let link = there.min_by_key(|link| (Reverse(self.loads.left(self.graph, **link)), **link));
        (switch, *link.expect("the switch is the end of one"))
    }

    // The node of a switch that leaves the most for one more tree.
    fn node_at(&self, switch: usize) -> Option<usize> {
        let nodes = self.graph.nodes_at(switch).iter().copied().filter(|node| self.loads.is_open(*node));
        nodes.min_by_key(|node| {
            let nic = self.graph.nodes()[*node].nic;
            let rate = nic.map_or(u64::MAX, |rate| share(rate, self.loads.node(*node), 1));
            (Reverse(rate), self.loads.node(*node), *node)
        })
    }

    fn has_node(&self, switch: usize) -> bool {
        self.graph.nodes_at(switch).iter().any(|node| self.loads.is_open(*node))
    }

    fn level(&self, switch: usize) -> u32 {
        self.graph.vertices()[switch].level
    }
}

// The switches of a host in ascending order, so that hosts with the same ones are one group.
fn ends(graph: &Graph, loads: &Loads, host: usize) -> Vec<End> {
    let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
    for link in graph.links_at(host) {
        let best = ends.entry(graph.links()[*link].other(host)).or_default();
        *best = (*best).max(loads.left(graph, *link));
    }
    ends.into_iter().collect()
}

/// After this many links a search is content with the best root so far. A fat tree of 65,536 hosts
/// and 64-port switches takes some 70 million.
const WORK_MAX: u64 = 100_000_000;

/// The number of links that a search looks at.
#[cfg(test)]
pub(super) fn work(graph: &Graph, hosts: &[usize], loads: &Loads) -> u64 {
    let mut search = Search::new(graph, hosts, loads);
    search.best_root();
    search.work
}
