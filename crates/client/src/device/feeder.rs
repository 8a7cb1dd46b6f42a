//! The thread that copies chunks out of a device and posts them.
//!
//! A sum that is not taken as it is is several operations, of which the later ones follow from
//! results of the earlier; so the thread waits for it, while copies go on.
//! It copies as far ahead as there are buffers, and posts in the order of the calls. What it posts
//! goes on to the drainer, and with it what failed here, so that the drainer sees every chunk.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, OnceLock};

use trib_device::{Relaxed, driver};

use super::behind::ToPost;
use super::buffer::{ChunkBuffer, ChunkBuffers};
use super::chunk::{Chunk, Passed};
use super::from_device;
use super::peers::{self, Combined, Peers};
use super::plan::Plan;
use super::work::Work;
use crate::completion::Completion;
use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Input;
use crate::posting::Posting;
use crate::sums::{Part, Sum, ToTake};

/// What a caller has begun.
pub(super) enum Item {
    Device(Arc<Work>),
    /// An operation over memory of the host, which comes behind others.
    Host(Posting, ToPost),
    /// A sum over memory of the host.
    Sum(ToTake),
}

/// What is to be posted next, in this order.
enum Ahead {
    Chunk(Chunk),
    Host(Posting, ToPost),
    Sum(ToTake),
    /// Before the chunks that are combined: whether all ranks have called the same.
    Agree(Arc<Work>),
}

pub(super) struct Feeder {
    shared: Arc<Shared>,
    group: Arc<GroupState>,
    items: Receiver<Item>,
    buffers: ChunkBuffers,
    passed: Sender<Passed>,
    queued: Arc<AtomicUsize>,
    /// The ranks of the host with which this one combines.
    peers: Arc<PeersOfHost>,
    /// How many chunks were combined so far.
    combined: u64,
    /// The operation that is being cut, and the number of its next chunk.
    cutting: Option<(Arc<Work>, u64)>,
    ahead: VecDeque<Ahead>,
}

/// The ranks of a host that combine what their GPUs have.
pub(super) struct PeersOfHost {
    plan: Plan,
    /// Whether this rank may combine.
    may: bool,
    /// What they have found out.
    found: OnceLock<Option<Arc<Peers>>>,
}

impl PeersOfHost {
    pub(super) fn new(plan: Plan, may: bool) -> PeersOfHost {
        PeersOfHost { plan, may, found: OnceLock::new() }
    }
}

impl Feeder {
    pub(super) fn new(
        shared: Arc<Shared>,
        group: Arc<GroupState>,
        items: Receiver<Item>,
        buffers: ChunkBuffers,
        passed: Sender<Passed>,
        (queued, peers): (Arc<AtomicUsize>, Arc<PeersOfHost>),
    ) -> Feeder {
        let ahead = VecDeque::new();
        Feeder { shared, group, items, buffers, passed, queued, peers, combined: 0, cutting: None, ahead }
    }

    /// Runs until the group is dropped and everything is posted.
    pub(super) fn run(mut self) {
        // What the thread's calls of the driver need, once there is something on a device.
        let mut relaxed = None;
        loop {
            while self.look_ahead(false, &mut relaxed) {}
            match self.ahead.pop_front() {
                Some(next) => self.post(next),
                // Every buffer is in use, or nothing is to be done.
                None if !self.look_ahead(true, &mut relaxed) => return,
                None => {}
            }
        }
    }

    /// Begins the next copy. It returns false if there is none, or none without waiting.
    fn look_ahead(&mut self, waits: bool, relaxed: &mut Option<Option<Relaxed>>) -> bool {
        let Some((work, number)) = self.cutting.take() else {
            let item = if waits { self.items.recv().ok() } else { self.items.try_recv().ok() };
            match item {
                Some(Item::Device(work)) => {
                    relaxed.get_or_insert_with(|| driver().and_then(Relaxed::enter).ok());
                    if let Err(error) = self.peers_for(&work).and_then(|peers| work.begin(peers)) {
                        work.fail(error);
                    }
                    if work.peers().is_some() {
                        self.ahead.push_back(Ahead::Agree(work.clone()));
                    }
                    self.cutting = Some((work, 0));
                }
                Some(Item::Host(posting, to_post)) => self.ahead.push_back(Ahead::Host(posting, to_post)),
                Some(Item::Sum(to_take)) => self.ahead.push_back(Ahead::Sum(to_take)),
                None => return false,
            }
            return true;
        };
        let buffer = match self.buffer_for(&work, waits) {
            Ok(None) if !work.has_failed() && !waits => {
                self.cutting = Some((work, number));
                return false;
            }
            Ok(buffer) => buffer,
            Err(error) => {
                work.fail(error);
                None
            }
        };
        let is_last = number + 1 == work.chunks();
        let (cut, peers) = (work.cut(number), work.peers().cloned());
        let combined = peers.map(|peers| (peers, Combined { signature: cut.signature, number: self.combined }));
        self.combined += u64::from(combined.is_some());
        let mut chunk = Chunk { cut, work, buffer, combined, is_last };
        if let Err(error) = chunk.copy_out() {
            chunk.work.fail(error);
        }
        if !is_last {
            self.cutting = Some((chunk.work.clone(), number + 1));
        }
        self.ahead.push_back(Ahead::Chunk(chunk));
        true
    }

