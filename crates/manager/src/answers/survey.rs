//! All jobs, a line each: those that run, with what their nodes say of them, and those that are
//! over.

use std::collections::BTreeMap;

use trib_control::clock::unix_ms;
use trib_messages::jobs::{Activity, Fallback, JobActivity, JobFault, JobsReport, LiveJob, PastJob};
use trib_messages::recovery::{JobHomes, Replayed};
use trib_messages::reply::JobStatus;
use trib_wire::ids::JobId;

use super::homes::{self, Moves};
use super::status::PATIENCE;
use crate::fabric::Fabric;
use crate::names::{LIST_MAX, cut, names};
use crate::records::past::NAME_MAX;
use crate::tenancy::Sight;

/// Asks every connected node at once and waits at most a second for the slowest.
pub(crate) fn survey(fabric: &Fabric, sight: &Sight) -> JobsReport {
    // The list is taken before the nodes are asked, so that a job that ends meanwhile is in one of
    // the lists.
    let mut live = fabric.jobs.list();
    live.retain(|job| sight.sees(job.tenant()));
    let doings = doings(fabric, &live);
    let (past, forgotten) = fabric.past.list();
    let is_over = |job: &PastJob| live.iter().all(|other| other.id != job.id);
    let past = past.into_iter().filter(|job| sight.sees(job.tenant.as_deref()) && is_over(job)).collect();
    let live = live.into_iter().map(|job| line(fabric, job, &doings)).collect();
    let (fabric, started_ms) = (fabric.topology.name().into(), fabric.started_ms);
    JobsReport { fabric, time_ms: unix_ms(), started_ms, live, past, forgotten }
}

/// Where the nodes of these jobs are that have moved.
pub(crate) fn homes(fabric: &Fabric, live: &[JobStatus]) -> Vec<JobHomes> {
    let doings = doings(fabric, live);
    let of = |status: &JobStatus| {
        let Doing { moves, replayed, .. } = doings.get(&status.id)?;
        let (job, epochs, moved) = (status.id, moves.epochs(), homes::moved(fabric, status, moves));
        (epochs > 0).then_some(JobHomes { job, epochs, moved, replayed: *replayed })
    };
    live.iter().filter_map(of).collect()
}

/// The most nodes of one job of which a line tells where they are.
const MOVED_TOLD: usize = 4;

/// What the processes of a job say of it.
struct Doing {
    /// What it does.
    activity: Activity,
    /// Which of its nodes have moved.
    moves: Moves,
    /// What was replayed for that.
    replayed: Replayed,
}

/// What the nodes of each job say about it, and the ranks that host nodes of it. A node may also
/// have an earlier manager's job with the same number.
fn doings(fabric: &Fabric, live: &[JobStatus]) -> BTreeMap<JobId, Doing> {
    if live.is_empty() {
        return BTreeMap::new();
    }
    let nodes_of: BTreeMap<JobId, &[String]> = live.iter().map(|job| (job.id, &job.nodes[..])).collect();
    let nodes = fabric.topology.nodes().iter().filter_map(|node| fabric.registry.connected(&node.name));
    let nodes = nodes.map(|session| (None, session));
    let deputies = fabric.deputies.all().into_iter().map(|(job, session)| (Some(job), session));
    let sessions: Vec<_> = nodes.chain(deputies).collect();
    let asked: Vec<_> =
        sessions.iter().filter_map(|(of, session)| Some((of, session, session.query_activity()?))).collect();
    let end = fabric.time.now() + PATIENCE;
    let mut doings: BTreeMap<JobId, Doing> = BTreeMap::new();
    for (of, session, answer) in asked {
        let left = fabric.time.left(end);
        let is_here = |told: &JobActivity| match of {
            Some(job) => told.job == *job,
            None => nodes_of.get(&told.job).is_some_and(|nodes| nodes.contains(&session.name)),
        };
        for told in fabric.time.receive(&answer, left).unwrap_or_default().into_iter().filter(is_here) {
            match doings.get_mut(&told.job) {
                Some(Doing { activity, moves, replayed }) => {
                    *activity = activity.and(told.activity);
                    moves.learn(&told.moves);
                    *replayed += told.replayed;
                }
                None => {
                    let mut moves = Moves::default();
                    moves.learn(&told.moves);
                    doings.insert(told.job, Doing { activity: told.activity, moves, replayed: told.replayed });
                }
            }
        }
    }
    doings
}

