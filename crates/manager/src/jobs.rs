//! The admitted jobs.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trib_wire::control::reply::{JobStatus, Refusal, Resource};
use trib_wire::ids::JobId;

use crate::refuse::too_much;
use crate::secret;

/// Most jobs at once.
pub(crate) const JOBS_MAX: usize = 4096;

/// The table of jobs.
pub(crate) struct Jobs {
    table: Mutex<Table>,
}

struct Table {
    last: u32,
    live: BTreeMap<JobId, JobStatus>,
    // Admission order; numbers wrap and do not tell.
    order: Vec<JobId>,
}

impl Jobs {
    /// No jobs. Numbers start anywhere: a manager that was started again must not give a number that
    /// nodes still know from its predecessor.
    pub(crate) fn new() -> io::Result<Self> {
        let last = u32::from_le_bytes(secret::random()?);
        Ok(Jobs { table: Mutex::new(Table { last, live: BTreeMap::new(), order: Vec::new() }) })
    }

    /// Takes a free number for a job; `status.id` is filled in.
    pub(crate) fn enter(&self, status: JobStatus) -> Result<JobId, Refusal> {
        let mut table = self.lock();
        if table.live.len() >= JOBS_MAX {
            let text = format!("{JOBS_MAX} jobs are running, the most a manager admits: wait until one ends");
            return Err(too_much(Resource::Jobs, table.live.len() as u64 + 1, JOBS_MAX as u64, text));
        }
        let id = table.next();
        table.live.insert(id, JobStatus { id, ..status });
        table.order.push(id);
        Ok(id)
    }

    /// Forgets a job; gives what it was.
    pub(crate) fn leave(&self, id: JobId) -> Option<JobStatus> {
        let mut table = self.lock();
        table.order.retain(|job| *job != id);
        table.live.remove(&id)
    }

    /// All jobs, oldest first.
    pub(crate) fn list(&self) -> Vec<JobStatus> {
        let table = self.lock();
        table.order.iter().filter_map(|id| table.live.get(id)).cloned().collect()
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
            if id.0 != 0 && !self.live.contains_key(&id) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str) -> JobStatus {
        JobStatus { id: JobId(0), name: name.into(), user: "u".into(), ranks: 1, nodes: Vec::new(), since: 0 }
    }

    #[test]
    fn numbers_differ_are_never_zero_and_wrap() {
        let jobs = Jobs::new().unwrap();
        jobs.lock().last = u32::MAX - 1;
        let ids: Vec<u32> = (0..3).map(|_| jobs.enter(job("a")).unwrap().0).collect();
        assert_eq!(ids, [u32::MAX, 1, 2]);
        let order: Vec<u32> = jobs.list().iter().map(|job| job.id.0).collect();
        assert_eq!(order, ids);
        assert_eq!(jobs.leave(JobId(1)).unwrap().id, JobId(1));
        assert_eq!(jobs.leave(JobId(1)), None);
        assert_eq!(jobs.list().len(), 2);
    }

    #[test]
    fn there_is_an_end_to_jobs() {
        let jobs = Jobs::new().unwrap();
        for _ in 0..JOBS_MAX {
            jobs.enter(job("a")).unwrap();
        }
        let refusal = jobs.enter(job("b")).unwrap_err();
        assert_eq!((refusal.resource, refusal.available), (Resource::Jobs, JOBS_MAX as u64));
    }
}
