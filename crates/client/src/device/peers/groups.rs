//! The groups in which ranks with GPUs combine, made for a group of the program's.

use std::sync::Arc;

use trib_wire::RankList;
use trib_wire::directory::between_devices;

use crate::completion::Completion;
use crate::derived_tag::derived_tag;
use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::{GroupState, Purpose};
use crate::memory::Memory;
use crate::operation;
use crate::posting::Posting;

/// They are left when the value is dropped.
pub(super) struct Groups {
    pub(super) shared: Arc<Shared>,
    /// Those of the ranks of this host: in the one they tell that a chunk is there, in the other
    /// that its result is.
    pub(super) given: Arc<GroupState>,
    pub(super) gotten: Arc<GroupState>,
    /// The ranks of this rank's position on all hosts; `None` if there is one host.
    pub(super) between: Option<Arc<GroupState>>,
}

impl Groups {
    /// Begins to make them, for the rank at this position of its row; `rows` has the members of
    /// each host. What has been begun is left if the rest is refused.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        group: &GroupState,
        (rows, row): (&[Vec<u32>], &[u32]),
        position: usize,
    ) -> Result<Groups, Error> {
        let column: Vec<u32> = rows.iter().map(|row| row[position]).collect();
        let make = |purpose, members: &[u32]| make(shared, group, purpose, members);
        let given = make("devices given", row)?;
        let mut groups = Groups { shared: shared.clone(), gotten: given.clone(), given, between: None };
        groups.gotten = make("devices gotten", row)?;
        if rows.len() > 1 {
            groups.between = Some(make("devices between hosts", &column)?);
        }
        Ok(groups)
    }

    /// Waits until they are there, when all ranks have begun theirs.
    pub(super) fn wait(&self) -> Result<(), Error> {
        self.all().try_for_each(|group| self.shared.wait_as_own(&group.ready))
    }

    /// Posts a barrier.
    pub(super) fn barrier(&self, group: &GroupState) -> Result<Arc<Completion>, Error> {
        self.shared.post(group, Posting::alone(operation::barrier(), Memory::none()))
    }

    /// Leaves them: the others are not to wait for this rank.
    pub(super) fn leave(&self, why: &Error) {
        for group in self.all() {
            // In a finalized context there is nobody to tell.
            let _ = self.shared.leave_group(group, why.clone());
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<GroupState>> {
        [Some(&self.given), Some(&self.gotten), self.between.as_ref()].into_iter().flatten()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.leave(&Error::Peer("this rank has left the group".into()));
    }
}

/// Begins a group of members of the group.
fn make(shared: &Arc<Shared>, group: &GroupState, purpose: &str, members: &[u32]) -> Result<Arc<GroupState>, Error> {
    let rank = members.iter().position(|member| *member == group.rank);
    let rank = rank.ok_or_else(|| Error::broken("a group without this rank"))? as u32;
    let ranks = RankList::from_ranks(members.iter().filter_map(|member| group.members.nth(*member)).map(|rank| rank.0));
    let tag = derived_tag(purpose, group.tag, &group.members, &[]);
    shared.create_group(Purpose::Operations, rank, ranks, tag, between_devices(group.name().as_str()))
}
