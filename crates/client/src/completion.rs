//! What the engine tells the holder of a request: whether it is over, and how it ended.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use trib_wire::Signature;

use crate::error::Error;

/// The outcome of an operation or of the creation of a group, as soon as there is one.
pub(crate) struct Completion {
    done: AtomicBool,
    /// The number of parts that are not over.
    parts: AtomicU32,
    /// The lane, if the request has only one.
    lane: Option<usize>,
    /// The index of its group among those that have boards, if it is posted there.
    board: Option<usize>,
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

    /// The completion of an operation of the group with this index among those that have boards.
    pub(crate) fn on_board(at: usize, what: Signature) -> Completion {
        Completion { board: Some(at), ..Completion::on_lane(0, what) }
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
            board: None,
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

    /// The index of its group among those that have boards, if it was posted there.
    pub(crate) fn board(&self) -> Option<usize> {
        self.board
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
