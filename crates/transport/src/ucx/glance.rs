//! A look at an edge for a thread that must not hold its ends meanwhile.

use std::os::fd::RawFd;
use std::sync::Arc;

use super::edge::Edge;
use super::worker::UcxWorker;

/// A look at an edge over UCX.
#[derive(Clone)]
pub struct UcxGlance {
    pub(super) worker: UcxWorker,
    pub(super) edge: Arc<Edge>,
}

impl UcxGlance {
    /// The worker over which the edge goes.
    pub fn worker(&self) -> &UcxWorker {
        &self.worker
    }

    /// Whether datagrams wait.
    #[inline]
    pub fn has_records(&self) -> bool {
        self.edge.has_records()
    }

    /// Whether any byte of the stream waits, or the edge has failed.
    pub fn has_bytes(&self) -> bool {
        self.edge.has_bytes()
    }

    /// Whether anything waits, or room for which a write waits, or the edge is over.
    #[inline]
    pub fn has_come(&self) -> bool {
        self.edge.has_records() || self.edge.has_bytes() || self.edge.has_room() || self.edge.is_left()
    }

    /// Whether there is room now for a write that has waited for it. It does not wait any more.
    pub fn has_room(&self) -> bool {
        let has_room = self.edge.has_room();
        if has_room {
            self.edge.with(|state| state.wants_room = false);
        }
        has_room
    }

    /// Whether UCX has not sent all that was written, and has to be driven for it.
    pub fn is_sending(&self) -> bool {
        self.edge.with(|state| state.is_sending())
    }

    /// Says that this thread is about to sleep on the worker's bell. Returns false if something is
    /// there already.
    pub fn fall_asleep(&self) -> bool {
        self.worker.fall_asleep() && !self.has_come()
    }

    /// The descriptor on which it sleeps.
    pub fn bell(&self) -> RawFd {
        self.worker.bell()
    }
}
