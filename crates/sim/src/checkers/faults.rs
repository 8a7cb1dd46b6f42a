//! No fault occurs without a cause, and each fault names its cause.

use trib_wire::{Fault, Reason};

use super::Checkers;
use crate::options::Trouble;

const NAME: &str = "faults";

impl Checkers {
    /// The group has failed or was refused at this rank.
    pub fn group_failed(&mut self, group: usize, rank: u32, fault: &Fault) {
        self.check_soon(group, fault);
        self.progress(rank);
        self.groups[group].failed = true;
        if let Some(wrong) = self.objection(group, rank, fault) {
            self.fail(NAME, format!("group {group} fails at rank {rank} {wrong}: {fault}"));
        }
    }

    pub(super) fn check_fault(&mut self, operation: usize, rank: u32, fault: &Fault) {
        let group = self.operations[operation].group;
        if let Some(wrong) = self.objection(group, rank, fault) {
            let what = format!("{} fails at rank {rank} {wrong}: {fault}", self.name(operation));
            self.fail(NAME, what);
        }
    }

    /// Members disagree about this operation, so no rank may get a result.
    pub(super) fn check_odd_success(&mut self, operation: usize, rank: u32) {
        let what = format!("{} succeeds at rank {rank} though the members disagree", self.name(operation));
        self.fail(NAME, what);
    }

    /// What is wrong with a fault that the group has at this rank.
    fn objection(&self, group: usize, rank: u32, fault: &Fault) -> Option<&'static str> {
        let plan = &self.work.groups[group];
        let is_set = |ranks: &[bool], rank: u32| ranks.get(rank as usize).copied().unwrap_or(false);
        let dead = |rank: u32| is_set(&self.dead, rank) || is_set(&self.stopped, rank);
        if is_set(&self.stopped, rank) {
            // It wakes among those that have gone on without it.
            return None;
        }
        let (is_over, is_hurt) = (self.groups[group].freed.contains(&rank), plan.members.iter().any(|m| dead(*m)));
        if fault.reason == Reason::MemberDead && is_set(&self.left, fault.rank_a.0) {
            // It has left the job, as it may when the group is over or has failed, and an epoch
            // that began then missed it.
            let may_miss = is_over || is_hurt || plan.disturbed.is_some();
            return (!may_miss).then_some("while a rank that has left is missed");
        }
        if self.has_lost_a_node(group) {
            let is_below = |node: &usize| self.tree.nodes[*node].ranks.contains(&fault.rank_a.0);
            let named = match fault.reason {
                Reason::NodeDead => self.lost.contains(&usize::from(fault.node.0)),
                // What is said of a group that was in the making.
                Reason::MemberDead => self.lost.iter().any(is_below),
                _ => false,
            };
            let known = named || plan.disturbed.is_some();
            return (!known).then_some("without naming the dead node");
        }
        if is_hurt {
            let named = fault.reason == Reason::MemberDead && dead(fault.rank_a.0);
            let known = named || plan.disturbed.is_some();
            return (!known).then_some("without naming the dead rank");
        }
        match plan.disturbed {
            None => Some("without a cause"),
            Some(Trouble::Mismatch) => self.objection_to_mismatch(group, fault),
            Some(Trouble::EarlyFree) => {
                let left = self.groups[group].freed.contains(&fault.rank_a.0);
                (fault.reason != Reason::MemberLeft || !left).then_some("without naming the rank that left")
            }
            Some(Trouble::TightQuota) => {
                let quota = matches!(fault.reason, Reason::GroupQuota | Reason::OstQuota | Reason::GroupMemory);
                (!quota).then_some("without naming the quota")
            }
            Some(trouble) if trouble.is_of_the_way() => {
                let named = self.narrow.is_some_and(|(node, ranks)| {
                    usize::from(fault.node.0) == node && (fault.rank_a.0, fault.rank_b.0) == ranks
                });
                let told = match fault.reason {
                    Reason::DatagramTooLong => matches!(trouble, Trouble::ShortPath(_)),
                    // After an epoch the upper end has more patience than the lower one, which
                    // cannot tell that only long datagrams are lost.
                    Reason::DatagramsBlocked => trouble == Trouble::NoDatagrams || self.moved,
                    Reason::ResultLost => true,
                    _ => false,
                };
                (!named || !told).then_some("without naming the link that datagrams do not pass")
            }
            Some(_) => None,
        }
    }

    fn objection_to_mismatch(&self, group: usize, fault: &Fault) -> Option<&'static str> {
        let (a, b) = (fault.rank_a.0, fault.rank_b.0);
        let members = &self.work.groups[group].members;
        let odd =
            self.work.operations.iter().filter(|op| op.group == group).find_map(|op| op.odd.map(|(rank, _)| rank));
        if fault.reason != Reason::Mismatch {
            Some("without saying that ranks disagree")
        } else if a == b || !members.contains(&a) || !members.contains(&b) {
            Some("without naming two ranks")
        } else if odd.is_some_and(|odd| odd != a && odd != b) {
            Some("naming two ranks that agree")
        } else {
            None
        }
    }
}
