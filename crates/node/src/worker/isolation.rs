//! What an error of this program's own may cost: the job whose event was handled, and never another
//! one.
//!
//! ```text
//!   an event of one job --> guard --ok----> settle
//!                             `--panic--> abandon: last frames go out, links close, state drops
//! ```
//! What jobs share (sockets, counts, the table) keeps nothing of a job between two calls, so it is
//! whole even after a call that ended in the middle. Of the job itself, nothing is used again but
//! for its last frames.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Worker;
use super::hosted::Slot;
use crate::accept::Request;
use crate::job::{Job, Output};
use crate::news::News;

/// Does `work`. If it panics, returns the words with which it did.
pub(crate) fn guard<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| words(&*panic))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    words.unwrap_or("a panic without words").to_owned()
}

impl Worker {
    /// Handles one event of a job, and what follows from it.
    pub(super) fn handle(&mut self, slot: Slot, event: impl FnOnce(&mut Worker)) {
        match guard(|| event(self)) {
            Ok(()) => self.settle(slot),
            Err(why) => self.abandon(slot, &why),
        }
    }

    /// Asks every job here. A job that panics over the question is abandoned.
    pub(super) fn ask<T>(&mut self, question: impl Fn(&Job) -> T) -> Vec<T> {
        let mut answers = Vec::new();
        for slot in self.hosted.slots() {
            let Some(job) = self.hosted.get_mut(slot) else { continue };
            match guard(|| question(job)) {
                Ok(answer) => answers.push(answer),
                Err(why) => self.abandon(slot, &why),
            }
        }
        answers
    }

    /// The job cannot go on here, by an error of this program's own. Its ranks and the other nodes
    /// of its tree are told which node has the error, its links close, and all that it has here is
    /// given back.
    pub(super) fn abandon(&mut self, slot: Slot, why: &str) {
        let Some(mut job) = self.take_out(slot) else { return };
        let identity = job.io.identity;
        tracing::error!(
            job = identity.job.0,
            node = job.io.name,
            lane = job.io.lane,
            why,
            "an error of this program's own ends the job here, and no other job; please report it"
        );
        self.tally.jobs_broken += 1;
        self.tally.jobs_removed += 1;
        self.past += &job.io.latencies;
        job.io.broken = None;
        let mut out = Output { io: &mut job.io, udp: &mut self.datagrams.socket, tally: &mut self.tally };
        // The error may be in the core. Then the links close without its last frames.
        if let Err(why) = guard(|| job.core.give_up(&mut out)) {
            tracing::error!(
                job = identity.job.0,
                node = job.io.name,
                lane = job.io.lane,
                why,
                "the job's ranks are told by the end of their links"
            );
        }
        self.part(&mut job);
        let why = format!("an error in the node's program ended it there, and no other job ({why}); please report it");
        // The thread that receives the news ends only with the process.
        let _ = self.news.send(News::Faulty { job: identity.job, fault: None, why });
        (self.tell)(Request::Gone((identity.job, identity.node)));
    }
}

/// An error that tests set off.
#[cfg(test)]
pub(crate) mod trap {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};

    use trib_wire::JobId;

    static JOBS: Mutex<BTreeSet<JobId>> = Mutex::new(BTreeSet::new());

    /// Makes the next fold or installation of this job panic.
    pub(crate) fn set(job: JobId) {
        JOBS.lock().unwrap_or_else(PoisonError::into_inner).insert(job);
    }

    /// Panics if the trap is set for this job, once.
    pub(crate) fn step(job: JobId) {
        let is_set = JOBS.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
        assert!(!is_set, "the trap of a test");
    }
}

#[cfg(test)]
mod tests;
