//! Jobs that ended and requests that were refused: the newest of each, as long as this manager runs.
//!
//! Both have a ring of their own, so that a program that asks again and again in vain does not drive out what ended; and what
//! is refused again for the same reason counts on and takes no room. What is kept of one is bounded, whatever was asked.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trib_control::clock::unix_ms;
use trib_wire::control::jobs::{JobEnd, Names, PastJob};
use trib_wire::control::reply::{JobStatus, Refusal};
use trib_wire::control::request::{Attachment, JobRequest};
use trib_wire::ids::JobId;

use crate::names::{cut, names};

/// What was.
#[derive(Default)]
pub(crate) struct Past(Mutex<Rings>);

#[derive(Default)]
struct Rings {
    ended: VecDeque<PastJob>,
    refused: VecDeque<PastJob>,
    forgotten: u64,
}

impl Past {
    /// A job has ended.
    pub(crate) fn ended(&self, job: JobStatus, outcome: JobEnd) {
        let outcome = match outcome {
            JobEnd::GivenUp { why } => JobEnd::GivenUp { why: cut(&why, STORY_MAX) },
            other => other,
        };
        let JobStatus { id, name, user, ranks, since, hosts, root, fallback, .. } = job;
        let (name, user) = (cut(&name, NAME_MAX), cut(&user, NAME_MAX));
        let (began_ms, ended_ms) = (since * 1000, unix_ms());
        let job = PastJob { id, name, user, ranks, hosts, root, began_ms, ended_ms, times: 1, outcome, fallback };
        let mut rings = self.lock();
        rings.ended.push_back(job);
        rings.trim();
    }

    /// A request for a job was refused; gives the number under which that is known.
    pub(crate) fn refused(&self, id: JobId, request: &JobRequest, refusal: &Refusal) -> JobId {
        let JobRequest { hosts, name, user, .. } = request;
        let ranks = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
        self.lock().refuse(request_of(id, (name, user), ranks, names(hosts), refusal))
    }

    /// Ranks on these hosts were refused before it was known what their program asks for; one of them is `rank`.
    pub(crate) fn refused_ranks(&self, id: JobId, rank: &Attachment, hosts: &[String], refusal: &Refusal) -> JobId {
        let Attachment { size, name, user, .. } = rank;
        self.lock().refuse(request_of(id, (name, user), *size, names(hosts), refusal))
    }

    /// The job or request of this number.
    pub(crate) fn get(&self, id: JobId) -> Option<PastJob> {
        self.lock().all().find(|job| job.id == id).cloned()
    }

    /// The last of this program.
    pub(crate) fn last_of(&self, name: &str) -> Option<PastJob> {
        let name = cut(name, NAME_MAX);
        self.lock().all().filter(|job| job.name == name).max_by_key(|job| job.ended_ms).cloned()
    }

    /// All that is remembered, those whose end is longest ago first, and how many are not.
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rings {
    fn all(&self) -> impl Iterator<Item = &PastJob> {
        self.ended.iter().chain(&self.refused)
    }

    fn refuse(&mut self, mut job: PastJob) -> JobId {
        if let Some(at) = self.refused.iter().position(|known| is_same(known, &job)) {
            let known = self.refused.remove(at).expect("it was found there");
            (job.id, job.began_ms, job.times) = (known.id, known.began_ms, known.times.saturating_add(1));
        }
        let id = job.id;
        self.refused.push_back(job);
        self.trim();
        id
    }

    fn trim(&mut self) {
        for ring in [&mut self.ended, &mut self.refused] {
            while ring.len() > RING {
                ring.pop_front();
                self.forgotten += 1;
            }
        }
    }
}

// The same program, refused for the same reason; how long that lasts already stands in text and since.
fn is_same(known: &PastJob, new: &PastJob) -> bool {
    let reason = |job: &PastJob| match &job.outcome {
        JobEnd::Refused(Refusal { resource, asked, available, holder, .. }) => {
            Some((*resource, *asked, *available, holder.clone()))
        }
        _ => None,
    };
    let who = |job: &PastJob| (job.name.clone(), job.user.clone(), job.ranks, job.hosts.clone());
    known.name == new.name && who(known) == who(new) && reason(known) == reason(new)
}

fn request_of(id: JobId, (name, user): (&str, &str), ranks: u32, hosts: Names, refusal: &Refusal) -> PastJob {
    let now = unix_ms();
    PastJob {
        id,
        name: cut(name, NAME_MAX),
        user: cut(user, NAME_MAX),
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

/// Ended jobs, and refused requests, that are remembered.
const RING: usize = 512;
/// Bytes of a name that are kept.
pub(crate) const NAME_MAX: usize = 128;
/// Bytes of a reason in words.
pub(crate) const STORY_MAX: usize = 1024;

#[cfg(test)]
mod tests;
