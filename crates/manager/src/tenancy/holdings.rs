//! The claims of jobs that run, and of jobs that have ended and are still at a node.
//!
//! A job that was ended drains: ranks that are connected to its nodes may finish, and use until
//! then what the job was given. So what it takes is free when the last of its nodes has forgotten
//! it. Killed ranks lose their connections, so that is soon.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trib_wire::ids::JobId;

use super::line::Charge;

/// The claims by their jobs. If this lock and the line's are both taken, this one is the first.
#[derive(Default)]
pub(super) struct Holdings(Mutex<BTreeMap<JobId, Holding>>);

struct Holding {
    charge: Charge,
    /// The nodes that have not forgotten the job.
    at: BTreeSet<String>,
    ended: bool,
}

impl Holdings {
    /// A job will be at these nodes.
    pub(super) fn add(&self, job: JobId, charge: Charge, nodes: &[String]) {
        let at = nodes.iter().cloned().collect();
        // While the manager counts numbers in order, it does not give the number of a job that
        // still drains to another.
        let before = self.lock().insert(job, Holding { charge, at, ended: false });
        drop(before);
    }

    /// The job has ended.
    pub(super) fn end(&self, job: JobId) {
        self.change(job..=job, |holding| {
            holding.ended = true;
            holding.charge.end();
        });
    }

    /// The job is at no node. Returns its charge.
    pub(super) fn release(&self, job: JobId) -> Option<Charge> {
        self.lock().remove(&job).map(|holding| holding.charge)
    }

    /// The job is not at this node any more.
    pub(super) fn left(&self, node: &str, job: JobId) {
        self.change(job..=job, |holding| {
            holding.at.remove(node);
        });
    }

    /// No job is at this node any more.
    pub(super) fn lost(&self, node: &str) {
        self.change(.., |holding| {
            holding.at.remove(node);
        });
    }

    /// The node does not answer, and what has ended is not waited for there. Jobs that run may go
    /// on when it does.
    pub(super) fn silent(&self, node: &str) {
        self.change(.., |holding| {
            if holding.ended {
                holding.at.remove(node);
            }
        });
    }

    /// Takes the lock once.
    pub(super) fn touch(&self) {
        drop(self.lock());
    }

    /// Gives back the claims of jobs that are at no node any more. It does so without the lock.
    fn change(&self, jobs: impl RangeBounds<JobId>, change: impl Fn(&mut Holding)) {
        let mut holdings = self.lock();
        let changed = holdings.range_mut(jobs).filter_map(|(job, holding)| {
            change(holding);
            (holding.ended && holding.at.is_empty()).then_some(*job)
        });
        let free: Vec<JobId> = changed.collect();
        let gone: Vec<Holding> = free.iter().filter_map(|job| holdings.remove(job)).collect();
        drop(holdings);
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, Holding>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
