//! Jobs that ended and requests that were refused: the newest of each, also of earlier managers
//! with the same file.
//!
//! Each of the two has a ring of its own, so that a program that asks again and again in vain does
//! not drive out jobs that ended. A request that is refused again for the same reason only adds to
//! a count and takes no room. What is kept of one is bounded, whatever was asked. Trials have
//! little room in each ring: a health check that runs one on every host of a cluster, again and
//! again, would leave nothing else there.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trib_control::clock::unix_ms;
use trib_messages::jobs::{JobEnd, Names, PastJob};
use trib_messages::reply::{JobStatus, Refusal};
use trib_messages::request::{Account, AttachRequest, JobRequest};
use trib_wire::ids::JobId;

use self::keeper::Keeper;
use super::store::{Entry, Store};
use crate::names::{cut, names};
use crate::tenancy::Sight;

mod keeper;

/// The two rings.
#[derive(Default)]
pub(crate) struct Past {
    rings: Mutex<Rings>,
    keeper: Option<Keeper>,
}

#[derive(Default)]
struct Rings {
    ended: VecDeque<PastJob>,
    refused: VecDeque<PastJob>,
    forgotten: u64,
}

impl Past {
    /// What an earlier manager remembered, in any order, which stays in the same file. Returns also
    /// what is too much to be remembered further.
    pub(crate) fn new(mut jobs: Vec<PastJob>, store: Option<&Arc<Store>>) -> io::Result<(Past, Vec<PastJob>)> {
        let keeper = store.map(|store| Keeper::start(store.clone())).transpose()?;
        jobs.sort_by_key(|job| job.ended_ms);
        let (refused, ended): (Vec<_>, Vec<_>) = jobs.into_iter().partition(PastJob::is_refused);
        let mut rings = Rings { ended: ended.into(), refused: refused.into(), forgotten: 0 };
        let old = rings.trim();
        Ok((Past { rings: Mutex::new(rings), keeper }, old))
    }

    /// A job has ended. The caller writes the entry that is returned to the file, together with the
    /// news that the job is gone.
    pub(crate) fn ended(&self, job: JobStatus, outcome: JobEnd) -> Entry {
        let JobStatus { id, name, user, ranks, since, hosts, root, fallback, fault, charge, .. } = job;
        let outcome = match (outcome, fault) {
            (JobEnd::GivenUp { why }, _) => JobEnd::GivenUp { why: cut(&why, STORY_MAX) },
            (JobEnd::Lost, Some(fault)) => JobEnd::Failed { fault: Some(fault.text), launcher: None },
            (JobEnd::Failed { launcher, .. }, fault) => {
                JobEnd::Failed { fault: fault.map(|fault| fault.text), launcher }
            }
            (other, _) => other,
        };
        let (name, user) = (cut(&name, NAME_MAX), cut(&user, NAME_MAX));
        let (began_ms, ended_ms) = (since * 1000, unix_ms());
        let (tenant, times) = (charge.and_then(|charge| charge.tenant), 1);
        let job = PastJob { id, name, user, tenant, ranks, hosts, root, began_ms, ended_ms, times, outcome, fallback };
        let mut rings = self.lock();
        rings.ended.push_back(job.clone());
        Entry { job, forgotten: rings.trim().pop().map(|old| old.id) }
    }

    /// A node says why a job failed that has just ended: the job's last connection may close before
    /// the node has spoken. Only the first reason counts.
    pub(crate) fn fault(&self, id: JobId, why: &str) {
        self.learn(id, |outcome| match outcome {
            JobEnd::Lost => Some(JobEnd::Failed { fault: Some(why.to_owned()), launcher: None }),
            JobEnd::Failed { fault: None, launcher } => {
                Some(JobEnd::Failed { fault: Some(why.to_owned()), launcher: launcher.clone() })
            }
            _ => None,
        });
    }

    /// A launcher says how a job ended that has not said so itself.
    pub(crate) fn account(&self, id: JobId, account: &Account) {
        self.learn(id, |outcome| match outcome {
            JobEnd::Lost => Some(end_of(account)),
            JobEnd::Failed { fault, launcher: None } => Some(match end_of(account) {
                JobEnd::Failed { launcher, .. } => JobEnd::Failed { fault: fault.clone(), launcher },
                end => end,
            }),
            _ => None,
        });
    }

    fn learn(&self, id: JobId, better: impl FnOnce(&JobEnd) -> Option<JobEnd>) {
        let known = {
            let mut rings = self.lock();
            let Some(job) = rings.ended.iter_mut().rev().find(|job| job.id == id) else { return };
            let Some(outcome) = better(&job.outcome) else { return };
            job.outcome = outcome;
            job.clone()
        };
        self.keep(Entry { job: known, forgotten: None });
    }

    /// A request for a job was refused, of a tenant's program. Returns the number under which that
    /// is remembered.
    pub(crate) fn refused(&self, id: JobId, tenant: Option<&str>, request: &JobRequest, refusal: &Refusal) -> JobId {
        let JobRequest { hosts, name, user, .. } = request;
        let ranks = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
        self.refuse(request_of(id, (name, user, tenant), ranks, names(hosts), refusal))
    }

