//! An operation in flight, as the caller that posted it holds it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use trib_wire::Signature;

use crate::engine::Shared;
use crate::error::Error;

/// A posted operation, or the creation of a group. Dropping it lets the operation go on; its
/// buffers stay the library's until it is done.
pub struct Request {
    shared: Arc<Shared>,
    completion: Arc<Completion>,
}

impl Request {
    pub(crate) fn new(shared: Arc<Shared>, completion: Arc<Completion>) -> Request {
        Request { shared, completion }
    }

    /// Drives progress once without waiting, and returns the outcome if there is one.
    pub fn test(&self) -> Option<Result<(), Error>> {
        if !self.completion.is_done()
            && let Err(error) = self.shared.poll()
        {
            return Some(Err(error));
        }
        self.completion.outcome()
    }

    /// Waits for the outcome, at most `timeout`. After `Error::Timeout` the operation goes on.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<(), Error> {
        self.shared.wait(&self.completion, timeout)
    }

    /// Whether the operation is over. It does not drive progress.
    pub fn is_done(&self) -> bool {
        self.completion.is_done()
    }
}

/// What the engine tells the holder of a request.
pub(crate) struct Completion {
    done: AtomicBool,
    /// The number of parts that are not over.
    parts: AtomicU32,
    /// The lane, if the request has only one.
    lane: Option<usize>,
    /// The operation; `None` if a group is made.
    what: Option<Signature>,
    /// The operation is on datagrams: unless a rank is late, it is over in less time than a
    /// sleeping thread needs to wake.
    short: AtomicBool,
    error: OnceLock<Error>,
}

impl Completion {
    /// The completion of an operation on one lane.
    pub(crate) fn on_lane(lane: usize, what: Signature) -> Completion {
        Completion { lane: Some(lane), ..Completion::of_cut(1, what) }
    }

    /// The completion of an operation that is cut into `parts` parts.
    pub(crate) fn of_cut(parts: u32, what: Signature) -> Completion {
        Completion { what: Some(what), ..Completion::of_parts(parts) }
    }

    /// The completion of a request with `parts` parts, each on a lane of its own. It is over when
    /// all of them are.
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

    /// Ends a part. It must be called once for each. The first error counts.
    pub(crate) fn finish(&self, outcome: Result<(), Error>) {
        if let Err(error) = outcome {
            let _ = self.error.set(error);
        }
        if self.parts.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.store(true, Ordering::Release);
        }
    }

    /// The operation; the whole one, if it is cut.
    pub(crate) fn what(&self) -> Option<&Signature> {
        self.what.as_ref()
    }

    /// The lane, if the request has only one; else the first.
    pub(crate) fn lane(&self) -> usize {
        self.lane.unwrap_or(0)
    }

    /// Marks an operation on datagrams, for which a waiter may look at one lane alone.
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
