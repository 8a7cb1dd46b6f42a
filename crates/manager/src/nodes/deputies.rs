//! Which ranks host nodes of their own jobs, as far as they have told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use trib_wire::ids::JobId;

use super::session::Session;
use crate::lock::lock;

/// The deputies that are connected.
#[derive(Default)]
pub(crate) struct Deputies {
    sessions: Mutex<BTreeMap<(JobId, u32), Arc<Session>>>,
}

impl Deputies {
    /// A rank of a job tells from now on what it hosts. A connection that it had before is over.
    pub(crate) fn enter(&self, key: (JobId, u32), session: &Arc<Session>) {
        if let Some(earlier) = lock(&self.sessions).insert(key, session.clone()) {
            earlier.lose();
        }
    }

    /// The connection of a rank has ended.
    pub(crate) fn leave(&self, key: (JobId, u32), session: &Arc<Session>) {
        let mut sessions = lock(&self.sessions);
        if sessions.get(&key).is_some_and(|known| Arc::ptr_eq(known, session)) {
            sessions.remove(&key);
        }
    }

    /// The deputies of a job that are connected.
    pub(crate) fn of(&self, job: JobId) -> Vec<Arc<Session>> {
        let sessions = lock(&self.sessions);
        sessions.range((job, 0)..=(job, u32::MAX)).map(|(_, session)| session.clone()).collect()
    }

    /// All that are connected, with their jobs.
    pub(crate) fn all(&self) -> Vec<(JobId, Arc<Session>)> {
        lock(&self.sessions).iter().map(|((job, _), session)| (*job, session.clone())).collect()
    }

    /// The job is over, and the manager listens to its ranks no more.
    pub(crate) fn end_job(&self, job: JobId) {
        self.of(job).iter().for_each(|session| session.lose());
    }

    /// One beat of the search for those that do not answer. One whose host is gone without a word
    /// is not waited for for ever.
    pub(crate) fn beat(&self, now_ms: u64) {
        for (_, session) in self.all() {
            session.beat(now_ms);
            if session.late_ms().is_some_and(|since| now_ms.saturating_sub(since) >= SILENCE_MS) {
                session.lose();
            }
        }
    }

    /// Takes the lock once.
    pub(crate) fn touch(&self) {
        drop(lock(&self.sessions));
    }
}

/// A deputy that has not answered for so long counts as gone. If it lives, it calls again.
const SILENCE_MS: u64 = 60_000;
