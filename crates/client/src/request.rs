//! An operation in flight, as its poster holds it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use trib_wire::Signature;

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
pub(crate) struct Completion {
    done: AtomicBool,
    /// Parts that are not over.
    parts: AtomicU32,
    /// The lane of a request that has one.
    lane: Option<usize>,
    /// The operation; `None`: a group is made.
    what: Option<Signature>,
    /// An operation on datagrams: over in less time than a sleeper needs to wake, if nobody is late.
    short: AtomicBool,
    error: OnceLock<Error>,
}

impl Completion {
    /// Of a request on one lane.
    pub(crate) fn on_lane(lane: usize, what: Signature) -> Completion {
        Completion { lane: Some(lane), ..Completion::of_cut(1, what) }
    }

    /// Of an operation that is cut, with so many parts.
    pub(crate) fn of_cut(parts: u32, what: Signature) -> Completion {
        Completion { what: Some(what), ..Completion::of_parts(parts) }
    }

    /// Of a request with so many parts, each on a lane of its own: over when all of them are.
    pub(crate) fn of_parts(parts: u32) -> Completion {
        Completion {
            done: AtomicBool::new(false),
            parts: AtomicU32::new(parts),
            lane: None,
            what: None,
            short: AtomicBool::new(false),
            error: OnceLock::new(),
        }
    }

    /// Ends a part, once; the first error counts.
    pub(crate) fn finish(&self, outcome: Result<(), Error>) {
        if let Err(error) = outcome {
            let _ = self.error.set(error);
        }
        if self.parts.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.store(true, Ordering::Release);
        }
    }

    /// The operation, whole even where it is cut.
    pub(crate) fn what(&self) -> Option<&Signature> {
        self.what.as_ref()
    }

    /// The lane of a request that has one; else the first.
    pub(crate) fn lane(&self) -> usize {
        self.lane.unwrap_or(0)
    }

    /// Marks an operation on datagrams, for which somebody may look at one lane alone.
    pub(crate) fn set_short(&self) {
        self.short.store(self.lane.is_some(), Ordering::Relaxed);
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
