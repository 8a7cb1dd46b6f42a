//! An operation in flight, as its poster holds it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::engine::Shared;
use crate::error::Error;

/// One posted operation or group creation. Dropping it lets the operation go on; its buffers stay the library's until
/// it is done.
pub struct Request {
    shared: Arc<Shared>,
    completion: Arc<Completion>,
}

impl Request {
    pub(crate) fn new(shared: Arc<Shared>, completion: Arc<Completion>) -> Request {
        Request { shared, completion }
    }

    /// Drives progress once, without waiting: the outcome, if there is one.
    pub fn test(&self) -> Option<Result<(), Error>> {
        if !self.completion.is_done()
            && let Err(error) = self.shared.poll()
        {
            return Some(Err(error));
        }
        self.completion.outcome()
    }

    /// Waits for the outcome, at most `timeout`. `Error::Timeout` leaves the operation running.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<(), Error> {
        self.shared.wait(&self.completion, timeout)
    }

    /// Whether the operation is over; looks only.
    pub fn is_done(&self) -> bool {
        self.completion.is_done()
    }
}

/// What the engine tells the poster of a request.
#[derive(Default)]
pub(crate) struct Completion {
    done: AtomicBool,
    /// An operation on datagrams: over in less time than a sleeper needs to wake, if nobody is late.
    short: AtomicBool,
    error: OnceLock<Error>,
}

impl Completion {
    /// Ends the request; the first outcome counts.
    pub(crate) fn finish(&self, outcome: Result<(), Error>) {
        if let Err(error) = outcome
            && !self.is_done()
        {
            let _ = self.error.set(error);
        }
        self.done.store(true, Ordering::Release);
    }

    /// Marks an operation on datagrams.
    pub(crate) fn set_short(&self) {
        self.short.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    pub(crate) fn outcome(&self) -> Option<Result<(), Error>> {
        self.is_done().then(|| self.error.get().cloned().map_or(Ok(()), Err))
    }
}
