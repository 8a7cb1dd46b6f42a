//! The jobs of one worker, and how the header of a frame leads to its job.

use std::ops::Range;

use rustc_hash::FxHashMap;
use trib_wire::{ChildIndex, JobId, NodeId};

use super::command::Key;
use crate::job::Job;

/// A job's index in a worker's table. It is used again when the job is gone.
pub(crate) type Slot = usize;

/// The table of jobs.
#[derive(Default)]
pub(crate) struct Hosted {
    jobs: Vec<Option<Job>>,
    // A frame of a stranger may look up any key, but only a grant adds an entry, so a fast hash is
    // enough.
    by_node: FxHashMap<Key, Slot>,
    /// The children here of each parent, because frames from above name the parent.
    by_parent: FxHashMap<Key, Vec<(ChildIndex, Slot)>>,
    /// Whether there are nodes of more than one job.
    is_shared: bool,
}

impl Hosted {
    pub(crate) fn insert(&mut self, job: Job) -> Slot {
        let identity = job.io.identity;
        let slot = self.jobs.iter().position(Option::is_none).unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        self.by_node.insert((identity.job, identity.node), slot);
        if let Some((parent, child)) = identity.parent {
            self.by_parent.entry((identity.job, parent)).or_default().push((child, slot));
        }
        self.jobs[slot] = Some(job);
        self.count_jobs();
        slot
    }

    /// Whether there is no node.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_node.is_empty()
    }

    /// Whether there are nodes of more than one job.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn count_jobs(&mut self) {
        let mut jobs = self.by_node.keys().map(|(job, _)| *job);
        let first = jobs.next();
        self.is_shared = jobs.any(|job| Some(job) != first);
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Job> {
        let job = self.jobs.get_mut(slot)?.take()?;
        let identity = job.io.identity;
        self.by_node.remove(&(identity.job, identity.node));
        self.count_jobs();
        if let Some((parent, _)) = identity.parent
            && let Some(siblings) = self.by_parent.get_mut(&(identity.job, parent))
        {
            siblings.retain(|(_, other)| *other != slot);
            if siblings.is_empty() {
                self.by_parent.remove(&(identity.job, parent));
            }
        }
        Some(job)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Job> {
        self.jobs.get_mut(slot)?.as_mut()
    }

    pub(crate) fn find(&self, key: Key) -> Option<Slot> {
        self.by_node.get(&key).copied()
    }

    /// The n-th job here that is below `parent` and that a frame for `child` (or for all) concerns.
    pub(crate) fn nth_below(&self, job: JobId, parent: NodeId, child: ChildIndex, n: usize) -> Option<Slot> {
        let siblings = self.by_parent.get(&(job, parent))?;
        let concerned = siblings.iter().filter(|(own, _)| child == ChildIndex::ALL || child == *own);
        concerned.map(|(_, slot)| *slot).nth(n)
    }

    /// All slots, with those of jobs that are gone. A clock's tick goes through them, because it
    /// may change the table meanwhile and must not allocate.
    pub(crate) fn slots(&self) -> Range<Slot> {
        0..self.jobs.len()
    }
}