fn line(fabric: &Fabric, job: JobStatus, doings: &BTreeMap<JobId, Doing>) -> LiveJob {
    let doing = doings.get(&job.id);
    let mut moved = doing.map_or_else(Vec::new, |doing| homes::moved(fabric, &job, &doing.moves));
    moved.truncate(MOVED_TOLD);
    let epochs = doing.map_or(0, |doing| doing.moves.epochs());
    let replayed = doing.map_or_else(Replayed::default, |doing| doing.replayed);
    LiveJob { epochs, moved, replayed, ..bare_line(job, doing.map(|doing| doing.activity)) }
}

/// The line of a job of which none has said that its nodes have moved.
fn bare_line(job: JobStatus, activity: Option<Activity>) -> LiveJob {
    let nodes = names(job.primaries());
    let each = |backups: &Vec<u32>| backups.iter().filter_map(|at| job.nodes.get(*at as usize)).collect::<Vec<_>>();
    let recovers = !job.backups.is_empty() || !job.deputies.is_empty();
    let backups = recovers.then(|| names(job.backups.iter().flat_map(each).map(String::as_str)));
    let recovery = job.limits.as_ref().map(|limits| limits.recovery);
    let JobStatus { id, name, user, ranks, since, hosts, root, fallback, fault, adopted, lost_ms, .. } = job;
    LiveJob {
        id,
        name: cut(&name, NAME_MAX),
        user: cut(&user, NAME_MAX),
        ranks,
        hosts,
        root,
        nodes,
        backups,
        recovery,
        since_ms: since * 1000,
        adopted,
        lost_ms,
        activity,
        fallback: fallback.map(|known| Fallback { text: cut(&known.text, LIST_MAX), ..known }),
        fault: fault.map(|known| JobFault { text: cut(&known.text, LIST_MAX), ..known }),
        epochs: 0,
        moved: Vec::new(),
        replayed: Replayed::default(),
    }
}

#[cfg(test)]
mod tests {
    use trib_messages::jobs::Names;
    use trib_messages::reply::Reply;

    use super::*;
    use crate::records::jobs::JOBS_MAX;

    #[test]
    fn as_many_jobs_as_there_may_be_fit_a_message() {
        // Quotes grow when they are written, and control characters are replaced by longer ones.
        let wild = "\"\\\u{1}".repeat(2_000);
        let job = JobStatus {
            id: JobId(u32::MAX),
            name: wild.clone(),
            user: wild.clone(),
            ranks: u32::MAX,
            nodes: (0..1_000).map(|n| format!("leaf-{n}-of-a-fabric")).collect(),
            homes: (0..1_000).collect(),
            backups: vec![(0..1_000).collect()],
            deputies: Vec::new(),
            in_ranks: Vec::new(),
            since: 1_700_000_000,
            hosts: names(&vec![wild.clone(); 3]),
            root: "leaf-1-of-a-fabric".into(),
            around: Vec::new(),
            fallback: Some(Fallback { text: wild.clone(), since_ms: u64::MAX }),
            fault: Some(JobFault { text: wild, since_ms: u64::MAX }),
            limits: None,
            adopted: false,
            lost_ms: None,
            charge: None,
            lanes: Vec::new(),
            prediction: None,
        };
        let activity = Activity { groups: u64::MAX, ranks: u32::MAX, idle_ms: u64::MAX };
        let replayed = Replayed { fragments: u64::MAX, segments: u64::MAX, bytes: u64::MAX };
        let line = LiveJob { epochs: u64::MAX, replayed, ..bare_line(job, Some(activity)) };
        assert_ne!((&line.hosts, &line.nodes), (&Names::default(), &Names::default()));
        let report = JobsReport { live: vec![line; JOBS_MAX], ..JobsReport::default() };
        let bytes = serde_json::to_vec(&Reply::Jobs(report)).unwrap().len();
        // The rest of a message is for jobs that are over. The tests of `past` check their share.
        assert!(bytes < trib_control::MESSAGE_MAX / 8 * 5, "{bytes}");
    }
}
