//! What the manager is told of jobs without having asked.

use trib_wire::{Fault, JobId};

/// One thing that has happened to a job here.
pub(crate) enum News {
    /// Nothing of it is here any more.
    Left(JobId),
    /// It, or one of its groups, cannot go on.
    Faulty {
        /// The job.
        job: JobId,
        /// What its members are told; `None` for an error of this program's own.
        fault: Option<Fault>,
        /// The reason in words.
        why: String,
    },
}
