//! A chunk on its way.

use std::sync::Arc;

use super::buffer::ChunkBuffer;
use super::from_device;
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
    pub(super) is_last: bool,
}

/// A chunk that the feeder is done with.
pub(super) struct Passed {
    pub(super) chunk: Chunk,
    pub(super) posted: Result<Arc<Completion>, Error>,
}

impl Chunk {
    /// Queues the copy of what this rank gives to the buffer.
    pub(super) fn copy_out(&mut self) -> Result<(), Error> {
        let (Some(buffer), Some(rows)) = (&mut self.buffer, self.cut.give) else { return Ok(()) };
        let streams = &self.work.streams;
        let current = streams.context().enter().map_err(from_device)?;
        // SAFETY: the rows lie in the program's buffer, which is ours until the work is over; that
        // it is not before this copy is done, because the buffer stays with the chunk.
        unsafe { buffer.fill(&current, &streams.out, self.work.ends.input, rows) }.map_err(from_device)
    }

    /// Queues the copy of what this rank gets to the device.
    pub(super) fn copy_back(&mut self) -> Result<(), Error> {
        let (Some(buffer), Some(rows)) = (&mut self.buffer, self.cut.get) else { return Ok(()) };
        let (streams, output) = (&self.work.streams, self.work.ends.output);
        let current = streams.context().enter().map_err(from_device)?;
        // SAFETY: the rows lie in the program's buffer, which is ours until the work is over; that
        // it is only behind this copy. The chunk's result is complete.
        unsafe { buffer.empty(&current, &streams.back, (output, rows), self.cut.given()) }.map_err(from_device)
    }
}
