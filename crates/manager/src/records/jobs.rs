//! The admitted jobs.
//!
//! ```text
//!             enter                                   leave
//!   ticket ---------> held by a connection -------------------------> gone
//!                        | it ends without a word; or the manager is killed, and another
//!                        v adopts the job
//!                     unheld: may be at its nodes --------------------------> gone
//!                          all of them say that it is not, that its ranks have come and
//!                          gone, or nothing for long, and no rank says that it hosts nodes of it
//! ```
//! A connection that ends without a word is that of a rank that died, and others may go on. So the
//! job ends with its last rank: a killed rank loses its connections to its nodes, which say so.
//! Until then the job counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trib_control::clock::unix_ms;
use trib_messages::directory::JobDirectory;
use trib_messages::job::Pass;
use trib_messages::jobs::{Fallback, JobFault};
use trib_messages::processes::{Process, Processes};
use trib_messages::reply::{JobStatus, Refusal, Resource};
use trib_topology::trees::Footprint;
use trib_wire::Fault;
use trib_wire::ids::{JobId, Rank};

use super::departed::Departed;
use super::past::STORY_MAX;
use super::store::{Entry as PastEntry, Kept, Store};
use crate::names::cut;
use crate::planning::ways::Ways;
use crate::refuse::{lasting, refuse, too_much};
use crate::tenancy::Sight;

/// The largest number of jobs at once.
pub(crate) const JOBS_MAX: usize = 4096;

/// The table of jobs.
pub(crate) struct Jobs {
    table: Mutex<Table>,
    store: Option<Arc<Store>>,
    /// Since when the store cannot be written, milliseconds since 1970-01-01 UTC; 0 if it can.
    failing_ms: AtomicU64,
}

struct Table {
    last: u32,
    live: BTreeMap<JobId, Entry>,
    // The jobs in the order of their admission, which their numbers do not tell, because numbers
    // wrap.
    order: Vec<JobId>,
    /// Jobs that a node holds, as it said when it registered, and that are not in this table: an
    /// earlier manager admitted them, and it kept no file that this one has read.
    foreign: BTreeMap<String, BTreeSet<JobId>>,
    departed: Departed,
}

struct Entry {
    status: JobStatus,
    /// The names of its nodes, and where its ranks run. The latter is not kept in the file.
    directory: JobDirectory,
    /// The links over which its ranks reach its nodes, which are not kept in the file either.
    ways: Arc<Ways>,
    /// For a job that no connection holds: the nodes that may still have it.
    maybe_at: BTreeSet<String>,
    /// What its deputies show; `None` where a manager admitted it that gave them nothing.
    pass: Option<Pass>,
}

/// What is kept of a job beside its status.
pub(crate) struct Belongings<'a> {
    /// What its tree takes of a fabric that is a graph.
    pub(crate) footprint: Option<&'a Footprint>,
    /// What its deputies show.
    pub(crate) pass: &'a Pass,
}

/// A job that no connection holds.
pub(crate) struct Unheld {
    pub(crate) status: JobStatus,
    /// The nodes where it may be.
    pub(crate) maybe_at: BTreeSet<String>,
}

impl Jobs {
    /// A table with the jobs that the store kept, which are adopted, and with its count. Without a
    /// store there is no job, and the count starts anew.
    pub(crate) fn new(store: Option<Arc<Store>>, kept: Kept) -> Self {
        let Kept { last, jobs, past, mut passes, .. } = kept;
        let last = past.iter().fold(last, |last, job| later(last, job.id));
        let mut table = Table {
            last,
            live: BTreeMap::new(),
            order: Vec::new(),
            foreign: BTreeMap::new(),
            departed: Departed::default(),
        };
        for job in jobs {
            table.order.push(job.id);
            let maybe_at = job.nodes.iter().cloned().collect();
            let directory = JobDirectory::new(job.node_names(), Processes::default());
            let (ways, pass) = (Arc::default(), passes.remove(&job.id));
            table
                .live
                .insert(job.id, Entry { status: JobStatus { adopted: true, ..job }, directory, ways, maybe_at, pass });
        }
        table.order.sort_by_key(|id| (table.live[id].status.since, *id));
        Jobs { table: Mutex::new(table), store, failing_ms: AtomicU64::new(0) }
    }

