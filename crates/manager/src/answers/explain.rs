//! One job in detail: what its aggregation nodes say about it, or how it ended and why it was
//! refused.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use trib_messages::explanation::{Explanation, HostedPart, NodePart};
use trib_messages::recovery::{EpochPart, EpochTold};
use trib_messages::reply::{JobStatus, Refusal, Reply, Resource};
use trib_wire::ids::{JobId, Rank};

use super::homes::{self, Moves};
use super::status::PATIENCE;
use crate::fabric::Fabric;
use crate::names::cut;
use crate::nodes::session::{Session, Told};
use crate::records::past::NAME_MAX;
use crate::refuse::{lasting, refuse};
use crate::tenancy::Sight;

/// Asks every node of the job at once, and waits at most a second for the slowest. Of a job that is
/// over it tells what is remembered. With a `group` it asks for the groups with this tag and for
/// nothing else. A job that is not seen is not known.
pub(crate) fn explain(fabric: &Fabric, job: JobId, group: Option<u64>, sight: &Sight) -> Result<Reply, Refusal> {
    if let Some(status) = fabric.jobs.get(job).filter(|status| sight.sees(status.tenant())) {
        let explanation = at_its_nodes(fabric, status, group);
        return match group {
            Some(tag) if !has_groups(&explanation) => Err(no_group(job, tag, &explanation.silent)),
            _ => Ok(Reply::Explanation(Box::new(explanation))),
        };
    }
    let past = fabric.past.get(job).filter(|job| sight.sees(job.tenant.as_deref()));
    past.map(Reply::Past).ok_or_else(|| unknown(fabric, &job.to_string()))
}

/// Explains the job of a program, in the same way.
pub(crate) fn explain_program(
    fabric: &Fabric,
    name: &str,
    group: Option<u64>,
    sight: &Sight,
) -> Result<Reply, Refusal> {
    match fabric.jobs.of_program(name, sight)[..] {
        [job] => explain(fabric, job, group, sight),
        [] => {
            let named = || unknown(fabric, &format!("job of a program `{}`", cut(name, NAME_MAX)));
            fabric.past.last_of(name, sight).map(Reply::Past).ok_or_else(named)
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

fn at_its_nodes(fabric: &Fabric, status: JobStatus, group: Option<u64>) -> Explanation {
    let at_node = |name: &String| (name.clone(), true, fabric.registry.connected(name));
    let at_rank = |session: Arc<Session>| (session.name.clone(), false, Some(session));
    let sessions = status.nodes.iter().map(at_node).chain(fabric.deputies.of(status.id).into_iter().map(at_rank));
    let ask = |session: Arc<Session>| session.explain(status.id, group);
    let asked: Vec<_> = sessions.map(|(name, is_node, session)| (name, is_node, session.and_then(ask))).collect();
    let ways = fabric.jobs.ways(status.id);
    let end = fabric.time.now() + PATIENCE;
    let (mut parts, mut silent, mut epochs, mut moves) = (Vec::new(), Vec::new(), Vec::new(), Moves::default());
    for (name, is_node, answer) in asked {
        let left = fabric.time.left(end);
        let Some(told) = answer.and_then(|answer| fabric.time.receive(&answer, left).ok()) else {
            // A rank that is gone by now is no trouble of its own.
            silent.extend(Some(name).filter(|_| is_node));
            continue;
        };
        let Told { parts: here, traffic, epochs: known } = told;
        let known = known.into_iter().map(|epoch| with_present(epoch, &here, &status));
        epochs.extend(known.map(|epoch| EpochTold { by: name.clone(), epoch }));
        here.iter().for_each(|part| moves.learn(&part.moves));
        parts.extend(here.into_iter().map(|part| HostedPart {
            at: name.clone(),
            lane: status.lane_of(part.node).unwrap_or(0) as u32,
            traffic: traffic.iter().find(|of| of.node == part.node).cloned(),
            ways: ways.at(part.node),
            part,
        }));
    }
    epochs.sort_by_key(|told: &EpochTold| (told.epoch.lane, told.epoch.moves, told.epoch.at_ms));
    let homes = homes::all(fabric, &status, &moves);
    // Backups of a node tell about it, too. It is where its children are.
    let is_backup = |hosted: &HostedPart| status.primary_of(hosted.part.node).is_some_and(|name| name != hosted.at);
    let connected = |part: &NodePart| part.children.iter().filter(|child| child.connected).count();
    parts.sort_by_key(|hosted| (hosted.part.node, Reverse(connected(&hosted.part)), is_backup(hosted)));
    parts.dedup_by_key(|hosted| hosted.part.node);
    let groups = parts.iter().flat_map(|hosted: &HostedPart| &hosted.part.groups);
    let late: BTreeSet<Rank> = groups.flat_map(|group| &group.late).map(|late| late.rank).collect();
    let processes = fabric.jobs.processes(status.id, &late);
    Explanation { job: status, parts, silent, processes, homes, epochs }
}

/// What a process knows of an epoch, with what the nodes say that it hosts in that epoch.
fn with_present(mut epoch: EpochPart, here: &[NodePart], status: &JobStatus) -> EpochPart {
    let lane = |part: &NodePart| status.lane_of(part.node).unwrap_or(0) as u32;
    let present = here.iter().filter(|part| (lane(part), part.epoch()) == (epoch.lane, epoch.moves));
    present.for_each(|part| epoch.replayed += part.replayed);
    epoch
}

fn has_groups(explanation: &Explanation) -> bool {
    explanation.parts.iter().any(|hosted| !hosted.part.groups.is_empty())
}

fn no_group(job: JobId, tag: u64, silent: &[String]) -> Refusal {
    let asked = match silent {
        [] => String::new(),
        silent => format!(" at the nodes that answer, which {} does not", silent.join(", ")),
    };
    let text = format!(
        "{job} has no group with the tag {tag}{asked}: it was not made, or its ranks have freed it; `trib explain {}` lists the \
         job's groups with their tags",
        job.0
    );
    refuse(Resource::Groups, Some(&job.to_string()), text)
}

fn unknown(fabric: &Fabric, what: &str) -> Refusal {
    let text = format!(
        "the manager knows no {what}: it ended too long ago to be remembered, or, where the manager has no --state, before it started, or it never \
         asked. A program that was started without TRIB_MANAGER, with TRIB_MPI=off, or that did not reach the manager leaves \
         no trace here, only on its own stderr; `trib jobs --all` lists what is known"
    );
    lasting(refuse(Resource::Job, Some(what), text), fabric.started_ms)
}
