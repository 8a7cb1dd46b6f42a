//! A subset of the job's ranks, and the collectives over it.

use std::sync::{Arc, OnceLock};

use trib_proto::leaf::GroupId;
use trib_proto::{Path, window};
use trib_wire::{Collective, DataType, ReduceOp, Signature};

use crate::engine::Shared;
use crate::error::Error;
use crate::memory::{Input, Memory};
use crate::operation;
use crate::request::{Completion, Request};

/// A group of this rank. Dropping it leaves the group; operations still outstanding fail then.
///
/// Members post the operations of one group in the same order. The methods that take slices wait for the outcome; for the
/// others see [`Group::start`] and [`Group::run`].
pub struct Group {
    shared: Arc<Shared>,
    id: GroupId,
    state: Arc<GroupState>,
    left: bool,
}

/// What the engine tells about a group.
pub(crate) struct GroupState {
    rank: u32,
    size: u32,
    /// The group exists everywhere, or never will.
    pub(crate) ready: Arc<Completion>,
    error: OnceLock<Error>,
}

impl GroupState {
    pub(crate) fn new(rank: u32, size: u32) -> GroupState {
        GroupState { rank, size, ready: Arc::default(), error: OnceLock::new() }
    }

    /// The group works no more; the first error counts.
    pub(crate) fn fail(&self, error: Error) {
        let _ = self.error.set(error);
    }
}

impl Group {
    pub(crate) fn new(shared: Arc<Shared>, id: GroupId, state: Arc<GroupState>) -> Group {
        Group { shared, id, state, left: false }
    }

    /// This process's rank in the group.
    pub fn rank(&self) -> u32 {
        self.state.rank
    }

    /// Members of the group.
    pub fn size(&self) -> u32 {
        self.state.size
    }

    /// The error that broke the group, if one did. A broken group never recovers.
    pub fn error(&self) -> Option<Error> {
        self.state.error.get().cloned()
    }

    /// Leaves the group; as dropping it, with the error.
    pub fn free(mut self) -> Result<(), Error> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.left, true) {
            return Ok(());
        }
        self.shared.free_group(self.id)
    }

    /// Posts an operation; `operation` has a constructor for the signature of each collective. Where this rank gives or gets
    /// nothing its buffer is not looked at. The input of a bcast's root, and the output of the others, is the buffer.
    ///
    /// # Safety
    /// The buffers are as long as the operation says, and are the library's until the request is done: nobody writes to the
    /// input, nobody touches the output. They overlap only as `Input::InPlace` says.
    pub unsafe fn start(&self, signature: Signature, input: Input, output: *mut u8) -> Result<Request, Error> {
        let memory = self.lay_out(&signature, input, output)?;
        let completion = self.shared.post(self.id, signature, memory)?;
        Ok(Request::new(self.shared.clone(), completion))
    }

    /// Posts an operation and waits for its outcome.
    ///
    /// # Safety
    /// As for [`Group::start`], until the call returns.
    pub unsafe fn run(&self, signature: Signature, input: Input, output: *mut u8) -> Result<(), Error> {
        let memory = self.lay_out(&signature, input, output)?;
        self.shared.run(self.id, signature, memory)
    }

    /// Waits until every member has come here.
    pub fn barrier(&self) -> Result<(), Error> {
        self.shared.run(self.id, operation::barrier(), Memory::none())
    }

    /// Reduces the vectors of all members into `output`, everywhere. Without `input` the vector is taken from `output`.
    pub fn allreduce(
        &self,
        input: Option<&[u8]>,
        output: &mut [u8],
        dtype: DataType,
        op: ReduceOp,
    ) -> Result<(), Error> {
        let count = elements(output.len(), dtype)?;
        same_len(input, output.len())?;
        // SAFETY: both slices have the length of the vector and are borrowed until the call returns.
        unsafe { self.run(operation::allreduce(count, dtype, op), from_slice(input), output.as_mut_ptr()) }
    }

    /// Reduces the vectors of all members into `output` at `root`; elsewhere `output` stays untouched and may be empty.
    /// Without `input`, allowed at the root only, the vector is taken from `output`.
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

    /// Copies `buffer` of `root` to all.
    pub fn bcast(&self, buffer: &mut [u8], root: u32) -> Result<(), Error> {
        let start = buffer.as_mut_ptr();
        let count = buffer.len() as u64;
        // SAFETY: the root's buffer is only read, the others' only written to; it is borrowed until the call returns.
        unsafe { self.run(operation::bcast(count, root), Input::At(start), start) }
    }

    /// Reduces the vectors of all members, of `size` blocks each; `output` takes the block of this rank.
    pub fn reduce_scatter(&self, input: &[u8], output: &mut [u8], dtype: DataType, op: ReduceOp) -> Result<(), Error> {
        let count = elements(output.len(), dtype)?;
        same_len(Some(input), output.len() * self.size() as usize)?;
        let signature = operation::reduce_scatter(count, dtype, op);
        // SAFETY: the input holds `size` blocks, the output one; both are borrowed until the call returns.
        unsafe { self.run(signature, Input::At(input.as_ptr()), output.as_mut_ptr()) }
    }

    /// Gathers `input` of every member into `output`, in the order of the ranks.
    pub fn allgather(&self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        same_len(Some(output), input.len() * self.size() as usize)?;
        let signature = operation::allgather(input.len() as u64);
        // SAFETY: the output holds `size` blocks of the input's length; both are borrowed until the call returns.
        unsafe { self.run(signature, Input::At(input.as_ptr()), output.as_mut_ptr()) }
    }

    /// What the library keeps of the last results on one path for members that may still lack it; empty when all have it.
    pub fn last_result_tail(&self, path: Path) -> Result<Vec<u8>, Error> {
        self.shared.tail(self.id, path)
    }

    fn lay_out(&self, signature: &Signature, input: Input, output: *mut u8) -> Result<Memory, Error> {
        let Signature { collective, dtype, op, root, .. } = *signature;
        let (rank, size) = (self.rank(), self.size());
        if let Some(reason) = op.refusal(dtype.class()) {
            return Err(Error::Unsupported(format!("the tree does not reduce {dtype} with {op}: {reason}")));
        }
        if root >= size {
            return Err(Error::Invalid(format!("root {root} is not a rank of this group of {size}")));
        }
        if window::vector_len(signature, size).is_none() {
            return Err(Error::Invalid("a vector has fewer than 2^63 bytes".into()));
        }
        let in_place = input == Input::InPlace;
        if in_place && collective == Collective::Reduce && rank != root {
            return Err(Error::Invalid("a reduce takes its input in place at the root only".into()));
        }
        if in_place && collective == Collective::Bcast {
            return Err(Error::Invalid("a bcast has one buffer; in place means nothing there".into()));
        }
        let memory = Memory::new(signature, size, rank, input, output)
            .map_err(|cause| Error::Memory(format!("no memory for the block of a reduce-scatter in place: {cause}")))?;
        if memory.lacks_buffer() {
            return Err(Error::Invalid(format!("{collective}: a buffer is null that this rank needs")));
        }
        Ok(memory)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // After finalize there is nothing to leave, in a forked child nothing may be touched; either is said elsewhere.
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