    /// A number that no job has, here or at a node. A request gets it whether it is granted or not.
    pub(crate) fn number(&self) -> JobId {
        self.lock().next()
    }

    /// Enters a job under its number, with what its tree takes and where its ranks run.
    pub(crate) fn enter(
        &self,
        status: JobStatus,
        belongings: &Belongings<'_>,
        processes: Processes,
        ways: Ways,
    ) -> Result<(), Refusal> {
        let (id, last) = {
            let mut table = self.lock();
            if table.live.len() >= JOBS_MAX {
                return Err(table.full());
            }
            let directory = JobDirectory::new(status.node_names(), processes);
            let (ways, pass) = (Arc::new(ways), Some(belongings.pass.clone()));
            let entry = Entry { status: status.clone(), directory, ways, maybe_at: BTreeSet::new(), pass };
            table.live.insert(status.id, entry);
            table.order.push(status.id);
            (status.id, table.last)
        };
        let Some(store) = &self.store else { return Ok(()) };
        let Err(error) = store.keep(&status, belongings, last) else {
            self.failing_ms.store(0, Ordering::Relaxed);
            return Ok(());
        };
        self.lock().remove(id);
        let now = unix_ms();
        let first = self.failing_ms.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        let text = format!("{error}: free space there, or start the manager with another --state");
        Err(lasting(refuse(Resource::State, None, text), first.err().unwrap_or(now)))
    }

    /// Adds to each of these nodes what all jobs may have under way to it in datagrams, in bytes.
    pub(crate) fn add_datagram_bytes(&self, to: &mut BTreeMap<&str, u64>) {
        for entry in self.lock().live.values() {
            let bytes = entry.status.charge.iter().flat_map(|charge| &charge.datagram_bytes);
            for (node, bytes) in entry.status.nodes.iter().zip(bytes) {
                if let Some(sum) = to.get_mut(node.as_str()) {
                    *sum = sum.saturating_add(*bytes);
                }
            }
        }
    }

    /// The job's program goes on without the tree. Returns whether there is such a job.
    pub(crate) fn note(&self, id: JobId, why: &str) -> bool {
        let mut table = self.lock();
        let entry = table.live.get_mut(&id);
        let fallback = Fallback { text: cut(why, STORY_MAX), since_ms: unix_ms() };
        entry.map(|entry| entry.status.fallback = Some(fallback)).is_some()
    }

    /// A node says that a job cannot go on. Returns its words with the names of the job's nodes and
    /// ranks, or `None` if the job is not one of that node's, so that it cannot know anything of
    /// it.
    pub(crate) fn told(&self, id: JobId, node: &str, fault: Option<&Fault>, why: &str) -> Option<String> {
        let table = self.lock();
        let directory = match table.live.get(&id) {
            Some(entry) => entry.status.nodes.iter().any(|at| at == node).then_some(&entry.directory),
            None => table.departed.at(id, node),
        }?;
        let words = fault.map_or_else(|| format!("{node}: {why}"), |fault| fault.told(directory));
        Some(cut(&words, STORY_MAX))
    }

    /// The same of a rank of the job that hosts nodes of it.
    pub(crate) fn told_by_deputy(&self, id: JobId, rank: &str, fault: Option<&Fault>, why: &str) -> Option<String> {
        let table = self.lock();
        let directory = &table.live.get(&id)?.directory;
        let words = fault.map_or_else(|| format!("{rank}: {why}"), |fault| fault.told(directory));
        Some(cut(&words, STORY_MAX))
    }

    /// Whether this is what the deputies of the job show.
    pub(crate) fn admits(&self, id: JobId, pass: &Pass) -> bool {
        self.lock().live.get(&id).is_some_and(|entry| entry.pass.as_ref() == Some(pass))
    }

