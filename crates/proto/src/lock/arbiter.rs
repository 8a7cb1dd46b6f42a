//! Which groups may stream: all-or-nothing grants of stream contexts over the nodes of a tree.
//!
//! ```text
//!              room at every node                      last segment drained everywhere
//!   request ----------------------> held ----- revoke -----> ending ------> (gone)
//!      |  no room: wait in line       ^           (others wait)
//!      +------- room again -----------+
//! ```
//! A group asks with the set of nodes that it needs and holds nothing while it waits, so no cycle
//! of waiting groups can form. The line is first come, first served, except that a group may
//! overtake one with which it shares no node.

use std::collections::{BTreeMap, VecDeque};

use trib_wire::{GroupIndex, RankList};

use crate::Nanos;
use crate::surprise::cannot_happen;

/// What the arbiter decided. Decisions are carried out in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The group may stream.
    Grant(GroupIndex),
    /// The group must say how far it is, and stop there.
    Revoke(GroupIndex),
}

/// The stream contexts of one tree.
#[derive(Debug)]
pub struct Arbiter {
    /// The number of contexts that each node has.
    capacity: u32,
    held: BTreeMap<GroupIndex, Holder>,
    line: VecDeque<Waiting>,
    used: BTreeMap<u32, u32>,
    granted: u64,
}

#[derive(Debug)]
struct Holder {
    nodes: RankList,
    /// Its number in the order of grants.
    number: u64,
    since: Nanos,
    revoked: bool,
}

#[derive(Debug)]
struct Waiting {
    group: GroupIndex,
    nodes: RankList,
    since: Nanos,
}

impl Arbiter {
    /// An arbiter over nodes with this many contexts each.
    pub fn new(capacity: u32) -> Arbiter {
        Arbiter { capacity, held: BTreeMap::new(), line: VecDeque::new(), used: BTreeMap::new(), granted: 0 }
    }

    /// A group wants to stream over these nodes.
    pub fn request(&mut self, group: GroupIndex, nodes: RankList, now: Nanos, decisions: &mut Vec<Decision>) {
        self.line.push_back(Waiting { group, nodes, since: now });
        self.decide(now, decisions);
        self.revoke(decisions);
    }

    /// The group's lease has ended at every node.
    pub fn released(&mut self, group: GroupIndex, now: Nanos, decisions: &mut Vec<Decision>) {
        if let Some(holder) = self.held.remove(&group) {
            for node in holder.nodes.iter() {
                let Some(used) = self.used.get_mut(&node.0) else { cannot_happen("a context was never taken") };
                *used -= 1;
            }
        }
        self.decide(now, decisions);
        self.revoke(decisions);
    }

    /// The group is gone or has failed, so it neither holds a context nor waits for one any more.
    pub fn forget(&mut self, group: GroupIndex, now: Nanos, decisions: &mut Vec<Decision>) {
        self.line.retain(|w| w.group != group);
        self.released(group, now, decisions);
    }

    /// The number of groups that hold a context.
    pub fn holders(&self) -> usize {
        self.held.len()
    }

    /// The groups that hold a context, by their indices, and since when.
    pub fn held(&self) -> impl Iterator<Item = (GroupIndex, Nanos)> {
        self.held.iter().map(|(group, holder)| (*group, holder.since))
    }

    /// The groups that wait, in the order in which they came, and since when.
    pub fn line(&self) -> impl Iterator<Item = (GroupIndex, Nanos)> {
        self.line.iter().map(|waiting| (waiting.group, waiting.since))
    }

    /// The number of groups that wait.
    pub fn waiting(&self) -> usize {
        self.line.len()
    }

    fn room(&self, nodes: &RankList, claimed: &BTreeMap<u32, u32>) -> bool {
        nodes.iter().all(|n| {
            let used = self.used.get(&n.0).copied().unwrap_or(0) + claimed.get(&n.0).copied().unwrap_or(0);
            used < self.capacity
        })
    }

    fn decide(&mut self, now: Nanos, decisions: &mut Vec<Decision>) {
        let mut claimed: BTreeMap<u32, u32> = BTreeMap::new();
        let mut still = VecDeque::with_capacity(self.line.len());
        for waiting in core::mem::take(&mut self.line) {
            if !self.held.contains_key(&waiting.group) && self.room(&waiting.nodes, &claimed) {
                self.granted += 1;
                for node in waiting.nodes.iter() {
                    *self.used.entry(node.0).or_insert(0) += 1;
                }
                decisions.push(Decision::Grant(waiting.group));
                let Waiting { group, nodes, .. } = waiting;
                let holder = Holder { nodes, number: self.granted, since: now, revoked: false };
                self.held.insert(group, holder);
            } else {
                for node in waiting.nodes.iter() {
                    *claimed.entry(node.0).or_insert(0) += 1;
                }
                still.push_back(waiting);
            }
        }
        self.line = still;
    }

