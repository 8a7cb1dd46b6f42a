//! Which job came from which launcher. A launcher that knows how its program ended names the
//! program by the text under which the ranks met.
//!
//! Only the launcher and its ranks know that text, so it is proof enough for an account of a job
//! that is over.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use trib_wire::ids::JobId;

/// The newest of these texts.
#[derive(Default)]
pub(crate) struct Launches {
    known: Mutex<VecDeque<(String, JobId)>>,
}

impl Launches {
    /// The ranks that met under this text have this job.
    pub(crate) fn enter(&self, rendezvous: &str, job: JobId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back((rendezvous.to_owned(), job));
        if known.len() > KNOWN_MAX {
            known.pop_front();
        }
    }

    /// The job of the ranks that met under this text.
    pub(crate) fn job(&self, rendezvous: &str) -> Option<JobId> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().rev().find(|(text, _)| text == rendezvous).map(|(_, job)| *job)
    }
}

/// The number of texts that are kept: one for each job that may run, and for each that is
/// remembered.
const KNOWN_MAX: usize = crate::records::jobs::JOBS_MAX + 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_known_by_their_text() {
        let launches = Launches::default();
        for job in 1..=KNOWN_MAX as u32 + 1 {
            launches.enter(&format!("text {job}"), JobId(job));
        }
        launches.enter("text 7", JobId(9999));
        assert_eq!(launches.job("text 1"), None);
        assert_eq!(launches.job("text 3"), Some(JobId(3)));
        assert_eq!(launches.job("text 7"), Some(JobId(9999)));
    }
}
