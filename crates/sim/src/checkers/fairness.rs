//! The lock on stream contexts is fair: a group overtakes no other that has asked before it, unless
//! it takes nothing that the other waits for.
//!
//! What is checked is what the root of the tree is asked and what it answers. A group has asked
//! when the intents of all children below which it has ranks are here. It may be granted a context
//! when at each of its nodes those that hold one and those that have asked before it leave one
//! free.

use std::collections::BTreeMap;

use trib_wire::{Body, ChildKind, Header, Kind};

use super::Checkers;

const NAME: &str = "fairness";

/// A group by what the root calls it.
type Name = (u32, u32);

/// The requests at one core of the root.
#[derive(Default)]
pub(super) struct Line {
    groups: BTreeMap<Name, Seat>,
    /// The groups that have asked, in that order.
    waiting: Vec<Name>,
    holding: Vec<Name>,
}

struct Seat {
    /// The nodes that fold for the group.
    nodes: Vec<usize>,
    /// A bit for each child of the root below which it has ranks, and for each that wants the lock.
    all: u64,
    asked: u64,
}

impl Line {
    /// Nothing is said of the group any more, which has failed or is being left.
    fn forget(&mut self, name: Name) {
        self.groups.remove(&name);
        self.waiting.retain(|waiting| *waiting != name);
        self.holding.retain(|holding| *holding != name);
    }

    fn needs(&self, name: &Name, node: usize) -> bool {
        self.groups.get(name).is_some_and(|seat| seat.nodes.contains(&node))
    }

    /// A node of the group at which there is no room for it.
    fn crowded(&self, name: &Name, capacity: usize) -> Option<usize> {
        let before = self.waiting.iter().take_while(|other| *other != name);
        let others: Vec<&Name> = self.holding.iter().chain(before).collect();
        let nodes = &self.groups.get(name)?.nodes;
        nodes.iter().copied().find(|node| others.iter().filter(|other| self.needs(other, *node)).count() >= capacity)
    }
}

impl Checkers {
    /// The root hears this frame of a child.
    pub fn root_hears(&mut self, core: usize, child: u16, header: &Header) {
        let name = (header.group.0, header.generation.0);
        let line = self.line_of(core);
        match header.kind {
            Kind::Intent => {
                let Some(seat) = line.groups.get_mut(&name) else { return };
                seat.asked |= 1 << child;
                if seat.asked == seat.all && !line.waiting.contains(&name) {
                    line.waiting.push(name);
                }
            }
            Kind::GroupError | Kind::Leave => line.forget(name),
            _ => {}
        }
    }

    /// The root says this to its children.
    pub fn root_says(&mut self, core: usize, header: &Header, body: &Body) {
        let name = (header.group.0, header.generation.0);
        match (header.kind, body) {
            (Kind::Ready, Body::Ready(key, _)) => {
                let members: Vec<u32> = key.members.iter().map(|rank| rank.0).collect();
                let seat = Seat { nodes: self.folding_nodes(&members), all: self.children_of(0, &members), asked: 0 };
                let line = self.line_of(core);
                line.forget(name);
                line.groups.insert(name, seat);
            }
            (Kind::Grant, _) => self.granted(core, name),
            (Kind::LeaseEnd, _) => self.line_of(core).holding.retain(|holding| *holding != name),
            (Kind::GroupError, _) => self.line_of(core).forget(name),
            _ => {}
        }
    }

    /// The root has lost a child, and what was asked there is void.
    pub fn root_loses(&mut self, core: usize, child: u16) {
        let line = self.line_of(core);
        let lost: Vec<Name> =
            line.groups.iter().filter(|(_, seat)| seat.all & (1 << child) != 0).map(|(name, _)| *name).collect();
        lost.into_iter().for_each(|name| line.forget(name));
    }

    fn granted(&mut self, core: usize, name: Name) {
        let capacity = self.limits.streams as usize;
        let line = self.line_of(core);
        let crowded = line.crowded(&name, capacity);
        let Some(seat) = line.groups.get_mut(&name) else { return };
        let was_asked = std::mem::take(&mut seat.asked) == seat.all;
        line.waiting.retain(|waiting| *waiting != name);
        line.holding.push(name);
        if !was_asked {
            self.fail(NAME, format!("group {name:?} of the root has the lock, for which not all its ranks have asked"));
        } else if let Some(node) = crowded {
            let what = format!("group {name:?} of the root overtakes others that wait for a context of node {node}");
            self.fail(NAME, what);
        }
    }

    /// Each core of the root knows nothing of the requests at another.
    fn line_of(&mut self, core: usize) -> &mut Line {
        self.lines.entry(core).or_default()
    }

    /// A bit for each child of a node at or below which there are members.
    fn children_of(&self, node: usize, members: &[u32]) -> u64 {
        let has_members = |kind: &ChildKind| match kind {
            ChildKind::Rank(rank) => members.contains(&rank.0),
            ChildKind::Node(id) => self.tree.nodes[usize::from(id.0)].ranks.iter().any(|rank| members.contains(rank)),
        };
        let children = self.tree.nodes[node].children.iter().enumerate();
        children.filter(|(_, kind)| has_members(kind)).fold(0, |bits, (at, _)| bits | 1 << at)
    }

    /// The nodes that fold for a group: those above members that are not all below one node.
    fn folding_nodes(&self, members: &[u32]) -> Vec<usize> {
        let folds = |node: &usize| {
            let below = self.tree.nodes[*node].ranks.iter().filter(|rank| members.contains(rank)).count();
            let children = self.children_of(*node, members);
            let only = children.is_power_of_two().then(|| children.trailing_zeros() as usize);
            let is_node = |at: usize| matches!(self.tree.nodes[*node].children[at], ChildKind::Node(_));
            below > 0 && !(below == members.len() && only.is_some_and(is_node))
        };
        (0..self.tree.nodes.len()).filter(folds).collect()
    }
}