    /// Asks as many holders to stop, the oldest first, as the groups in line need.
    fn revoke(&mut self, decisions: &mut Vec<Decision>) {
        let mut claimed: BTreeMap<u32, u32> = BTreeMap::new();
        for waiting in &self.line {
            for node in waiting.nodes.iter() {
                let claimed = claimed.entry(node.0).or_insert(0);
                *claimed += 1;
                let here = |h: &Holder| h.nodes.contains(node);
                let staying = self.held.values().filter(|h| here(h) && !h.revoked).count() as u32;
                if staying + *claimed <= self.capacity {
                    continue;
                }
                let oldest = self.held.iter_mut().filter(|(_, h)| here(h) && !h.revoked).min_by_key(|(_, h)| h.number);
                if let Some((group, holder)) = oldest {
                    holder.revoked = true;
                    decisions.push(Decision::Revoke(*group));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: GroupIndex = GroupIndex(1);
    const B: GroupIndex = GroupIndex(2);
    const C: GroupIndex = GroupIndex(3);

    fn nodes(list: &[u32]) -> RankList {
        RankList::from_ranks(list.iter().copied())
    }

    fn ask(arbiter: &mut Arbiter, group: GroupIndex, at: &[u32]) -> Vec<Decision> {
        let mut decisions = Vec::new();
        arbiter.request(group, nodes(at), Nanos(0), &mut decisions);
        decisions
    }

    #[test]
    fn a_free_context_is_granted_and_a_taken_one_revoked() {
        let mut arbiter = Arbiter::new(1);
        assert_eq!(ask(&mut arbiter, A, &[0, 1]), [Decision::Grant(A)]);
        assert_eq!(ask(&mut arbiter, B, &[1, 2]), [Decision::Revoke(A)]);
        assert_eq!(ask(&mut arbiter, C, &[3]), [Decision::Grant(C)]);
        let mut decisions = Vec::new();
        arbiter.released(A, Nanos(0), &mut decisions);
        assert_eq!(decisions, [Decision::Grant(B)]);
    }

    #[test]
    fn every_waiter_gets_its_holder_revoked() {
        let mut arbiter = Arbiter::new(1);
        ask(&mut arbiter, A, &[0]);
        ask(&mut arbiter, B, &[1]);
        assert_eq!(ask(&mut arbiter, C, &[0]), [Decision::Revoke(A)]);
        let d = GroupIndex(4);
        assert_eq!(ask(&mut arbiter, d, &[1]), [Decision::Revoke(B)]);
    }

    #[test]
    fn as_many_holders_are_asked_to_stop_as_groups_wait() {
        let (mut arbiter, d) = (Arbiter::new(2), GroupIndex(4));
        ask(&mut arbiter, A, &[0]);
        ask(&mut arbiter, B, &[0]);
        assert_eq!(ask(&mut arbiter, C, &[0]), [Decision::Revoke(A)]);
        assert_eq!(ask(&mut arbiter, d, &[0]), [Decision::Revoke(B)]);
    }

    #[test]
    fn nobody_overtakes_who_waits_for_the_same_node() {
        let mut arbiter = Arbiter::new(1);
        ask(&mut arbiter, A, &[0]);
        ask(&mut arbiter, B, &[0, 1]);
        assert_eq!(ask(&mut arbiter, C, &[1]), []);
        let mut decisions = Vec::new();
        arbiter.released(A, Nanos(0), &mut decisions);
        assert_eq!(decisions, [Decision::Grant(B), Decision::Revoke(B)]);
        decisions.clear();
        arbiter.released(B, Nanos(0), &mut decisions);
        assert_eq!(decisions, [Decision::Grant(C)]);
    }

    #[test]
    fn a_holder_that_asks_again_waits_for_its_own_release() {
        let mut arbiter = Arbiter::new(2);
        ask(&mut arbiter, A, &[0]);
        assert_eq!(ask(&mut arbiter, A, &[0]), []);
        let mut decisions = Vec::new();
        arbiter.released(A, Nanos(0), &mut decisions);
        assert_eq!(decisions, [Decision::Grant(A)]);
    }

    #[test]
    fn who_holds_and_who_waits_has_done_so_since_it_was_granted_or_asked() {
        let mut arbiter = Arbiter::new(1);
        let mut decisions = Vec::new();
        for (now, group) in [(10, A), (20, B), (30, C)] {
            arbiter.request(group, nodes(&[0]), Nanos(now), &mut decisions);
        }
        assert_eq!(arbiter.held().collect::<Vec<_>>(), [(A, Nanos(10))]);
        assert_eq!(arbiter.line().collect::<Vec<_>>(), [(B, Nanos(20)), (C, Nanos(30))]);
        arbiter.released(A, Nanos(40), &mut decisions);
        assert_eq!(arbiter.held().collect::<Vec<_>>(), [(B, Nanos(40))]);
        assert_eq!(arbiter.line().collect::<Vec<_>>(), [(C, Nanos(30))]);
    }

    #[test]
    fn a_forgotten_group_holds_nothing() {
        let mut arbiter = Arbiter::new(1);
        ask(&mut arbiter, A, &[0]);
        ask(&mut arbiter, B, &[0]);
        let mut decisions = Vec::new();
        arbiter.forget(B, Nanos(0), &mut decisions);
        arbiter.forget(A, Nanos(0), &mut decisions);
        assert_eq!((arbiter.holders(), arbiter.waiting(), decisions.len()), (0, 0, 0));
    }
}
