//! What ends with a connection: groups that need it, and creations that would wait for it.

use std::collections::BTreeSet;

use trib_wire::{Body, ChildIndex, ChildKind, Fault, GroupKey, Kind, Rank, RankList, Reason};

use super::pending::Pending;
use super::stage::Event;
use crate::Path;
use crate::node::identity::Identity;
use crate::node::info::Census;
use crate::node::{Link, NodeCore, NodeOutput, Note, Payload, Target};

impl<B> NodeCore<B> {
    pub(in crate::node) fn death_of(&self, child: ChildIndex) -> Fault {
        match self.identity.config.children[usize::from(child.0)].kind {
            ChildKind::Rank(rank) => self.identity.about(Reason::MemberDead, rank),
            ChildKind::Node(node) => {
                let first = self.identity.config.children[usize::from(child.0)].ranks.nth(0).unwrap_or(Rank(0));
                if self.identity.config.recovers {
                    // Any rank below would have called some candidate of the node, so all are dead.
                    return self.identity.about(Reason::MemberDead, first);
                }
                Fault { node, ..self.identity.about(Reason::NodeDead, first) }
            }
        }
    }

    pub(in crate::node) fn lose_child(&mut self, child: ChildIndex, out: &mut impl NodeOutput) {
        let bit = 1u64 << child.0;
        let fault = self.death_of(child);
        for index in self.table.indices() {
            let Some(group) = self.table.get_mut(index) else { continue };
            if group.info.all & bit == 0 || group.left & bit != 0 {
                continue;
            }
            (group.left, group.silent) = (group.left | bit, group.silent | bit);
            self.fail(index, fault, Some(Link::Child(child)), out);
            self.try_free(index, out);
        }
        // A creation that it had joined fails. One that it has not joined no longer waits for it,
        // except for ranks below it that still live.
        for pending in self.pending.values_mut().filter(|p| p.all & bit != 0) {
            pending.lose(child, fault);
        }
        let ranks = self.identity.config.children[usize::from(child.0)].ranks.clone();
        self.lose_ranks(&ranks, out);
    }

    /// Whether all ranks at or below a child were found dead in this epoch. Some of them may come
    /// back all the same.
    pub(in crate::node) fn was_lost(&self, child: ChildIndex) -> bool {
        let child = self.identity.config.children.get(usize::from(child.0));
        child.is_some_and(|child| child.ranks.iter().all(|rank| self.lost.contains(&rank)))
    }

    /// Why nobody below a child waits for a group any more, if all of its members there were found
    /// dead.
    pub(in crate::node) fn death_below(&self, child: ChildIndex, key: &GroupKey) -> Option<Fault> {
        if self.lost.is_empty() {
            return None;
        }
        if self.was_lost(child) {
            return Some(self.death_of(child));
        }
        let below = &self.identity.config.children.get(usize::from(child.0))?.ranks;
        let members = || below.iter().filter(|rank| key.members.contains(*rank));
        let first = members().next().filter(|_| members().all(|rank| self.lost.contains(&rank)))?;
        Some(self.identity.about(Reason::MemberDead, first))
    }

    /// A node below has lost these ranks.
    pub(in crate::node) fn on_lost(&mut self, child: ChildIndex, ranks: &RankList, out: &mut impl NodeOutput) {
        let below = &self.identity.config.children[usize::from(child.0)].ranks;
        let credible = ranks.is_valid(self.identity.config.world_size) && ranks.iter().all(|rank| below.contains(rank));
        if !credible || !self.identity.is_node(child) {
            return out.note(Note::Violation);
        }
        self.lose_ranks(ranks, out);
    }

    /// Creations wait no longer for any of these ranks, neither here nor further up.
    pub(in crate::node) fn lose_ranks(&mut self, ranks: &RankList, out: &mut impl NodeOutput) {
        self.lost.extend(ranks.iter());
        for pending in self.pending.values_mut() {
            lose_the_dead(&self.identity, &self.lost, pending);
        }
        let keys: Vec<GroupKey> = self.pending.keys().cloned().collect();
        for key in keys {
            self.advance_pending(&key, out);
        }
        self.advance_waiting(out);
        // This frame goes behind the joins that the loss has completed. After it, no node above
        // expects a join from these ranks.
        if let Some(header) = self.identity.up(Kind::Lost)
            && self.orphaned.is_none()
        {
            out.transmit(Target::Parent, Path::Stream, &header, Payload::Body(&Body::Lost(ranks.clone())));
        }
    }

    pub(in crate::node) fn death_of_parent(&self) -> Fault {
        let first = self.identity.config.children.first().and_then(|c| c.ranks.nth(0)).unwrap_or(Rank(0));
        let fault = self.identity.about(Reason::NodeDead, first);
        Fault { node: self.identity.config.parent.map_or(fault.node, |(parent, _)| parent), ..fault }
    }

    pub(in crate::node) fn lose_parent(&mut self, out: &mut impl NodeOutput) {
        let fault = self.death_of_parent();
        for index in self.table.indices() {
            self.fail(index, fault, Some(Link::Parent), out);
        }
        // Children that have joined are told now. The others are told when they join.
        self.orphaned = Some(fault);
        (self.creations, self.reserved) = (0, Census::default());
        for (key, mut pending) in core::mem::take(&mut self.pending) {
            if pending.step(Event::ParentLost, false) {
                self.refuse((&key, pending.joined & !pending.dead), (fault, pending.heard), out);
            }
        }
    }
}

/// A creation fails if a member is dead. A child below which every member is dead will not join,
/// but one that has joined waits for the verdict all the same.
pub(in crate::node) fn lose_the_dead(identity: &Identity, lost: &BTreeSet<Rank>, pending: &mut Pending) {
    for position in 0..pending.members.len() {
        let member = &pending.members[position];
        let ranks = || member.ranks.iter().filter_map(|r| pending.key.members.nth(r.0));
        let Some(dead) = ranks().find(|rank| lost.contains(rank)) else { continue };
        let fault = identity.about(Reason::MemberDead, dead);
        let joined = pending.joined & (1 << member.child.0) != 0;
        if !joined && ranks().all(|rank| lost.contains(&rank)) {
            pending.lose(member.child, fault);
        } else {
            pending.fault = pending.fault.or(Some(fault));
        }
    }
}
