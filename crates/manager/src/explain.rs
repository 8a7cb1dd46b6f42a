//! One job in detail: what its aggregation nodes say about it.

use std::time::Instant;

use trib_wire::control::explanation::{Explanation, HostedPart};
use trib_wire::control::reply::{Refusal, Resource};
use trib_wire::ids::JobId;

use crate::fabric::Fabric;
use crate::refuse::refuse;
use crate::status::PATIENCE;

/// Asks every node of the job at once and waits at most a second for the slowest.
pub(crate) fn explain(fabric: &Fabric, job: JobId) -> Result<Explanation, Refusal> {
    let status = fabric.jobs.get(job).ok_or_else(|| {
        let text =
            format!("there is no {job}: it has ended, or was never admitted; `trib status` lists those there are");
        refuse(Resource::Job, Some(&job.to_string()), text)
    })?;
    let asked: Vec<_> = status
        .nodes
        .iter()
        .map(|name| (name, fabric.registry.connected(name).and_then(|session| session.explain(job))))
        .collect();
    let end = Instant::now() + PATIENCE;
    let (mut parts, mut silent) = (Vec::new(), Vec::new());
    for (name, answer) in asked {
        let left = end.saturating_duration_since(Instant::now());
        match answer.and_then(|answer| answer.recv_timeout(left).ok()) {
            Some(here) => parts.extend(here.into_iter().map(|part| HostedPart { at: name.clone(), part })),
            None => silent.push(name.clone()),
        }
    }
    parts.sort_by_key(|hosted| hosted.part.node);
    Ok(Explanation { job: status, parts, silent })
}
