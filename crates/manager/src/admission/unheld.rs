//! Jobs that no connection holds: whether ranks of theirs are left.
//!
//! A node says when it has lost a job. It keeps one for a while whose ranks have gone, because
//! others may come, and a backup to which no rank has ever come cannot know that the job is over.
//! Put together, what all nodes tell says more, and sooner; so they are asked again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use trib_messages::jobs::JobActivity;
use trib_wire::ids::JobId;

use super::ending::end_unheld;
use super::presence::Presence;
use crate::fabric::Fabric;
use crate::records::jobs::Unheld;

/// Starts the thread that looks for such jobs, and ends those that no rank is left of. The thread
/// ends by itself when the manager does.
pub(crate) fn watch(fabric: &Arc<Fabric>) -> io::Result<()> {
    let fabric = Arc::downgrade(fabric);
    thread::Builder::new().name("unheld".into()).spawn(move || look(&fabric)).map(drop)
}

fn look(fabric: &Weak<Fabric>) {
    let mut watch: Option<Watch> = None;
    while let Some(fabric) = fabric.upgrade() {
        watch.get_or_insert_with(|| Watch::begin(&fabric)).glance(&fabric);
        drop(fabric);
        thread::sleep(GLANCE);
    }
}

/// What has been seen of the jobs that no connection holds.
pub(crate) struct Watch {
    begin: Instant,
    /// Since when no rank of these jobs is there.
    quiet: BTreeMap<JobId, Instant>,
}

impl Watch {
    /// Nothing has been seen yet.
    pub(crate) fn begin(fabric: &Fabric) -> Watch {
        Watch { begin: fabric.time.now(), quiet: BTreeMap::new() }
    }

    /// Asks the nodes of such jobs, and ends those of which no rank is left. What ended jobs had is
    /// given back if only nodes are in the way that are down.
    pub(crate) fn glance(&mut self, fabric: &Fabric) {
        give_up(fabric);
        for node in fabric.registry.all_silent().iter().filter(|node| is_down(fabric, node)) {
            fabric.tenancy.silent(node);
        }
        let jobs = fabric.jobs.unheld();
        let told = ask(fabric, nodes_of(&jobs));
        let (now, mut still_quiet) = (fabric.time.now(), BTreeMap::new());
        for job in &jobs {
            let presence = presence(fabric, job, &told, now.saturating_duration_since(self.begin));
            let Some(patience) = presence.patience() else { continue };
            let since = *self.quiet.get(&job.status.id).unwrap_or(&now);
            if now.saturating_duration_since(since) >= patience {
                end_unheld(fabric, vec![job.status.id]);
            } else {
                still_quiet.insert(job.status.id, since);
            }
        }
        self.quiet = still_quiet;
    }
}

/// Nodes that are down have lost their jobs.
fn give_up(fabric: &Fabric) {
    let jobs = fabric.jobs.unheld();
    let down: BTreeSet<String> = nodes_of(&jobs).into_iter().filter(|node| is_down(fabric, node)).cloned().collect();
    if !down.is_empty() {
        end_unheld(fabric, fabric.jobs.give_up(&down));
    }
}

/// The nodes where one of these jobs may be.
fn nodes_of(jobs: &[Unheld]) -> BTreeSet<&String> {
    jobs.iter().flat_map(|job| &job.maybe_at).collect()
}

/// Whether a node has been away, or silent, for so long that its jobs are gone from there.
fn is_down(fabric: &Fabric, node: &str) -> bool {
    let (since_ms, grace) = match fabric.registry.known(node) {
        Some(session) if session.lost_ms().is_some() => (session.lost_ms(), LOST_GRACE),
        Some(session) => (session.silent_ms(), GRACE),
        None => (Some(fabric.started_ms), GRACE),
    };
    since_ms.is_some_and(|since| fabric.time.unix_ms().saturating_sub(since) >= grace.as_millis() as u64)
}

/// What all jobs do at each of these nodes, as far as they answer.
fn ask(fabric: &Fabric, nodes: BTreeSet<&String>) -> BTreeMap<String, Vec<JobActivity>> {
    let question = |node: &String| Some((node.clone(), fabric.registry.connected(node)?.query_activity()?));
    let asked: Vec<(String, Receiver<Vec<JobActivity>>)> = nodes.into_iter().filter_map(question).collect();
    let end = fabric.time.now() + ANSWER;
    let answer = |(node, answer): (String, Receiver<Vec<JobActivity>>)| {
        Some((node, fabric.time.receive(&answer, fabric.time.left(end)).ok()?))
    };
    asked.into_iter().filter_map(answer).collect()
}

fn presence(fabric: &Fabric, job: &Unheld, told: &BTreeMap<String, Vec<JobActivity>>, age: Duration) -> Presence {
    let Unheld { status, maybe_at } = job;
    if !fabric.deputies.of(status.id).is_empty() {
        return Presence::There;
    }
    let mut parts = Vec::new();
    for node in maybe_at {
        let Some(all) = told.get(node) else {
            // Nothing replaces it for a job that cannot go on.
            if status.fault.is_some() {
                continue;
            }
            return Presence::There;
        };
        parts.extend(all.iter().filter(|part| part.job == status.id).cloned());
    }
    match Presence::of(status, &parts) {
        Presence::Gone => Presence::Gone,
        _ if age < CALLS && !status.deputies.is_empty() => Presence::There,
        other => other,
    }
}

/// A node that is silent for this long is down, and its jobs with it; they have gone on elsewhere
/// if it is stopped. So is one that has not called a manager that began so long ago.
const GRACE: Duration = Duration::from_secs(60);
/// The same for a node whose connection has ended: it has died, or calls again within two seconds.
const LOST_GRACE: Duration = Duration::from_secs(10);
/// How often nodes are asked.
const GLANCE: Duration = Duration::from_millis(500);
/// A rank that hosts nodes of its job calls again at least every two seconds, and waits five for an
/// answer. A manager that is younger does not know of all such ranks.
const CALLS: Duration = Duration::from_secs(8);
/// How long nodes may take to answer.
const ANSWER: Duration = Duration::from_secs(1);
