//! A group in the making: joins gather upward as at a barrier, and one verdict travels down.

use trib_wire::{ChildIndex, Fault, GroupKey, GroupName, Marks, Rank, RankList, Reason, Standing};

use super::stage::{Event, Stage, transition};
use crate::node::identity::Identity;
use crate::node::info::{Charge, Duty, Member, footprint, list_bytes};

/// What a child says when it joins, besides the group's key.
#[derive(Clone, Copy)]
pub(in crate::node) struct Join<'a> {
    /// Why the group cannot be made, if a node or rank below knows a reason.
    pub(in crate::node) fault: Option<Fault>,
    /// What the ranks below have of the group.
    pub(in crate::node) standing: Standing,
    /// The most that any of them has heard of what every member has.
    pub(in crate::node) heard: Marks,
    /// The nodes below that fold for the group.
    pub(in crate::node) nodes: &'a RankList,
    /// The name that the program gave the group; empty if it gave none.
    pub(in crate::node) name: &'a GroupName,
}

/// A group for which some of the members below have asked.
pub(in crate::node) struct Pending {
    pub(in crate::node) key: GroupKey,
    /// The first name that came with a join.
    pub(in crate::node) name: GroupName,
    pub(in crate::node) members: Vec<Member>,
    pub(in crate::node) all: u64,
    pub(in crate::node) inner: u64,
    pub(in crate::node) duty: Duty,
    /// A bit for each child that has joined, or has died (then `fault` is set).
    pub(in crate::node) joined: u64,
    /// A bit for each child that has died meanwhile. Nothing is sent to these.
    pub(in crate::node) dead: u64,
    /// A bit for each child below which every member has done with the group.
    left: u64,
    /// A bit for each child below which some member has.
    some_left: u64,
    /// A bit for each child below which the programs of all members have freed the group.
    freed: u64,
    /// What the ranks below have of the group.
    standing: Option<Standing>,
    /// The most that any rank below has heard of what every member has. Some programs may have been
    /// told that.
    pub(super) heard: Marks,
    /// Whether the children have been asked if they have done with it.
    pub(super) asked: bool,
    pub(in crate::node) fault: Option<Fault>,
    /// The nodes below that fold for the group, in order, until the parent is told.
    nodes: RankList,
    stage: Stage,
    /// Whether it holds room in the quota until the verdict comes.
    pub(in crate::node) reserves: bool,
}

impl Pending {
    /// Finds which children take part, and what this node will do for the group.
    pub(in crate::node) fn new(identity: &Identity, key: GroupKey) -> Result<Pending, Fault> {
        if !key.members.is_valid(identity.config.world_size) {
            return Err(identity.about(Reason::BadMembers, Rank(0)));
        }
        let mut by_child: Vec<(Vec<u32>, Rank)> = vec![(Vec::new(), Rank(u32::MAX)); identity.config.children.len()];
        for (position, rank) in key.members.iter().enumerate() {
            if let Some(child) = identity.child_of(rank) {
                let (ranks, first) = &mut by_child[usize::from(child.0)];
                ranks.push(position as u32);
                *first = (*first).min(rank);
            }
        }
        let members: Vec<Member> = by_child
            .into_iter()
            .enumerate()
            .filter(|(_, (ranks, _))| !ranks.is_empty())
            .map(|(child, (ranks, first))| Member {
                child: ChildIndex(child as u16),
                ranks: RankList::from_ranks(ranks),
                first,
            })
            .collect();
        let bits = |keep: &dyn Fn(ChildIndex) -> bool| {
            members.iter().filter(|m| keep(m.child)).fold(0u64, |bits, m| bits | 1 << m.child.0)
        };
        let (all, inner) = (bits(&|_| true), bits(&|c| identity.is_node(c)));
        let below: u32 = members.iter().map(|m| m.ranks.len()).sum();
        let duty = match members.as_slice() {
            _ if below < key.members.len() => Duty::Inner,
            [only] if identity.is_node(only.child) => Duty::Relay,
            _ => Duty::Root,
        };
        Ok(Pending {
            key,
            name: GroupName::default(),
            members,
            all,
            inner,
            duty,
            joined: 0,
            dead: 0,
            left: 0,
            some_left: 0,
            freed: 0,
            standing: None,
            heard: Marks::default(),
            asked: false,
            fault: None,
            nodes: RankList::EMPTY,
            stage: Stage::Gathering,
            reserves: false,
        })
    }

