//! One job in detail: what its aggregation nodes say about it, or how it ended and why it was refused.

use std::time::Instant;

use trib_wire::control::explanation::{Explanation, HostedPart};
use trib_wire::control::reply::{JobStatus, Refusal, Reply, Resource};
use trib_wire::ids::JobId;

use crate::fabric::Fabric;
use crate::names::cut;
use crate::past::NAME_MAX;
use crate::refuse::{lasting, refuse};
use crate::status::PATIENCE;

/// Asks every node of the job at once and waits at most a second for the slowest; of a job that is no more, what is
/// remembered.
pub(crate) fn explain(fabric: &Fabric, job: JobId) -> Result<Reply, Refusal> {
    if let Some(status) = fabric.jobs.get(job) {
        return Ok(Reply::Explanation(at_its_nodes(fabric, status)));
    }
    fabric.past.get(job).map(Reply::Past).ok_or_else(|| unknown(fabric, &job.to_string()))
}

/// The same of the job of a program.
pub(crate) fn explain_program(fabric: &Fabric, name: &str) -> Result<Reply, Refusal> {
    match fabric.jobs.of_program(name)[..] {
        [job] => explain(fabric, job),
        [] => {
            let named = || unknown(fabric, &format!("job of a program `{}`", cut(name, NAME_MAX)));
            fabric.past.last_of(name).map(Reply::Past).ok_or_else(named)
        }
        [first, .., last] => {
            let text = format!(
                "several jobs of `{}` are running, from {first} to {last}: name one by its number; `trib jobs` lists them",
                cut(name, NAME_MAX)
            );
            Err(refuse(Resource::Job, Some(&first.to_string()), text))
        }
    }
}

fn at_its_nodes(fabric: &Fabric, status: JobStatus) -> Explanation {
    let asked: Vec<_> = status
        .nodes
        .iter()
        .map(|name| (name, fabric.registry.connected(name).and_then(|session| session.explain(status.id))))
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
    Explanation { job: status, parts, silent }
}

fn unknown(fabric: &Fabric, what: &str) -> Refusal {
    let text = format!(
        "the manager knows no {what}: it ended before the manager started or too long ago to be remembered, or it never \
         asked. A program that was started without TRIB_MANAGER, with TRIB_MPI=off, or that did not reach the manager leaves \
         no trace here, only on its own stderr; `trib jobs --all` lists what is known"
    );
    lasting(refuse(Resource::Job, Some(what), text), fabric.started_ms)
}
