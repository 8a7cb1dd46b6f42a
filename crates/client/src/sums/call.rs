//! A sum that was called: what it is, and where its elements lie.

use std::sync::Arc;

use trib_proto::window;
use trib_wire::Signature;

use super::rows::Rows;
use crate::completion::Completion;
use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::memory::Input;
use crate::posting::{Posting, check, lacks_buffer};

/// Which part of a call of the program's a sum is. What is drawn for an element follows from where
/// it is in that call, so that another cut changes no bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// The number of the call among those of its group whose sums are not taken as they are. All
    /// members count alike.
    pub(crate) number: u64,
    /// The elements of the vector, or of each of its blocks, in the whole call.
    pub(crate) count: u64,
    /// The first element of the part, there.
    pub(crate) first: u64,
}

impl Part {
    /// All of a call that is about to be made.
    pub(crate) fn whole(group: &GroupState, signature: &Signature) -> Part {
        Part { number: group.next_sum(), count: signature.count, first: 0 }
    }
}

/// The call. Its buffers are the library's until it is over.
pub(super) struct Call {
    pub(super) signature: Signature,
    pub(super) rows: Rows,
    pub(super) part: Part,
    input: *const u8,
    output: *mut u8,
    /// Whether this member gets a result.
    pub(super) gets: bool,
}

// SAFETY: the caller gave the buffers to the library until the sum is over; one thread takes it.
unsafe impl Send for Call {}
// SAFETY: as above; only that thread touches the buffers.
unsafe impl Sync for Call {}

impl Call {
    /// Checks a call in a group of `size`, in which this process has `rank`.
    pub(super) fn new(
        signature: Signature,
        part: Part,
        (size, rank): (u32, u32),
        input: Input,
        output: *mut u8,
    ) -> Result<Call, Error> {
        check(&signature, input, (size, rank))?;
        let (given, gotten) = window::shares(&signature, size, rank);
        let start = match input {
            Input::At(start) => start,
            Input::InPlace => output.cast_const(),
        };
        if (!given.is_empty() && start.is_null()) || (!gotten.is_empty() && output.is_null()) {
            return Err(lacks_buffer(signature.collective));
        }
        let rows = Rows::new(&signature, size);
        Ok(Call { signature, rows, part, input: start, output, gets: !gotten.is_empty() })
    }

    /// What this member gives of a chunk in a row.
    pub(super) fn given(&self, row: usize, number: usize) -> &[u8] {
        let (from, len) = self.rows.span(row, number);
        // SAFETY: the input is as long as the call says and the library's until the sum is over;
        // what is written of it in place are chunks that have been read.
        unsafe { core::slice::from_raw_parts(self.input.add(from), len) }
    }

    /// Where the result of a chunk comes to, of which this member gets one.
    #[expect(clippy::mut_from_ref, reason = "the output is the program's memory and no field")]
    pub(super) fn result(&self, number: usize) -> &mut [u8] {
        debug_assert!(self.gets);
        // The result of a reduce-scatter is one row.
        let (from, len) = self.rows.span(0, number);
        // SAFETY: the output is as long as the call says and the library's until the sum is over;
        // one thread writes it, a chunk at a time, and what it has of an input in place has been
        // read.
        unsafe { core::slice::from_raw_parts_mut(self.output.add(from), len) }
    }

    /// Posts an operation with this signature that has no elements. A member that has some is told
    /// that another one has none.
    pub(super) fn post_empty(
        &self,
        shared: &Shared,
        group: &GroupState,
        signature: &Signature,
    ) -> Result<Arc<Completion>, Error> {
        post(shared, group, signature, Input::At(self.input), self.output)
    }
}

/// Posts an operation over memory of ours.
pub(super) fn post(
    shared: &Shared,
    group: &GroupState,
    signature: &Signature,
    input: Input,
    output: *mut u8,
) -> Result<Arc<Completion>, Error> {
    // SAFETY: the callers give memory of the length that the signature says, and keep it until the
    // operation is over.
    let posting = unsafe { Posting::lay_out(shared.lanes(), (group.size, group.rank), signature, input, output) }?;
    shared.post(group, posting)
}
