//! A subset of the job's ranks, and the collectives over it.

use std::collections::TryReserveError;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trib_proto::window;
use trib_wire::{Collective, DataType, GroupName, RankList, ReduceOp, Signature};

use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::{GroupState, Purpose};
use crate::memory::{Input, Memory};
use crate::operation;
use crate::posting::{Part, Posting};
use crate::request::Request;

/// A group of which this process is a member. Dropping it leaves the group, and operations still
/// outstanding fail.
///
/// Members post the operations of one group in the same order. The methods that take slices wait
/// for the outcome; [`Group::start`] and [`Group::run`] take addresses.
pub struct Group {
    shared: Arc<Shared>,
    state: Arc<GroupState>,
    left: AtomicBool,
}

impl Group {
    /// Starts to make a group of `members`, among which this process has `rank`. The request ends
    /// when the group is ready.
    pub(crate) fn start_named(
        shared: &Arc<Shared>,
        rank: u32,
        members: RankList,
        tag: u64,
        name: GroupName,
    ) -> Result<(Group, Request), Error> {
        Group::started(shared, shared.create_group(Purpose::Operations, rank, members, tag, name)?)
    }

    /// The same for a group that only shows that all its members are there.
    pub(crate) fn start_meeting(
        shared: &Arc<Shared>,
        rank: u32,
        members: RankList,
        tag: u64,
    ) -> Result<(Group, Request), Error> {
        Group::started(shared, shared.create_group(Purpose::Meeting, rank, members, tag, GroupName::new(""))?)
    }

    fn started(shared: &Arc<Shared>, state: Arc<GroupState>) -> Result<(Group, Request), Error> {
        let request = Request::new(shared.clone(), state.ready.clone());
        Ok((Group { shared: shared.clone(), state, left: AtomicBool::new(false) }, request))
    }

    /// This process's rank in the group.
    pub fn rank(&self) -> u32 {
        self.state.rank
    }

    /// Number of members of the group.
    pub fn size(&self) -> u32 {
        self.state.size
    }

    /// The error that broke the group, if one did. A broken group never recovers.
    pub fn error(&self) -> Option<Error> {
        self.state.error().cloned()
    }

    /// Leaves the group as dropping it does, and returns the error.
    pub fn free(self) -> Result<(), Error> {
        self.leave()
    }

    /// Leaves the group while other handles may still exist: operations still outstanding fail, and
    /// so do all that are posted later. A progress callback may call it, even inside a call that
    /// waits for one of the group's operations.
    pub fn leave(&self) -> Result<(), Error> {
        if self.left.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.state.fail(Error::Peer("this rank has left the group".into()));
        self.shared.free_group(&self.state)
    }

    /// Posts an operation; module `operation` has a constructor for the signature of each
    /// collective. If this rank gives nothing, `input` is not read; if it gets nothing, `output` is
    /// not written. A bcast has one buffer: the input at the root, the output elsewhere.
    ///
    /// # Safety
    /// The buffers are as long as the operation says, and are the library's until the request is
    /// done: nothing else writes to the input, and nothing else touches the output. They overlap
    /// only as `Input::InPlace` says.
    pub unsafe fn start(&self, signature: Signature, input: Input, output: *mut u8) -> Result<Request, Error> {
        // SAFETY: the caller's contract.
        let posting = unsafe { self.lay_out(&signature, input, output) }?;
        let completion = self.shared.post(&self.state, posting)?;
        Ok(Request::new(self.shared.clone(), completion))
    }

    /// Posts an operation and waits for its outcome.
    ///
    /// # Safety
    /// The contract of [`Group::start`] holds until the call returns.
    pub unsafe fn run(&self, signature: Signature, input: Input, output: *mut u8) -> Result<(), Error> {
        // SAFETY: the caller's contract.
        let posting = unsafe { self.lay_out(&signature, input, output) }?;
        self.shared.run(&self.state, posting)
    }

    /// Waits until every member has called it.
    pub fn barrier(&self) -> Result<(), Error> {
        self.shared.run(&self.state, Posting::Whole(operation::barrier(), Memory::none()))
    }

    /// Reduces the vectors of all members into `output` on every member. Without `input` the vector
    /// is taken from `output`.
    pub fn allreduce(
        &self,
        input: Option<&[u8]>,
        output: &mut [u8],
        dtype: DataType,
        op: ReduceOp,
    ) -> Result<(), Error> {
        let count = elements(output.len(), dtype)?;
        same_len(input, output.len())?;
        // SAFETY: both slices have the length of the vector and are borrowed until the call
        // returns.
        unsafe { self.run(operation::allreduce(count, dtype, op), from_slice(input), output.as_mut_ptr()) }
    }