    /// A node says why the job, or one of its groups, cannot go on. Returns whether there is such a
    /// job. Only the first reason counts, because later ones follow from it.
    pub(crate) fn fault(&self, id: JobId, why: String) -> bool {
        let mut table = self.lock();
        let Some(entry) = table.live.get_mut(&id) else { return false };
        entry.status.fault.get_or_insert_with(|| JobFault { text: why, since_ms: unix_ms() });
        true
    }

    /// The connection that held the job has ended without a word.
    pub(crate) fn lose(&self, id: JobId) {
        if let Some(Entry { status, maybe_at, .. }) = self.lock().live.get_mut(&id) {
            status.lost_ms = Some(unix_ms());
            *maybe_at = status.nodes.iter().cloned().collect();
        }
    }

    /// Removes a job and returns its last status. What `remember` returns is written to the file
    /// together with that.
    pub(crate) fn leave(&self, id: JobId, remember: impl FnOnce(&JobStatus) -> Option<PastEntry>) -> Option<JobStatus> {
        let left = self.lock().remove(id)?;
        let ended = remember(&left);
        if let Some(Err(error)) = self.store.as_ref().map(|store| store.forget(id, ended.as_ref())) {
            // The next manager adopts it, and its nodes will say that it is gone.
            tracing::warn!(job = id.0, %error, "a job that ended stays in the file");
        }
        Some(left)
    }

    /// A node that may be given jobs from now on holds these jobs, so their numbers are taken.
    pub(crate) fn are_held(&self, node: &str, jobs: &[JobId]) {
        self.lock().know_foreign(node, jobs);
    }

    /// A node has told which jobs it has. Returns the jobs that are at no node any more, and held
    /// by no connection.
    pub(crate) fn hosted(&self, node: &str, jobs: &[JobId]) -> Vec<JobId> {
        let mut table = self.lock();
        table.foreign.remove(node);
        table.know_foreign(node, jobs);
        table.departed.left(node, |id| !jobs.contains(&id));
        table.settle(|id, maybe_at| {
            if !jobs.contains(&id) {
                maybe_at.remove(node);
            }
        })
    }

    /// Those of these jobs that have left, of which a node says that it has them: it has missed
    /// their end.
    pub(crate) fn over(&self, node: &str, jobs: &[JobId]) -> Vec<JobId> {
        let table = self.lock();
        let is_over = |id: &JobId| !table.live.contains_key(id) && table.departed.at(*id, node).is_some();
        jobs.iter().copied().filter(is_over).collect()
    }

    /// A job is not at this node any more. Returns the jobs that are at no node any more, and held
    /// by no connection.
    pub(crate) fn left(&self, node: &str, job: JobId) -> Vec<JobId> {
        let mut table = self.lock();
        if let Some(held) = table.foreign.get_mut(node) {
            held.remove(&job);
        }
        table.departed.left(node, |id| id == job);
        table.settle(|id, maybe_at| {
            if id == job {
                maybe_at.remove(node);
            }
        })
    }

    /// Nodes that are down are taken to have lost their jobs. Returns the jobs that are at no
    /// node any more, and held by no connection.
    pub(crate) fn give_up(&self, down: &BTreeSet<String>) -> Vec<JobId> {
        self.lock().settle(|_, maybe_at| maybe_at.retain(|node| !down.contains(node)))
    }

    /// The jobs that no connection holds.
    pub(crate) fn unheld(&self) -> Vec<Unheld> {
        let table = self.lock();
        let unheld = table.live.values().filter(|entry| !entry.status.is_held());
        unheld.map(|entry| Unheld { status: entry.status.clone(), maybe_at: entry.maybe_at.clone() }).collect()
    }

    /// The jobs of this program that are admitted and seen, the oldest first.
    pub(crate) fn of_program(&self, name: &str, sight: &Sight) -> Vec<JobId> {
        let table = self.lock();
        let is_meant = |status: &JobStatus| status.name == name && sight.sees(status.tenant());
        let is_named = |id: &&JobId| table.live.get(id).is_some_and(|entry| is_meant(&entry.status));
        table.order.iter().filter(is_named).copied().collect()
    }

