//! What the manager counts: admissions and how long they took, refusals and their reasons.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use trib_control::Histogram;
use trib_messages::reply::{Refusal, Resource};

/// The counts, which every connection's thread adds to.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<Counts>);

/// The counts at one moment.
#[derive(Clone, Default)]
pub(crate) struct Counts {
    /// The times of requests for a job that were granted.
    pub admitted: Histogram,
    /// The times of requests for a job that were refused.
    pub refused: Histogram,
    /// The number of refusals that were sent, by resource.
    pub refusals: BTreeMap<Resource, u64>,
}

impl Ledger {
    /// Decides about a job, and counts how long that took.
    pub(crate) fn time<T>(&self, decide: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
        let began = Instant::now();
        let decision = decide();
        let span = began.elapsed();
        let mut counts = self.lock();
        let histogram = if decision.is_ok() { &mut counts.admitted } else { &mut counts.refused };
        histogram.observe(span);
        decision
    }

    /// Counts a refusal that is sent.
    pub(crate) fn refuse(&self, refusal: &Refusal) {
        *self.lock().refusals.entry(refusal.resource).or_default() += 1;
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    /// Takes the lock once.
    pub(crate) fn touch(&self) {
        drop(self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refuse::refuse;

    #[test]
    fn decisions_are_timed_and_refusals_counted_by_resource() {
        let ledger = Ledger::default();
        assert_eq!(ledger.time(|| Ok(1)), Ok(1));
        let refusal = refuse(Resource::Host, None, "no");
        assert!(ledger.time::<()>(|| Err(refusal.clone())).is_err());
        ledger.refuse(&refusal);
        ledger.refuse(&refusal);
        let counts = ledger.counts();
        assert_eq!((counts.admitted.count(), counts.refused.count()), (1, 1));
        assert_eq!(counts.refusals, BTreeMap::from([(Resource::Host, 2)]));
    }
}
