//! How groups have ended with which this rank has done. Others may have missed that when a node
//! died. They ask in another epoch, and are told what this rank was told.

use std::collections::{BTreeMap, VecDeque};

use trib_wire::{Fault, GroupKey, Marks};

use super::group::{Group, Name};

/// The last word of a group: why it ended, and how far every member had all results.
struct Ending {
    fault: Fault,
    mark: Marks,
    /// What the node calls the group, which will say when all members have left it.
    name: Name,
    /// Whether this rank stays for those that may ask, until all have left the group. Of one that
    /// was refused the core itself knows whether all know (`LeafCore::confirm`).
    awaited: bool,
}

/// The groups that have failed and that the program has freed, until all members have left them.
#[derive(Default)]
pub(super) struct Concluded {
    endings: BTreeMap<GroupKey, Ending>,
    /// Those that were refused and never were, the oldest first.
    refused: VecDeque<GroupKey>,
}

impl Concluded {
    /// The program has freed this group. It is remembered if it has failed. `is_awaited` is whether
    /// this rank stays until all have left it.
    pub(super) fn add(&mut self, group: &Group, is_awaited: bool) {
        let Some(fault) = group.failed else { return };
        let (key, mark, name) = (group.key.clone(), group.heard(), group.name);
        if name.is_none() && !group.resumed {
            self.refused.push_back(key.clone());
        }
        self.endings.insert(key, Ending { fault, mark, name, awaited: is_awaited && name.is_some() });
        if self.refused.len() > REFUSED_MOST
            && let Some(oldest) = self.refused.pop_front()
        {
            self.endings.remove(&oldest);
        }
    }

    /// How a group has ended, if this rank remembers that.
    pub(super) fn of(&self, key: &GroupKey) -> Option<(Fault, Marks)> {
        self.endings.get(key).map(|ending| (ending.fault, ending.mark))
    }

    /// Whether this rank stays because others may ask.
    pub(super) fn is_awaited(&self) -> bool {
        self.endings.values().any(|ending| ending.awaited)
    }

    /// All know how this group has ended.
    pub(super) fn is_known(&mut self, key: &GroupKey) {
        self.endings.get_mut(key).into_iter().for_each(|ending| ending.awaited = false);
    }

    /// All members have left the group that the node calls so.
    pub(super) fn freed(&mut self, name: &Name) {
        self.endings.retain(|_, ending| ending.name != *name);
    }

    /// A new epoch, in which groups have other names.
    pub(super) fn suspend(&mut self) {
        self.endings.values_mut().for_each(|ending| ending.name = None);
    }
}

/// A program may go on asking for groups that are refused. Of so many the rank knows why; one whose
/// members miss even that is refused because others have left it.
const REFUSED_MOST: usize = 64;

#[cfg(test)]
mod tests {
    use trib_wire::{ChildIndex, Epoch, GroupName, JobId, NodeId, Rank, RankList, Reason};

    use super::*;
    use crate::leaf::LeafConfig;
    use crate::leaf::group::Edge;
    use crate::leaf::output::GroupId;
    use crate::node::LIMITS;

    #[test]
    fn of_creations_that_were_refused_the_last_are_remembered() {
        let (job, epoch, rank, node, child) = (JobId(1), Epoch(1), Rank(0), NodeId(0), ChildIndex(0));
        let (limits, recovers, memory, strict) = (LIMITS, true, 0, false);
        let config = LeafConfig { job, epoch, rank, world_size: 1, node, child, limits, recovers, memory, strict };
        let edge = Edge { config, signs: 0 };
        let key = |creation: usize| GroupKey { tag: 0, creation: creation as u32, members: RankList::world(1) };
        let mut concluded = Concluded::default();
        for creation in 0..=REFUSED_MOST {
            let name = (key(creation), GroupName::default());
            let mut group = Group::new(GroupId(creation as u64), name, 0, &edge);
            group.failed = Some(edge.fault(Reason::GroupQuota));
            concluded.add(&group, true);
        }
        assert_eq!(concluded.of(&key(0)), None);
        assert!((1..=REFUSED_MOST).all(|creation| concluded.of(&key(creation)).is_some()));
        assert!(!concluded.is_awaited(), "nobody will say that all know");
    }
}