    /// The ranks of this host that combine in an operation. The members find out together who does,
    /// behind all that was begun before.
    fn peers_for(&mut self, work: &Work) -> Result<Option<Arc<Peers>>, Error> {
        if matches!(self.peers.found.get(), Some(None)) || !work.may_be_combined() {
            return Ok(None);
        }
        if self.peers.found.get().is_none() {
            while let Some(next) = self.ahead.pop_front() {
                self.post(next);
            }
            let of = (self.peers.plan, work.streams.context());
            let found = peers::meet(&self.shared, &self.group, of, work.signature(), self.peers.may)?;
            let _ = self.peers.found.set(found.map(Arc::new));
        }
        Ok(self.peers.found.get().cloned().flatten())
    }

    /// A buffer for a chunk, if there is one and the operation has not failed.
    fn buffer_for(&mut self, work: &Work, waits: bool) -> Result<Option<ChunkBuffer>, Error> {
        if let Some(error) = self.group.error() {
            return Err(error.clone());
        }
        if work.has_failed() {
            return Ok(None);
        }
        let current = work.streams.context().enter().map_err(from_device)?;
        match self.buffers.take(&current).map_err(from_device)? {
            None if waits => self.buffers.wait(&current).map_err(from_device),
            found => Ok(found),
        }
    }

    fn post(&mut self, next: Ahead) {
        let is_last = match next {
            Ahead::Host(posting, to_post) => {
                to_post.post(self.shared.post(&self.group, posting));
                true
            }
            Ahead::Sum(to_take) => {
                to_take.take(|sum| self.take(sum));
                true
            }
            Ahead::Agree(work) => {
                if let Err(error) = peers::agree(&self.shared, &self.group, work.signature()) {
                    work.fail(error);
                }
                false
            }
            Ahead::Chunk(mut chunk) => {
                let is_last = chunk.is_last;
                let posted = self.post_chunk(&mut chunk);
                if let Err(error) = &posted {
                    chunk.work.fail(error.clone());
                }
                // A drainer that has ended leaves the chunk to be dropped here, as a failure.
                let _ = self.passed.send(Passed { chunk, posted });
                is_last
            }
        };
        if is_last {
            self.queued.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Takes a sum, and returns when it is over.
    fn take(&self, sum: &Sum) -> Result<(), Error> {
        sum.take(&self.shared, &self.group, |completion| self.shared.wait_as_own(completion))
    }

    fn post_chunk(&mut self, chunk: &mut Chunk) -> Result<Arc<Completion>, Error> {
        let Some(buffer) = &mut chunk.buffer else { return Err(Error::broken("a chunk without memory")) };
        buffer.settle().map_err(from_device)?;
        if chunk.work.has_failed() {
            return Err(Error::broken("a chunk of an operation that has failed"));
        }
        if let Some((peers, combined)) = &chunk.combined {
            let pinned = buffer.input();
            peers.give()?;
            // SAFETY: the buffer has room for a part.
            unsafe { peers.fold(*combined, pinned) }.inspect_err(|_| buffer.keep())?;
            // SAFETY: the drainer keeps the buffer until the chunk is over.
            return unsafe { peers.post(*combined, pinned, chunk.work.count()) };
        }
        let (input, output) = (buffer.input().cast_const(), buffer.result(chunk.cut.given()));
        let shape = (self.group.size, self.group.rank);
        if let Some((kind, whole)) = chunk.work.sums {
            let part = Part { first: chunk.cut.first, ..whole };
            let sum = Sum::new(&self.shared, kind, (chunk.cut.signature, part), shape, Input::At(input), output)?;
            let over = Completion::of_cut(1, chunk.cut.signature);
            over.finish(self.take(&sum));
            return Ok(Arc::new(over));
        }
        // SAFETY: the buffer has room for both, and the drainer keeps it until the chunk is over.
        let posting =
            unsafe { Posting::lay_out(self.shared.lanes(), shape, &chunk.cut.signature, Input::At(input), output) }?;
        self.shared.post(&self.group, posting.stretch_of(chunk.work.count()))
    }
}
