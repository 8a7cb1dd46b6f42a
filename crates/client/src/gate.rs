//! A value that one thread makes and others wait for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trib_waiting::clock::Reading;
use trib_waiting::{Meter, Visits};

use crate::engine::{Shared, VISITS};

/// A value that is not there yet, or is there for good.
pub(crate) struct Gate<T> {
    value: Mutex<Option<T>>,
    opened: Condvar,
}

impl<T: Clone> Gate<T> {
    pub(crate) fn new() -> Gate<T> {
        Gate { value: Mutex::new(None), opened: Condvar::new() }
    }

    /// Gives the value. The first one counts.
    pub(crate) fn open(&self, value: T) {
        self.lock().get_or_insert(value);
        self.opened.notify_all();
    }

    pub(crate) fn value(&self) -> Option<T> {
        self.lock().clone()
    }

    /// Waits for the value, at most `timeout`, and calls the caller's progress function meanwhile
    /// as every wait does.
    pub(crate) fn wait(&self, shared: &Shared, timeout: Option<Duration>) -> Option<T> {
        let began = Instant::now();
        let mut visits = Visits::begin(VISITS, Meter::default(), Reading::now());
        loop {
            let waited = began.elapsed();
            let left = timeout.unwrap_or(Duration::MAX).saturating_sub(waited);
            let due = shared.progress().map_or(LOOK_MAX, |_| visits.due().saturating_sub(waited));
            let value = self.lock();
            let is_shut = |value: &mut Option<T>| value.is_none();
            let slept = self.opened.wait_timeout_while(value, left.min(due), is_shut);
            let (value, _) = slept.unwrap_or_else(PoisonError::into_inner);
            if value.is_some() || began.elapsed() >= timeout.unwrap_or(Duration::MAX) {
                return value.clone();
            }
            // No lock is held while the function runs.
            drop(value);
            if let Some(progress) = shared.progress().filter(|_| began.elapsed() >= visits.due()) {
                visits.visit(|| progress());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that has nothing else to look after sleeps for so long at a time.
const LOOK_MAX: Duration = Duration::from_secs(60);