    /// Ranks on these hosts were refused before their program's request was known. One of them is
    /// `rank`.
    pub(crate) fn refused_ranks(
        &self,
        id: JobId,
        (rank, tenant): (&AttachRequest, Option<&str>),
        hosts: &[String],
        refusal: &Refusal,
    ) -> JobId {
        let AttachRequest { size, name, user, .. } = rank;
        self.refuse(request_of(id, (name, user, tenant), *size, names(hosts), refusal))
    }

    fn refuse(&self, job: PastJob) -> JobId {
        let entry = self.lock().refuse(job);
        let id = entry.job.id;
        self.keep(entry);
        id
    }

    fn keep(&self, entry: Entry) {
        if let Some(keeper) = &self.keeper {
            keeper.keep(entry);
        }
    }

    /// The job or request of this number.
    pub(crate) fn get(&self, id: JobId) -> Option<PastJob> {
        self.lock().all().find(|job| job.id == id).cloned()
    }

    /// The last job or request of this program that is seen.
    pub(crate) fn last_of(&self, name: &str, sight: &Sight) -> Option<PastJob> {
        let name = cut(name, NAME_MAX);
        self.lock()
            .all()
            .filter(|job| job.name == name && sight.sees(job.tenant.as_deref()))
            .max_by_key(|job| job.ended_ms)
            .cloned()
    }

    /// All that is remembered, with the earliest end first, and the number of those that are
    /// forgotten.
    pub(crate) fn list(&self) -> (Vec<PastJob>, u64) {
        let rings = self.lock();
        let mut all: Vec<PastJob> = rings.all().cloned().collect();
        all.sort_by_key(|job| job.ended_ms);
        (all, rings.forgotten)
    }

    /// Takes the lock once.
    pub(crate) fn touch(&self) {
        drop(self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Rings> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rings {
    fn all(&self) -> impl Iterator<Item = &PastJob> {
        self.ended.iter().chain(&self.refused)
    }

    fn refuse(&mut self, mut job: PastJob) -> Entry {
        if let Some(at) = self.refused.iter().position(|known| is_same(known, &job)) {
            let known = self.refused.remove(at).expect("it was found there");
            (job.id, job.began_ms, job.times) = (known.id, known.began_ms, known.times.saturating_add(1));
        }
        self.refused.push_back(job.clone());
        Entry { job, forgotten: self.trim().pop().map(|old| old.id) }
    }

    /// Forgets what is too much, and returns it. Trials that newer ones replace are not counted:
    /// the count says that other jobs may be missing.
    fn trim(&mut self) -> Vec<PastJob> {
        let mut old = Vec::new();
        for ring in [&mut self.ended, &mut self.refused] {
            for _ in TRIALS..ring.iter().filter(|job| is_trial(job)).count() {
                old.extend(ring.iter().position(is_trial).and_then(|at| ring.remove(at)));
            }
            let more = ring.len().saturating_sub(RING);
            self.forgotten += more as u64;
            old.extend(ring.drain(..more));
        }
        old
    }
}

/// Whether it is a job of one rank that `trib` itself runs, as `trib doctor` does. A measurement on
/// one rank is another, which nobody looks for later either.
fn is_trial(job: &PastJob) -> bool {
    job.ranks == 1 && job.name == TRIAL_NAME
}

// Whether it is the same program, refused for the same reason. The text and the time of the first
// one stay.
fn is_same(known: &PastJob, new: &PastJob) -> bool {
    let reason = |job: &PastJob| match &job.outcome {
        JobEnd::Refused(Refusal { resource, asked, available, holder, .. }) => {
            Some((*resource, *asked, *available, holder.clone()))
        }
        _ => None,
    };
    let who = |job: &PastJob| (job.user.clone(), job.tenant.clone(), job.ranks, job.hosts.clone());
    known.name == new.name && who(known) == who(new) && reason(known) == reason(new)
}

fn request_of(
    id: JobId,
    (name, user, tenant): (&str, &str, Option<&str>),
    ranks: u32,
    hosts: Names,
    refusal: &Refusal,
) -> PastJob {
    let now = unix_ms();
    PastJob {
        id,
        name: cut(name, NAME_MAX),
        user: cut(user, NAME_MAX),
        tenant: tenant.map(str::to_owned),
        ranks,
        hosts,
        root: String::new(),
        began_ms: now,
        ended_ms: now,
        times: 1,
        outcome: JobEnd::Refused(short(refusal)),
        fallback: None,
    }
}

fn short(refusal: &Refusal) -> Refusal {
    let holder = refusal.holder.as_deref().map(|holder| cut(holder, NAME_MAX));
    Refusal { holder, text: cut(&refusal.text, STORY_MAX), ..refusal.clone() }
}

/// How a job ended that has not said so itself, by its launcher's account.
pub(crate) fn end_of(account: &Account) -> JobEnd {
    match account {
        Account::Interrupted(signal) => JobEnd::Interrupted { signal: cut(signal, NAME_MAX) },
        Account::Failed(how) => JobEnd::Failed { fault: None, launcher: Some(cut(how, STORY_MAX)) },
    }
}

/// The number of ended jobs that are remembered, and that of refused requests.
const RING: usize = 512;
/// The number of trials among the ones, and among the others.
const TRIALS: usize = 32;
/// The name of the program that runs trials.
const TRIAL_NAME: &str = "trib";
/// The largest number of bytes of a name that are kept.
pub(crate) const NAME_MAX: usize = 128;
/// The largest number of bytes of a reason in words.
pub(crate) const STORY_MAX: usize = 1024;

#[cfg(test)]
mod tests;
