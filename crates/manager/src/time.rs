//! By what the manager decides that something has lasted too long, and how its threads wait.
//!
//! A daemon has the machine's clock, and its threads sleep. A fuzzer plays the time in their place:
//! it has one thread, and what goes on while something waits happens inside that wait. What is only
//! recorded and told to people has the wall clock in any case.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trib_control::clock::unix_ms;

use crate::lock::lock;

/// A time that somebody plays.
pub trait Played: Send + Sync {
    /// The time now. It never goes back.
    fn now(&self) -> Instant;

    /// The same in milliseconds since 1970-01-01 UTC.
    fn unix_ms(&self) -> u64;

    /// The manager waits here, with no lock held, for `most` at most. Other things happen, or the
    /// time passes: a wait that nothing ends is called again and again until its time is over.
    fn pass(&self, most: Duration);
}

/// The machine's time, or one that is played.
#[derive(Clone, Default)]
pub(crate) struct Time(Option<Arc<dyn Played>>);

impl Time {
    /// A time that is played.
    pub(crate) fn played(played: Arc<dyn Played>) -> Time {
        Time(Some(played))
    }

    pub(crate) fn now(&self) -> Instant {
        self.0.as_ref().map_or_else(Instant::now, |played| played.now())
    }

    pub(crate) fn unix_ms(&self) -> u64 {
        self.0.as_ref().map_or_else(unix_ms, |played| played.unix_ms())
    }

    /// How much time is left until `end`.
    pub(crate) fn left(&self, end: Instant) -> Duration {
        end.saturating_duration_since(self.now())
    }

    /// Waits until the bell rings, for `most` at most, and perhaps less.
    pub(crate) fn wait<'a, T>(
        &self,
        bell: &Condvar,
        (mutex, guard): (&'a Mutex<T>, MutexGuard<'a, T>),
        most: Duration,
    ) -> MutexGuard<'a, T> {
        let Some(played) = &self.0 else {
            return bell.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(guard);
        played.pass(most);
        lock(mutex)
    }

    /// Waits for something to come, for `most` at most.
    pub(crate) fn receive<T>(&self, from: &Receiver<T>, most: Duration) -> Result<T, RecvTimeoutError> {
        let Some(played) = &self.0 else { return from.recv_timeout(most) };
        let end = self.now() + most;
        loop {
            match from.try_recv() {
                Ok(come) => return Ok(come),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) if self.now() >= end => return Err(RecvTimeoutError::Timeout),
                Err(TryRecvError::Empty) => played.pass(self.left(end)),
            }
        }
    }
}
