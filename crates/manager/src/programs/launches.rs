//! Which job came from which launcher. A launcher that knows how its program ended names the
//! program by the text under which the ranks met.
//!
//! Only the launcher and its ranks know that text, so it is proof enough for an account of a job
//! that is over, from the same tenant.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use trib_wire::ids::JobId;

use super::rendezvous::Meeting;

/// The newest of these texts.
#[derive(Default)]
pub(crate) struct Launches {
    known: Mutex<VecDeque<(Meeting, JobId)>>,
}

impl Launches {
    /// The ranks that met there have this job.
    pub(crate) fn enter(&self, meeting: Meeting, job: JobId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back((meeting, job));
        if known.len() > KNOWN_MAX {
            known.pop_front();
        }
    }

    /// The job of the ranks that met there.
    pub(crate) fn job(&self, meeting: &Meeting) -> Option<JobId> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().rev().find(|(known, _)| known == meeting).map(|(_, job)| *job)
    }
}

/// The number of texts that are kept: one for each job that may run, and for each that is
/// remembered.
const KNOWN_MAX: usize = crate::records::jobs::JOBS_MAX + 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_known_by_their_text_and_tenant() {
        let launches = Launches::default();
        let meeting = |text: &str| Meeting { tenant: Some("a".into()), text: text.into() };
        for job in 1..=KNOWN_MAX as u32 + 1 {
            launches.enter(meeting(&format!("text {job}")), JobId(job));
        }
        launches.enter(meeting("text 7"), JobId(9999));
        assert_eq!(launches.job(&meeting("text 1")), None);
        assert_eq!(launches.job(&meeting("text 3")), Some(JobId(3)));
        assert_eq!(launches.job(&meeting("text 7")), Some(JobId(9999)));
        assert_eq!(launches.job(&Meeting { tenant: None, ..meeting("text 7") }), None);
    }
}
