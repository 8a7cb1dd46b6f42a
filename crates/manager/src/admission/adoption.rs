//! Jobs that an earlier manager admitted, at nodes that do not come back to say whether they have
//! them, at backups that do not know whether they are over, and at ranks of their own.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use trib_messages::jobs::JobActivity;
use trib_wire::ids::JobId;

use super::ending::end_adopted;
use crate::fabric::Fabric;
use crate::records::jobs::Adopted;

/// Starts the thread that gives such nodes up after a while, and ends jobs that are at idle backups
/// alone, if there are such jobs. The thread ends by itself.
pub(crate) fn watch(fabric: &Arc<Fabric>) -> io::Result<()> {
    if !fabric.jobs.has_adopted() {
        return Ok(());
    }
    let fabric = Arc::downgrade(fabric);
    thread::Builder::new().name("adoption".into()).spawn(move || give_up(&fabric)).map(drop)
}

fn give_up(fabric: &Weak<Fabric>) {
    let begin = Instant::now();
    let (mut last_look, mut quiet, mut given_up) = (begin, BTreeSet::new(), false);
    loop {
        thread::sleep(GLANCE);
        // The manager has stopped, or nothing is left to wait for.
        let Some(fabric) = fabric.upgrade().filter(|fabric| fabric.jobs.has_adopted()) else { return };
        if !given_up && begin.elapsed() >= GRACE {
            given_up = true;
            let here = fabric.registry.all_connected();
            end_adopted(&fabric, fabric.jobs.give_up(&here));
        }
        if last_look.elapsed() >= LOOK {
            last_look = Instant::now();
            let mut now = without_ranks(&fabric);
            if begin.elapsed() < CALLS {
                now.retain(|job| fabric.jobs.get(*job).is_some_and(|status| status.deputies.is_empty()));
            }
            // Ranks may be on their way from a dead node to its backup, but not for so long.
            end_adopted(&fabric, now.intersection(&quiet).copied().collect());
            quiet = now;
        }
    }
}

/// The jobs of which neither a node nor a rank hosts anything. A node to which no rank has come in
/// an epoch, as a backup or as a primary, does not know that its job is over. Where all primaries
/// have said that they are done, it is enough that no rank is left.
fn without_ranks(fabric: &Fabric) -> BTreeSet<JobId> {
    let at = |job: &Adopted, node: &String| {
        let answer = fabric.registry.connected(node)?.query_activity()?;
        let mut jobs = answer.recv_timeout(ANSWER).ok()?;
        jobs.retain(|told| told.job == job.id);
        Some(jobs)
    };
    let is_quiet = |job: &Adopted| {
        if !fabric.deputies.of(job.id).is_empty() {
            return false;
        }
        let is_over =
            |hosted: Vec<JobActivity>| hosted.iter().all(|told| job.has_left_primaries && told.activity.ranks == 0);
        job.maybe_at.iter().all(|node| at(job, node).is_some_and(is_over))
    };
    fabric.jobs.adopted_that_recover().into_iter().filter(is_quiet).map(|job| job.id).collect()
}

/// A node calls again at least every two seconds. One that is away for this long is down, and its
/// jobs with it.
const GRACE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(500);
/// A rank that hosts nodes of its job calls again at least every two seconds, and waits five for an
/// answer. Before that is over, no job of an earlier manager counts as one without such ranks.
const CALLS: Duration = Duration::from_secs(8);
/// How often backups are asked whether ranks have come to them.
const LOOK: Duration = Duration::from_secs(3);
/// How long a backup may take to answer.
const ANSWER: Duration = Duration::from_secs(1);
