//! Pinned memory for one chunk: its input, and behind that its result; of a chunk that ranks of a
//! host combine, this rank's part.

use std::mem::ManuallyDrop;
use std::sync::mpsc::{Receiver, Sender, channel};

use trib_device::{Current, Error, Event, Pinned, Stream};

use super::plan::Plan;

/// A buffer, and the copies from and to it that may be under way.
pub(super) struct ChunkBuffer {
    pinned: ManuallyDrop<Pinned>,
    /// The copy of an input to it.
    filled: Option<Event>,
    /// The copy of a result from it.
    emptied: Option<Event>,
    /// A copy may be under way of which no event tells.
    is_lost: bool,
}

impl ChunkBuffer {
    fn new(current: &Current, len: usize) -> Result<ChunkBuffer, Error> {
        let pinned = ManuallyDrop::new(Pinned::new(current, len)?);
        Ok(ChunkBuffer { pinned, filled: None, emptied: None, is_lost: false })
    }

    /// Where a chunk's input lies.
    pub(super) fn input(&self) -> *mut u8 {
        self.pinned.start()
    }

    /// Its bytes.
    pub(super) fn len(&self) -> usize {
        self.pinned.len()
    }

    /// Where a chunk's result lies, behind an input of so many bytes.
    pub(super) fn result(&self, input: usize) -> *mut u8 {
        self.pinned.start().wrapping_add(input)
    }

    /// Queues the copies of a chunk's input, to this buffer or elsewhere: from, to, and how many
    /// bytes.
    ///
    /// # Safety
    /// Both ends are there, and stay until [`ChunkBuffer::settle`] has returned.
    pub(super) unsafe fn fill(
        &mut self,
        current: &Current,
        stream: &Stream,
        copies: impl Iterator<Item = (*const u8, *mut u8, usize)>,
    ) -> Result<(), Error> {
        if let Some(emptied) = &self.emptied {
            // The result before may lie where this input comes.
            stream.wait(current, emptied)?;
        }
        // SAFETY: the caller's contract.
        self.filled = Some(unsafe { self.queue(current, stream, copies) }?);
        Ok(())
    }

    /// Queues copies, and returns an event behind them.
    ///
    /// # Safety
    /// Both ends are there, and stay until the event has come.
    unsafe fn queue(
        &mut self,
        current: &Current,
        stream: &Stream,
        copies: impl Iterator<Item = (*const u8, *mut u8, usize)>,
    ) -> Result<Event, Error> {
        self.is_lost = true;
        for (from, to, len) in copies {
            // SAFETY: the caller's contract.
            unsafe { stream.copy(current, from, to, len) }?;
        }
        let event = stream.record(current)?;
        self.is_lost = false;
        Ok(event)
    }

    /// Waits until it is full, and the last result has left it.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        for event in [&mut self.filled, &mut self.emptied] {
            if let Some(under_way) = event {
                under_way.wait()?;
                *event = None;
            }
        }
        Ok(())
    }

    /// Queues the copies of a chunk's result, from this buffer or elsewhere.
    ///
    /// # Safety
    /// Both ends are there, and stay until an event that is recorded later has come. The result is
    /// complete.
    pub(super) unsafe fn empty(
        &mut self,
        current: &Current,
        stream: &Stream,
        copies: impl Iterator<Item = (*const u8, *mut u8, usize)>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's contract.
        self.emptied = Some(unsafe { self.queue(current, stream, copies) }?);
        Ok(())
    }

    /// Gives the buffer up: the engine may still write to it.
    pub(super) fn lose(mut self) {
        self.keep();
    }

    /// Lets its memory stay for good: something may be under way there of which no event tells.
    pub(super) fn keep(&mut self) {
        self.is_lost = true;
    }
}

impl Drop for ChunkBuffer {
    fn drop(&mut self) {
        // What a copy may still touch is never freed.
        if !self.is_lost && self.settle().is_ok() {
            // SAFETY: the field is not used again.
            unsafe { ManuallyDrop::drop(&mut self.pinned) };
        }
    }
}

/// The buffers of a group. They are made when they are needed.
pub(super) struct ChunkBuffers {
    plan: Plan,
    made: usize,
    free: Receiver<Option<ChunkBuffer>>,
}

/// Where buffers are given back.
pub(super) struct Returned(Sender<Option<ChunkBuffer>>);

impl ChunkBuffers {
    pub(super) fn new(plan: Plan) -> (ChunkBuffers, Returned) {
        let (returned, free) = channel();
        (ChunkBuffers { plan, made: 0, free }, Returned(returned))
    }

    /// A buffer, unless all are in use.
    pub(super) fn take(&mut self, current: &Current) -> Result<Option<ChunkBuffer>, Error> {
        while let Ok(returned) = self.free.try_recv() {
            match returned {
                Some(buffer) => return Ok(Some(buffer)),
                None => self.made -= 1,
            }
        }
        if self.made == self.plan.depth {
            return Ok(None);
        }
        let buffer = ChunkBuffer::new(current, self.plan.buffer)?;
        self.made += 1;
        Ok(Some(buffer))
    }

    /// Sleeps until one is given back. It is called only when all are in use.
    pub(super) fn wait(&mut self, current: &Current) -> Result<Option<ChunkBuffer>, Error> {
        match self.free.recv() {
            Ok(Some(buffer)) => Ok(Some(buffer)),
            Ok(None) => {
                self.made -= 1;
                self.take(current)
            }
            // The drainer has ended, and with it every buffer that it had.
            Err(_) => Ok(None),
        }
    }
}

impl Returned {
    /// Gives a buffer back, or says that one is lost.
    pub(super) fn give(&self, buffer: Option<ChunkBuffer>) {
        // Without a feeder nobody needs it.
        let _ = self.0.send(buffer.filter(|buffer| !buffer.is_lost));
    }
}
