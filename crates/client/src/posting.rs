//! Operations on their way from the caller to the engine.

use std::collections::TryReserveError;
use std::ops::Range;

use trib_proto::window;
use trib_wire::{Collective, Signature};

use crate::error::Error;
use crate::lanes::Lanes;
use crate::memory::{Input, Memory};

/// An operation, ready to be posted.
pub(crate) enum Posting {
    /// The operation is posted on the lane whose turn it is.
    Whole(Part),
    /// The operation is cut over the lanes. This holds the signature of the whole and a part for
    /// each lane.
    Cut(Signature, Vec<Part>),
}

/// An operation for one lane.
pub(crate) struct Part {
    pub(crate) signature: Signature,
    pub(crate) memory: Memory,
    /// The count of the longer call of which it is a stretch; 0 if it stands alone.
    pub(crate) stretch_of: u64,
}

impl Posting {
    /// An operation that is neither cut nor a stretch of a longer one.
    pub(crate) fn alone(signature: Signature, memory: Memory) -> Posting {
        Posting::Whole(Part { signature, memory, stretch_of: 0 })
    }

    /// What is to be done.
    pub(crate) fn signature(&self) -> Signature {
        match self {
            Posting::Whole(Part { signature, .. }) | Posting::Cut(signature, _) => *signature,
        }
    }

    /// Checks an operation of a group of `size`, in which this process has `rank`, and lays it over
    /// its buffers.
    ///
    /// # Safety
    /// The buffers are as long as the operation says, and are the library's until it is over.
    pub(crate) unsafe fn lay_out(
        lanes: &Lanes,
        (size, rank): (u32, u32),
        signature: &Signature,
        input: Input,
        output: *mut u8,
    ) -> Result<Posting, Error> {
        check(signature, input, (size, rank))?;
        let collective = signature.collective;
        let checked = |memory: Result<Memory, TryReserveError>| -> Result<Memory, Error> {
            let memory = memory
                .map_err(|cause| Error::Memory(format!("no memory for the blocks of a {collective}: {cause}")))?;
            if memory.lacks_buffer() {
                return Err(lacks_buffer(collective));
            }
            Ok(memory)
        };
        if !lanes.cut(signature, size) {
            return Ok(Posting::alone(*signature, checked(Memory::new(signature, size, rank, input, output))?));
        }
        // All parts are laid out before the first is posted, because a part's result may come to
        // lie over another part's input.
        let part = |part: Range<u64>| -> Result<Part, Error> {
            // SAFETY: the caller's contract.
            let memory = checked(unsafe { Memory::part(signature, &part, (size, rank), input, output) })?;
            let signature = Signature { count: part.end - part.start, ..*signature };
            Ok(Part { signature, memory, stretch_of: 0 })
        };
        let parts: Result<_, Error> = lanes.parts(signature.count).map(part).collect();
        Ok(Posting::Cut(*signature, parts?))
    }

    /// The same, as a stretch of a call with this count.
    pub(crate) fn stretch_of(mut self, count: u64) -> Posting {
        let whole = self.signature().count.max(1);
        let mark = |part: &mut Part| {
            let share = u128::from(count) * u128::from(part.signature.count) / u128::from(whole);
            part.stretch_of = share as u64;
        };
        match &mut self {
            Posting::Whole(part) => mark(part),
            Posting::Cut(_, parts) => parts.iter_mut().for_each(mark),
        }
        self
    }
}

/// Checks what an operation asks for, wherever its buffers are.
pub(crate) fn check(signature: &Signature, input: Input, (size, rank): (u32, u32)) -> Result<(), Error> {
    let Signature { collective, dtype, op, root, .. } = *signature;
    if let Some(reason) = op.refusal(dtype.class()) {
        return Err(Error::Unsupported(format!("the tree does not reduce {dtype} with {op}: {reason}")));
    }
    if root >= size {
        return Err(Error::Invalid(format!("root {root} is not a rank of this group of {size}")));
    }
    if window::vector_elements(signature, size).is_none() {
        return Err(Error::Invalid("a vector has fewer than 2^63 bytes".into()));
    }
    let in_place = input == Input::InPlace;
    if in_place && collective == Collective::Reduce && rank != root {
        return Err(Error::Invalid("a reduce takes its input in place at the root only".into()));
    }
    if in_place && collective == Collective::Bcast {
        return Err(Error::Invalid("a bcast has one buffer; in place means nothing there".into()));
    }
    Ok(())
}

/// The error of an operation without a buffer that this rank needs.
pub(crate) fn lacks_buffer(collective: Collective) -> Error {
    Error::Invalid(format!("{collective}: a buffer is null that this rank needs"))
}
