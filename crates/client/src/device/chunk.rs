//! A chunk on its way.

use std::sync::Arc;

use super::buffer::ChunkBuffer;
use super::from_device;
use super::peers::{Combined, Peers};
use super::plan::Cut;
use super::work::Work;
use crate::completion::Completion;
use crate::error::Error;

/// A part of a collective, which is an operation of the group.
pub(super) struct Chunk {
    pub(super) work: Arc<Work>,
    pub(super) cut: Cut,
    /// Where it lies; `None` if it was not copied, because its collective has failed.
    pub(super) buffer: Option<ChunkBuffer>,
    /// Which one of those that ranks of a host combine it is, if it is one.
    pub(super) combined: Option<(Arc<Peers>, Combined)>,
    pub(super) is_last: bool,
}

/// A chunk that the feeder is done with.
pub(super) struct Passed {
    pub(super) chunk: Chunk,
    pub(super) posted: Result<Arc<Completion>, Error>,
}

impl Chunk {
    /// Queues the copy of what this rank gives to where it is taken from.
    pub(super) fn copy_out(&mut self) -> Result<(), Error> {
        let (Some(buffer), Some(rows)) = (&mut self.buffer, self.cut.give) else { return Ok(()) };
        let (streams, input) = (&self.work.streams, self.work.ends.input);
        let to = match &self.combined {
            Some((peers, combined)) => peers.input(*combined),
            None => {
                assert!(rows.bytes() <= buffer.len(), "a chunk fits its buffer");
                buffer.input()
            }
        };
        let copies = (0..rows.count)
            .map(|row| (input.wrapping_add(rows.first + row * rows.stride), to.wrapping_add(row * rows.len), rows.len));
        let current = streams.context().enter().map_err(from_device)?;
        // SAFETY: the rows lie in the program's buffer, which is ours until the work is over; that
        // it is not before this copy is done, because the buffer stays with the chunk.
        unsafe { buffer.fill(&current, &streams.out, copies) }.map_err(from_device)
    }

    /// Queues the copy of what this rank gets to the device. Ranks that combine wait for each other
    /// before.
    pub(super) fn copy_back(&mut self) -> Result<(), Error> {
        let (Some(buffer), Some(rows)) = (&mut self.buffer, self.cut.get) else { return Ok(()) };
        let (streams, output) = (&self.work.streams, self.work.ends.output);
        if let Some((peers, combined)) = &self.combined {
            // SAFETY: the result of the part has come to the buffer.
            unsafe { peers.show(*combined, buffer.input()) }.inspect_err(|_| buffer.keep())?;
            let current = streams.context().enter().map_err(from_device)?;
            let copies = peers.copies(*combined, output.wrapping_add(rows.first));
            // SAFETY: as below. The ranks whose memory it is keep it until this one has come to the
            // next barrier.
            return unsafe { buffer.empty(&current, self.work.back(&current)?, copies) }.map_err(from_device);
        }
        let result = buffer.result(self.cut.given()).cast_const();
        assert!(self.cut.given() + rows.bytes() <= buffer.len(), "a chunk fits its buffer");
        let copies = (0..rows.count).map(|row| {
            (result.wrapping_add(row * rows.len), output.wrapping_add(rows.first + row * rows.stride), rows.len)
        });
        let current = streams.context().enter().map_err(from_device)?;
        // SAFETY: the rows lie in the program's buffer, which is ours until the work is over; that
        // it is only behind this copy. The chunk's result is complete.
        unsafe { buffer.empty(&current, self.work.back(&current)?, copies) }.map_err(from_device)
    }
}