    /// Reduces the vectors of all members into `output` at `root`; elsewhere `output` stays as it
    /// is and may be empty. Without `input`, which is allowed at the root only, the vector is taken
    /// from `output`.
    pub fn reduce(
        &self,
        input: Option<&[u8]>,
        output: &mut [u8],
        dtype: DataType,
        op: ReduceOp,
        root: u32,
    ) -> Result<(), Error> {
        let len = input.map_or(output.len(), <[u8]>::len);
        let count = elements(len, dtype)?;
        if self.rank() == root {
            same_len(input, output.len())?;
        }
        // SAFETY: as above; only the root's output is written to.
        unsafe { self.run(operation::reduce(count, dtype, op, root), from_slice(input), output.as_mut_ptr()) }
    }

    /// Copies the root's `buffer` to all members.
    pub fn bcast(&self, buffer: &mut [u8], root: u32) -> Result<(), Error> {
        let start = buffer.as_mut_ptr();
        let count = buffer.len() as u64;
        // SAFETY: the root's buffer is only read, the others' only written to; it is borrowed until
        // the call returns.
        unsafe { self.run(operation::bcast(count, root), Input::At(start), start) }
    }

    /// Reduces the vectors of all members, which have `size` blocks each. `output` takes this
    /// rank's block.
    pub fn reduce_scatter(&self, input: &[u8], output: &mut [u8], dtype: DataType, op: ReduceOp) -> Result<(), Error> {
        let count = elements(output.len(), dtype)?;
        same_len(Some(input), output.len() * self.size() as usize)?;
        let signature = operation::reduce_scatter(count, dtype, op);
        // SAFETY: the input holds `size` blocks, the output one; both are borrowed until the call
        // returns.
        unsafe { self.run(signature, Input::At(input.as_ptr()), output.as_mut_ptr()) }
    }

    /// Gathers `input` of every member into `output`, in the order of the ranks.
    pub fn allgather(&self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        same_len(Some(output), input.len() * self.size() as usize)?;
        let signature = operation::allgather(input.len() as u64);
        // SAFETY: the output holds `size` blocks of the input's length; both are borrowed until the
        // call returns.
        unsafe { self.run(signature, Input::At(input.as_ptr()), output.as_mut_ptr()) }
    }

    /// # Safety
    /// The contract of [`Group::start`].
    unsafe fn lay_out(&self, signature: &Signature, input: Input, output: *mut u8) -> Result<Posting, Error> {
        let Signature { collective, dtype, op, root, .. } = *signature;
        let (rank, size) = (self.rank(), self.size());
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
        let checked = |memory: Result<Memory, TryReserveError>| -> Result<Memory, Error> {
            let memory = memory
                .map_err(|cause| Error::Memory(format!("no memory for the blocks of a {collective}: {cause}")))?;
            if memory.lacks_buffer() {
                return Err(Error::Invalid(format!("{collective}: a buffer is null that this rank needs")));
            }
            Ok(memory)
        };
        let lanes = self.shared.lanes();
        if !lanes.cut(signature, size) {
            return Ok(Posting::Whole(*signature, checked(Memory::new(signature, size, rank, input, output))?));
        }
        // All parts are laid out before the first is posted, because a part's result may come to
        // lie over another part's input.
        let part = |part: Range<u64>| -> Result<Part, Error> {
            // SAFETY: the caller's contract.
            let memory = checked(unsafe { Memory::part(signature, &part, (size, rank), input, output) })?;
            Ok(Part { signature: Signature { count: part.end - part.start, ..*signature }, memory })
        };
        let parts: Result<_, Error> = lanes.parts(signature.count).map(part).collect();
        Ok(Posting::Cut(*signature, parts?))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // After finalize there is nothing to leave, and in a forked child nothing may be touched.
        // Other calls report both.
        let _ = self.leave();
    }
}

fn from_slice(input: Option<&[u8]>) -> Input {
    input.map_or(Input::InPlace, |input| Input::At(input.as_ptr()))
}

fn elements(len: usize, dtype: DataType) -> Result<u64, Error> {
    if !len.is_multiple_of(dtype.size()) {
        return Err(Error::Invalid(format!("{len} bytes are not a whole number of {dtype} elements")));
    }
    Ok((len / dtype.size()) as u64)
}

fn same_len(input: Option<&[u8]>, len: usize) -> Result<(), Error> {
    match input {
        Some(input) if input.len() != len => {
            Err(Error::Invalid(format!("the input has {} bytes where the output asks for {len}", input.len())))
        }
        _ => Ok(()),
    }
}
