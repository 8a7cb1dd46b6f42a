//! A subset of the job's ranks, and the collectives over it.

use std::sync::{Arc, OnceLock};

use trib_device::UserStream;
use trib_proto::window;
use trib_wire::{DataType, GroupName, RankList, ReduceOp, Signature};

use crate::device::Pipeline;
use crate::engine::Shared;
use crate::error::Error;
use crate::group_state::{GroupState, Purpose};
use crate::memory::{Input, Memory};
use crate::operation;
use crate::posting::{self, Posting};
use crate::request::Request;
use crate::sum_kind::SumKind;
use crate::sums::{Part, Sum};

/// A group of which this process is a member. Dropping it leaves the group, and operations still
/// outstanding fail.
///
/// Members post the operations of one group in the same order. The methods that take slices wait
/// for the outcome; [`Group::start`] and [`Group::run`] take addresses.
pub struct Group {
    shared: Arc<Shared>,
    state: Arc<GroupState>,
    /// What does operations over memory of a GPU, and sums beside the caller, once there was one.
    pipeline: OnceLock<Result<Pipeline, Error>>,
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
        Ok((Group { shared: shared.clone(), state, pipeline: OnceLock::new() }, request))
    }

    /// This process's rank in the group.
    pub fn rank(&self) -> u32 {
        self.state.rank
    }

    /// Number of members of the group.
    pub fn size(&self) -> u32 {
        self.state.size
    }

    /// How the group takes sums of floating-point numbers from now on: in the order of the tree, so
    /// that their bits do not depend on any order, or quantised. All members have to choose the
    /// same between the same operations; ranks that do not are told.
    pub fn set_sums(&self, kind: Option<SumKind>) {
        self.state.set_sums(kind);
    }

    /// How it takes them.
    pub fn sums(&self) -> Option<SumKind> {
        self.state.sums()
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
        self.shared.leave_group(&self.state, Error::Peer("this rank has left the group".into()))
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
        if let Some(sum) = self.as_sum(&signature, input, output)? {
            self.shared.fork.check()?;
            return Ok(Request::taking(self.shared.clone(), self.pipeline()?.take(sum)));
        }
        // SAFETY: the caller's contract.
        let posting = unsafe { self.lay_out(&signature, input, output) }?;
        if let Some(pipeline) = self.behind() {
            return Ok(Request::behind(self.shared.clone(), pipeline.queue(posting)));
        }
        let completion = self.shared.post(&self.state, posting)?;
        Ok(Request::new(self.shared.clone(), completion))
    }

    /// Posts an operation over memory of a GPU, in the order of a stream: its input is what the
    /// program has queued there so far leaves behind, and [`Request::wait_on_stream`] makes a
    /// stream go on when its result is there. All members have to use this call for the operation,
    /// because it is cut into pieces; a buffer that is not the device's is copied as the others
    /// are.
    ///
    /// # Safety
    /// The contract of [`Group::start`]; the stream is alive until the call returns.
    pub unsafe fn start_on_stream(
        &self,
        signature: Signature,
        input: Input,
        output: *mut u8,
        stream: UserStream,
    ) -> Result<Request, Error> {
        posting::check(&signature, input, (self.size(), self.rank()))?;
        if window::vector_elements(&signature, self.size()) == Some(0) {
            // There is nothing to copy, and no address that says which device it is.
            // SAFETY: the caller's contract.
            return unsafe { self.start(signature, input, output) };
        }
        self.shared.fork.check()?;
        // SAFETY: the caller's contract.
        let delivery = unsafe { self.pipeline()?.begin(signature, input, output, stream) }?;
        Ok(Request::on_device(self.shared.clone(), delivery))
    }

    /// Posts an operation and waits for its outcome.
    ///
    /// # Safety
    /// The contract of [`Group::start`] holds until the call returns.
    #[inline]
    pub unsafe fn run(&self, signature: Signature, input: Input, output: *mut u8) -> Result<(), Error> {
        if self.state.sums().is_some() {
            // SAFETY: the caller's contract.
            return unsafe { self.run_where_sums_differ(signature, input, output) };
        }
        // SAFETY: the caller's contract.
        self.run_posting(unsafe { self.lay_out(&signature, input, output) }?)
    }

    /// The same in a group whose sums are taken otherwise than as they are.
    ///
    /// # Safety
    /// As for [`Group::run`].
    #[inline(never)]
    unsafe fn run_where_sums_differ(&self, signature: Signature, input: Input, output: *mut u8) -> Result<(), Error> {
        let Some(sum) = self.as_sum(&signature, input, output)? else {
            // SAFETY: the caller's contract.
            return self.run_posting(unsafe { self.lay_out(&signature, input, output) }?);
        };
        self.shared.fork.check()?;
        match self.behind() {
            Some(pipeline) => pipeline.take(sum).wait(&self.shared, None),
            None => sum.take(&self.shared, &self.state, |completion| self.shared.wait(completion, None)),
        }
    }

    fn run_posting(&self, posting: Posting) -> Result<(), Error> {
        match self.behind() {
            Some(pipeline) => Request::behind(self.shared.clone(), pipeline.queue(posting)).wait(None),
            None => self.shared.run(&self.state, posting),
        }
    }

    /// Waits until every member has called it.
    pub fn barrier(&self) -> Result<(), Error> {
        self.run_posting(Posting::alone(operation::barrier(), Memory::none()))
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

    /// The operation with its memory.
    ///
    /// # Safety
    /// The contract of [`Group::start`].
    unsafe fn lay_out(&self, signature: &Signature, input: Input, output: *mut u8) -> Result<Posting, Error> {
        let shape = (self.size(), self.rank());
        // SAFETY: the caller's contract.
        unsafe { Posting::lay_out(self.shared.lanes(), shape, signature, input, output) }
    }

    /// The operation as a sum that is taken otherwise than as it is, if it is to be one.
    fn as_sum(&self, signature: &Signature, input: Input, output: *mut u8) -> Result<Option<Sum>, Error> {
        match self.state.sums().filter(|kind| kind.concerns(signature, self.size())) {
            None => Ok(None),
            Some(kind) => {
                let part = Part::whole(&self.state, signature);
                let shape = (self.size(), self.rank());
                Sum::new(&self.shared, kind, (*signature, part), shape, input, output).map(Some)
            }
        }
    }

    /// The threads that post for this group, which are started when they are first needed.
    fn pipeline(&self) -> Result<&Pipeline, Error> {
        self.pipeline.get_or_init(|| Pipeline::start(&self.shared, &self.state)).as_ref().map_err(Error::clone)
    }

    /// The threads that post for this group, if they have yet to post something: what comes now
    /// comes behind it.
    fn behind(&self) -> Option<&Pipeline> {
        let pipeline = self.pipeline.get()?.as_ref().ok()?;
        // A child after fork is told so when it posts.
        (pipeline.is_busy() && self.shared.fork.is_home()).then_some(pipeline)
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
