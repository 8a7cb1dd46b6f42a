//! A collective under way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use trib_device::{Current, Event, Stream};
use trib_wire::{Collective, Signature};

use super::delivery::{Delivery, Issued};
use super::from_device;
use super::peers::{self, Peers};
use super::plan::{Cut, Plan};
use super::streams::Streams;
use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Input;
use crate::sum_kind::SumKind;
use crate::sums::Part;

/// What the chunks of a collective share. It is over when the last of them has dropped it, however
/// that came.
pub(super) struct Work {
    shared: Arc<Shared>,
    group: Arc<GroupState>,
    delivery: Arc<Delivery>,
    plan: Plan,
    /// The ranks of the host that combine in it; none before it is begun.
    peers: OnceLock<Arc<Peers>>,
    signature: Signature,
    /// The kind of sum that each chunk is, if it is one, and the call of which it is a part.
    pub(super) sums: Option<(SumKind, Part)>,
    pub(super) ends: Ends,
    entry: Event,
    pub(super) streams: Arc<Streams>,
    /// Set when the stream of copies back waits for the entry.
    comes_back: OnceLock<()>,
    /// The chunks that have not passed.
    left: AtomicU64,
    failure: OnceLock<Error>,
}

/// The ends of the copies in the program's memory: where what this rank gives begins, and where
/// what it gets is to begin.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) input: *const u8,
    pub(super) output: *mut u8,
}

// SAFETY: the caller gave the buffers to the library until the operation is over; only the driver
// touches them, and one copy at a time touches a byte.
unsafe impl Send for Ends {}
// SAFETY: as above.
unsafe impl Sync for Ends {}

impl Ends {
    /// Those of the member with this rank. In place, an allgather's input lies at its position in
    /// the result. The result of a reduce-scatter comes over the first block, of which each chunk
    /// has been copied out when its result comes.
    pub(super) fn new(signature: &Signature, rank: u32, input: Input, output: *mut u8) -> Ends {
        let input = match input {
            Input::At(start) => start,
            Input::InPlace if signature.collective == Collective::Allgather => {
                output.wrapping_add(rank as usize * signature.count as usize * signature.dtype.size())
            }
            Input::InPlace => output,
        };
        Ends { input, output }
    }
}

impl Work {
    pub(super) fn new(
        (shared, group): (Arc<Shared>, Arc<GroupState>),
        delivery: Arc<Delivery>,
        (plan, signature, sums): (Plan, Signature, Option<(SumKind, Part)>),
        ends: Ends,
        entry: Event,
        streams: Arc<Streams>,
    ) -> Work {
        // How many chunks there are is known when it is begun.
        let (left, peers) = (AtomicU64::new(u64::MAX), OnceLock::new());
        let (comes_back, failure) = (OnceLock::new(), OnceLock::new());
        Work { shared, group, delivery, plan, peers, signature, sums, ends, entry, streams, comes_back, left, failure }
    }

    /// What was called.
    pub(super) fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The count of the call.
    pub(super) fn count(&self) -> u64 {
        self.signature.count
    }

    /// Whether ranks of a host combine in it, if they can.
    pub(super) fn may_be_combined(&self) -> bool {
        peers::concerns(&self.signature, self.sums.is_some())
    }

    /// The ranks of the host that combine in it.
    pub(super) fn peers(&self) -> Option<&Arc<Peers>> {
        self.peers.get()
    }

    /// How many chunks it has.
    pub(super) fn chunks(&self) -> u64 {
        self.plan().chunks(&self.signature)
    }

    /// The chunk with this number.
    pub(super) fn cut(&self, number: u64) -> Cut {
        self.plan().cut(&self.signature, number, self.group.rank)
    }

    fn plan(&self) -> Plan {
        self.peers().map_or(self.plan, |peers| peers.plan())
    }

    /// Lets its copies out wait for what the program has queued before.
    pub(super) fn begin(&self, peers: Option<Arc<Peers>>) -> Result<(), Error> {
        if let Some(peers) = peers {
            let _ = self.peers.set(peers);
            self.shared.combined.fetch_add(1, Ordering::Relaxed);
        }
        self.left.store(self.chunks(), Ordering::Release);
        self.streams.begin(&self.entry).map_err(from_device)
    }

    /// The stream of its copies back, the first of which waits for what the program has queued
    /// before. To be called when that one is to be queued: copies of earlier operations, which do
    /// not have to wait for that, are then in the stream before it.
    pub(super) fn back(&self, current: &Current) -> Result<&Stream, Error> {
        let back = &self.streams.back;
        if self.comes_back.get().is_none() {
            back.wait(current, &self.entry).map_err(from_device)?;
            let _ = self.comes_back.set(());
        }
        Ok(back)
    }

    /// Notes that it fails. The first error counts. If this rank is the one at fault, it leaves the
    /// group, because others wait for chunks that will not come.
    pub(super) fn fail(&self, error: Error) {
        // What fails because this rank leaves is no cause.
        let _ = self.failure.set(error.clone());
        if let Some(peers) = self.peers() {
            peers.leave(&error);
        }
        if self.group.error().is_none() {
            let why = format!("this rank has left the group: {error}");
            // In a finalized context there is nobody to tell.
            let _ = self.shared.leave_group(&self.group, error.with_text(why));
        }
    }

    /// Whether there is no use in going on.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// Notes that a chunk has come through: its result is queued.
    pub(super) fn pass(&self) {
        self.left.fetch_sub(1, Ordering::AcqRel);
    }

    /// What is left to wait for.
    fn issued(&self) -> Result<Issued, Error> {
        if let Some(error) = self.failure.get() {
            return Err(error.clone());
        }
        if self.left.load(Ordering::Acquire) > 0 {
            return Err(Error::broken("a thread for GPU memory has ended"));
        }
        if self.cut(0).get.is_none() {
            return Ok(Issued::Over(Ok(())));
        }
        let current = self.streams.context().enter().map_err(from_device)?;
        let event = self.streams.back.record(&current).map_err(from_device)?;
        Ok(Issued::Copies(Arc::new(event)))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let issued = self.issued().unwrap_or_else(|error| {
            self.streams.drain();
            Issued::Over(Err(error))
        });
        self.delivery.issue(issued);
    }
}
