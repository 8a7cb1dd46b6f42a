//! The end of a job: what it had is given back, and how it ended is remembered.

use trib_messages::jobs::JobEnd;
use trib_messages::reply::JobStatus;
use trib_wire::ids::JobId;

use crate::fabric::Fabric;

/// Ends a job: its number is free again, its nodes drain, and how it ended is remembered.
pub(crate) fn end(fabric: &Fabric, job: JobId, how: JobEnd) {
    let word = how.word();
    if let Some(status) = forget(fabric, job, Some(how)) {
        tracing::info!(job = job.0, name = status.name, how = word, "job ended");
    }
}

/// Removes a job here and at its nodes, and returns its last status. A job that has run is
/// remembered with `how` it ended.
pub(super) fn forget(fabric: &Fabric, job: JobId, how: Option<JobEnd>) -> Option<JobStatus> {
    let remember = |status: &JobStatus| how.map(|how| fabric.past.ended(status.clone(), how));
    let status = fabric.jobs.leave(job, remember)?;
    fabric.trees.release(job);
    fabric.tenancy.end(job);
    fabric.registry.end_job(job, &status.nodes);
    fabric.deputies.end_job(job);
    Some(status)
}

/// Ends jobs that no connection holds and of which no rank is left.
pub(crate) fn end_unheld(fabric: &Fabric, jobs: Vec<JobId>) {
    for job in jobs {
        // Nodes may have lost a job of an earlier manager without a word to this one.
        if fabric.jobs.get(job).is_some_and(|status| status.adopted) {
            end(fabric, job, JobEnd::Left);
            fabric.tenancy.release(job);
        } else {
            end(fabric, job, JobEnd::Lost);
        }
    }
}