    /// The job, if it is admitted and has not ended.
    pub(crate) fn get(&self, id: JobId) -> Option<JobStatus> {
        self.lock().live.get(&id).map(|entry| entry.status.clone())
    }

    /// Where these ranks of the job run, as far as that is known.
    pub(crate) fn processes(&self, id: JobId, ranks: &BTreeSet<Rank>) -> Vec<(Rank, Process)> {
        let table = self.lock();
        let Some(entry) = table.live.get(&id) else { return Vec::new() };
        ranks.iter().filter_map(|rank| Some((*rank, entry.directory.process(*rank)?))).collect()
    }

    /// The links over which the ranks of the job reach its nodes.
    pub(crate) fn ways(&self, id: JobId) -> Arc<Ways> {
        self.lock().live.get(&id).map(|entry| entry.ways.clone()).unwrap_or_default()
    }

    /// All jobs, the oldest first.
    pub(crate) fn list(&self) -> Vec<JobStatus> {
        let table = self.lock();
        table.order.iter().filter_map(|id| table.live.get(id)).map(|entry| entry.status.clone()).collect()
    }

    /// Takes the lock once.
    pub(crate) fn touch(&self) {
        drop(self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn next(&mut self) -> JobId {
        loop {
            self.last = self.last.wrapping_add(1);
            let id = JobId(self.last);
            let is_taken = self.live.contains_key(&id) || self.foreign.values().any(|held| held.contains(&id));
            if id.0 != 0 && !is_taken {
                return id;
            }
        }
    }

    /// Of the jobs that a node holds, keeps those that this manager has not sent there.
    fn know_foreign(&mut self, node: &str, jobs: &[JobId]) {
        let is_own = |id: &JobId| self.live.get(id).is_some_and(|entry| entry.status.nodes.iter().any(|at| at == node));
        let held: BTreeSet<JobId> = jobs.iter().copied().filter(|id| !is_own(id)).collect();
        if !held.is_empty() {
            self.foreign.entry(node.to_owned()).or_default().extend(held);
        }
    }

    /// The refusal when there is no room. It names the user with the most jobs, and since when
    /// there is no room.
    fn full(&self) -> Refusal {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in self.live.values() {
            *counts.entry(&entry.status.user).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let text = format!("{JOBS_MAX} jobs are running, the most a manager admits: wait until one ends");
        let refusal = too_much(Resource::Jobs, self.live.len() as u64 + 1, JOBS_MAX as u64, text);
        let newest = self.order.last().and_then(|id| self.live.get(id)).map_or(0, |entry| entry.status.since);
        lasting(Refusal { holder: most.map(|(user, _)| user.to_owned()), ..refusal }, newest * 1000)
    }

    fn remove(&mut self, id: JobId) -> Option<JobStatus> {
        self.order.retain(|job| *job != id);
        let Entry { status, directory, .. } = self.live.remove(&id)?;
        self.departed.enter(id, directory, status.nodes.clone());
        Some(status)
    }

    /// Changes where jobs may be that no connection holds. Returns those that are at no node any
    /// more, and that none of their ranks may host.
    fn settle(&mut self, change: impl Fn(JobId, &mut BTreeSet<String>)) -> Vec<JobId> {
        let unheld = self.live.iter_mut().filter(|(_, entry)| !entry.status.is_held());
        let nowhere = |(id, entry): (&JobId, &mut Entry)| {
            change(*id, &mut entry.maybe_at);
            (entry.maybe_at.is_empty() && entry.status.deputies.is_empty()).then_some(*id)
        };
        unheld.filter_map(nowhere).collect()
    }
}

/// The later of two numbers, which wrap; 0 is no number.
fn later(last: u32, other: JobId) -> u32 {
    if last == 0 || other.0.wrapping_sub(last) < 1 << 31 { other.0 } else { last }
}

#[cfg(test)]
mod tests;