    /// The nodes below that fold, with those of another child. In order they may take more runs
    /// than the two lists did, so what is charged is this list.
    pub(super) fn nodes_with(&self, more: &RankList) -> RankList {
        if more.is_empty() { self.nodes.clone() } else { union(&self.nodes, more.iter().map(|node| node.0)) }
    }

    /// How many bytes more this takes with these nodes.
    pub(super) fn grows_by(&self, nodes: &RankList) -> u64 {
        list_bytes(nodes).saturating_sub(list_bytes(&self.nodes))
    }

    /// A child has joined, and with it these nodes fold.
    pub(super) fn join(&mut self, child: ChildIndex, nodes: RankList, join: Join<'_>) {
        if self.name.as_str().is_empty() {
            self.name = join.name.clone();
        }
        let bit = 1 << child.0;
        self.joined |= bit;
        self.left |= if join.standing.all_left { bit } else { 0 };
        self.some_left |= if join.standing.some_left { bit } else { 0 };
        self.freed |= if join.standing.freed { bit } else { 0 };
        self.standing = Some(self.standing.map_or(join.standing, |standing| standing.with(join.standing)));
        self.heard = self.heard.higher(join.heard);
        self.fault = self.fault.or(join.fault);
        self.nodes = nodes;
    }

    /// A child is gone before the verdict.
    pub(in crate::node) fn lose(&mut self, child: ChildIndex, fault: Fault) {
        self.joined |= 1 << child.0;
        self.dead |= 1 << child.0;
        self.fault = self.fault.or(Some(fault));
    }

    /// What the ranks below have of the group.
    pub(super) fn standing(&self) -> Standing {
        self.standing.unwrap_or(Standing::NEW)
    }

    /// As what it is charged. That is known when all have joined.
    pub(super) fn charge(&self) -> Charge {
        Charge { relayed: self.duty == Duty::Relay, companion: self.standing().companion }
    }

    /// The control memory that it takes, in bytes.
    pub(super) fn footprint(&self) -> u64 {
        footprint(&self.key, &self.members, &self.nodes)
    }

    /// A bit for each child that has left before the group is made, and for each of these that
    /// needs no word of it.
    pub(super) fn absent(&self) -> (u64, u64) {
        (self.dead | self.left, self.dead | (self.left & !self.inner))
    }

    /// A bit for each child whose members will leave the group without a word of their programs.
    pub(super) fn freed(&self) -> u64 {
        self.dead | self.freed
    }

    /// Whether it holds room in the quota, and will be gone when it is made.
    pub(super) fn is_going(&self) -> bool {
        self.reserves && self.freed() == self.all && self.standing().exists
    }

    /// The fault of a creation that a member has done with, though it never became a group.
    pub(super) fn never_made(&self, identity: &Identity) -> Option<Fault> {
        let standing = self.standing();
        let left = self.members.iter().find(|member| self.some_left & (1 << member.child.0) != 0)?;
        let waits = self.members.iter().find(|member| self.left & (1 << member.child.0) == 0).unwrap_or(left);
        let fault = Fault { rank_b: waits.first, ..identity.about(Reason::MemberLeft, left.first) };
        (!standing.exists).then_some(fault)
    }

    /// Whether all children have joined or died, and no step has followed from that yet.
    pub(super) fn is_complete(&self) -> bool {
        self.stage == Stage::Gathering && self.joined == self.all
    }

    /// Goes on to the next stage, if the event leads to one. Returns whether it did.
    pub(super) fn step(&mut self, event: Event, is_root: bool) -> bool {
        let next = transition(self.stage, event, is_root);
        self.stage = next.unwrap_or(self.stage);
        next.is_some()
    }

    /// The nodes that fold, with this node if it does.
    pub(in crate::node) fn folding_nodes(&self, identity: &Identity) -> RankList {
        let own = (self.duty != Duty::Relay).then_some(u32::from(identity.config.node.0));
        union(&self.nodes, own)
    }

    /// The same, which the parent knows from now on. Nothing here needs them any more.
    pub(super) fn give_folding_nodes(&mut self, identity: &Identity) -> RankList {
        let nodes = self.folding_nodes(identity);
        self.nodes = RankList::EMPTY;
        nodes
    }
}

/// The nodes of a list and these, in order, each once.
fn union(list: &RankList, more: impl IntoIterator<Item = u32>) -> RankList {
    let mut nodes: Vec<u32> = list.iter().map(|node| node.0).chain(more).collect();
    nodes.sort_unstable();
    nodes.dedup();
    RankList::from_ranks(nodes)
}
