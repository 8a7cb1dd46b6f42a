//! What the driver remembers of a posted operation, and the memory of its frames' payloads.

use std::ops::Range;
use std::sync::Arc;

use trib_proto::leaf::{GroupId, Slice};
use trib_transport::landing::{Landing, Source, UserLanding, UserSource};
use trib_wire::directory::ordinal;
use trib_wire::{Directory, Generation, GroupIndex, Header};

use super::kept::{Kept, Saved, Spares};
use crate::completion::Completion;
use crate::memory::Memory;

/// One operation from post to completion.
pub(crate) struct Operation {
    pub(crate) group: GroupId,
    pub(crate) memory: Memory,
    /// The count of the longer call of which it is a stretch; 0 if it stands alone.
    pub(crate) stretch_of: u64,
    pub(crate) completion: Arc<Completion>,
    /// How to recognise its frames, once one was sent or received.
    pub(crate) trace: Option<Trace>,
    /// The input over which the result comes, if it comes there.
    saved: Saved,
}

/// Where an operation's frames stand in the sequence of its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Trace {
    index: GroupIndex,
    generation: Generation,
    op_seq: u64,
}

impl Operation {
    /// An operation that is about to be posted.
    pub(crate) fn new(group: GroupId, memory: Memory, completion: Arc<Completion>) -> Operation {
        Operation { group, memory, stretch_of: 0, completion, trace: None, saved: Saved::default() }
    }

    /// The same, as a stretch of a call with this count.
    pub(crate) fn stretch_of(self, stretch_of: u64) -> Operation {
        Operation { stretch_of, ..self }
    }

    /// Keeps the input of this slice, if its result comes over it.
    pub(super) fn save(&mut self, slice: Slice, most: usize, spares: &mut Spares) {
        if let Some(start) = self.memory.overwritten(slice) {
            // SAFETY: `overwritten` checked that the slice lies inside the input of this operation,
            // which runs.
            let bytes = unsafe { core::slice::from_raw_parts(start, slice.bytes as usize) };
            self.saved.keep(slice, bytes, most, spares);
        }
    }

    /// The input of this slice, if its result has come over it.
    pub(super) fn saved(&self, slice: Slice) -> Option<&[u8]> {
        self.saved.slice(slice)
    }

    /// The input of these elements, of which there is one or more, and which nothing else keeps
    /// from now on. What was saved as the result came over it is not copied again.
    ///
    /// # Safety
    /// The program's input is still there.
    pub(super) unsafe fn keep(&mut self, elements: Range<u64>, spares: &mut Spares) -> Kept {
        let saved = core::mem::take(&mut self.saved);
        // SAFETY: the caller's promise.
        let input = unsafe { self.memory.input_of(&elements) };
        if saved.is_empty() {
            return Kept::copy(elements, input, spares);
        }
        if saved.covers(&elements) {
            return Kept::Long(saved);
        }
        let mut bytes = spares.bytes();
        bytes.extend_from_slice(input);
        saved.restore(&elements, &mut bytes);
        spares.give(saved);
        Kept::Long(Saved::one(elements, bytes, spares))
    }

    /// Gives back what was saved and is needed no more.
    pub(super) fn take_saved(&mut self) -> Saved {
        core::mem::take(&mut self.saved)
    }

    /// The operation and its number in the group: `allreduce of 1024 float64 (sum), the 3rd
    /// operation`.
    pub(crate) fn words(&self, by: &dyn Directory) -> Option<String> {
        let what = self.completion.what()?.told(by);
        let which = self.trace.map(|trace| format!(", the {} operation", ordinal(trace.op_seq)));
        Some(what + &which.unwrap_or_default())
    }

    /// Notes that a frame of the operation was sent or received.
    pub(crate) fn saw(&mut self, header: &Header) {
        let Header { group: index, generation, op_seq, .. } = *header;
        self.trace = Some(Trace { index, generation, op_seq });
    }
}

impl Trace {
    /// Whether a frame belongs to the operation.
    pub(crate) fn covers(&self, header: &Header) -> bool {
        (self.index, self.generation, self.op_seq) == (header.group, header.generation, header.op_seq)
    }
}

/// The payload of a queued stream frame.
pub(crate) enum Outgoing {
    /// The caller's memory, while its operation runs.
    User(UserSource),
    /// A copy: the operation has failed while the frame was half written.
    Copy(Vec<u8>),
}

impl Outgoing {
    /// Replaces a reference into the caller's memory by a copy.
    pub(crate) fn detach(&mut self) {
        if let Outgoing::User(source) = self {
            *self = Outgoing::Copy(source.bytes().to_vec());
        }
    }
}

impl Source for Outgoing {
    fn bytes(&self) -> &[u8] {
        match self {
            Outgoing::User(source) => source.bytes(),
            Outgoing::Copy(bytes) => bytes,
        }
    }
}

/// Where the payload of a stream frame is read to.
pub(crate) enum Incoming {
    /// Directly to its destination in the result.
    Placed(Slice, UserLanding),
    /// To a buffer of ours, because the core had no destination for it yet when its header came.
    Aside(Vec<u8>),
}

impl Landing for Incoming {
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Incoming::Placed(_, landing) => landing.bytes_mut(),
            Incoming::Aside(bytes) => bytes,
        }
    }
}
