//! Section "Collectives".
//!
//! ```text
//!   spec --> Plan: the client library's operations, our buffers where the caller's cannot be used
//!              |--> run    blocking: waits, empties the buffers, returns the outcome
//!              `--> post   a request with the same in it
//! ```

use std::ffi::{c_int, c_void};

use smallvec::SmallVec;
use trib_client::{DataType, Input, ReduceOp, Scalar, Signature, operation};

use crate::abi::{BcastSpec, DataDesc, GatherSpec, MEM_LAST, ReduceSpec};
use crate::boundary::{given, guard, writable};
use crate::comm::{COMMS, Comm};
use crate::descriptor::Region;
use crate::error::{ENOMEM, Failure};
use crate::request;
use crate::window::Window;

/// One operation of the client library.
#[derive(Clone, Copy)]
struct Step {
    signature: Signature,
    input: Input,
    output: *mut u8,
}

/// Bytes that are copied to the caller's memory when the operation is done.
pub struct Landing {
    pub bytes: Vec<u8>,
    into: Region,
}

impl Landing {
    /// Copies them there.
    pub fn land(&self) -> Result<(), Failure> {
        // SAFETY: the caller's buffers are the library's until the request is done, and the request
        // ends after this copy.
        unsafe { self.into.scatter(&self.bytes) }
    }
}

/// A collective, ready to be posted.
#[derive(Default)]
struct Plan {
    steps: SmallVec<[Step; 1]>,
    input: Option<Vec<u8>>,
    output: Option<Landing>,
}

/// Whether a call waits for the end of its operation. If it does not, the caller may take a small
/// buffer away before that end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Yes,
    No,
}

impl Plan {
    fn of(step: Step) -> Plan {
        Plan { steps: SmallVec::from_elem(step, 1), ..Plan::default() }
    }

    /// An address at which the client library may read this rank's bytes.
    ///
    /// # Safety
    /// The region is readable.
    unsafe fn readable(&mut self, comm: &Comm, region: &Region, must_copy: bool) -> Result<*const u8, Failure> {
        if let Some(start) = region.direct().filter(|_| !must_copy) {
            return Ok(start);
        }
        let mut bytes = comm.shared.buffer();
        bytes.try_reserve(region.len()).map_err(no_memory)?;
        // SAFETY: the caller's contract.
        unsafe { region.gather(&mut bytes) }?;
        Ok(self.input.insert(bytes).as_ptr())
    }

    /// An address to which the client library may write the result.
    fn writable(&mut self, comm: &Comm, region: Region) -> Result<*mut u8, Failure> {
        if let Some(start) = region.direct() {
            return Ok(start);
        }
        let mut bytes = comm.shared.buffer();
        bytes.try_reserve(region.len()).map_err(no_memory)?;
        bytes.resize(region.len(), 0);
        Ok(self.output.insert(Landing { bytes, into: region }).bytes.as_mut_ptr())
    }

    fn run(self, comm: &Comm) -> Result<(), Failure> {
        if let ([step], None, None) = (&self.steps[..], &self.input, &self.output) {
            // SAFETY: the callers of the exported functions keep the contract on the buffers.
            let ran = unsafe { comm.group.run(step.signature, step.input, step.output) };
            return ran.map_err(Failure::from).inspect_err(|failure| comm.give_up_after(failure));
        }
        let begun = self.start(comm).inspect_err(|failure| comm.give_up_after(failure));
        let (mut request, failed) = request::wait_for_parts(begun?);
        let ended = match failed {
            Some(error) => Err(error.into()),
            None => request.land(),
        };
        request::retire(request);
        ended
    }

    /// Posts all steps. If one fails, those that were posted before it go on by themselves, with
    /// the buffers that they use.
    fn start(self, comm: &Comm) -> Result<request::Entry, Failure> {
        let Plan { steps, input, output } = self;
        let mut request = request::begin(&comm.shared, input, output)?;
        for step in steps {
            // SAFETY: the callers of the exported functions keep the contract on their buffers;
            // ours live as long as the request.
            match unsafe { comm.group.start(step.signature, step.input, step.output) } {
                Ok(part) => request.add(part),
                Err(error) => {
                    request::retire(request);
                    return Err(error.into());
                }
            }
        }
        Ok(request)
    }
}

/// # Safety
/// The caller keeps the header's contract on the buffers until the call returns.
unsafe fn run(what: &str, comm: *mut c_void, plan: impl FnOnce(&Comm) -> Result<Plan, Failure>) -> c_int {
    guard(what, || {
        let comm = COMMS.get(comm).ok_or_else(no_group)?;
        plan(&comm).inspect_err(|failure| comm.give_up_after(failure))?.run(&comm)
    })
}

/// # Safety
/// The caller keeps the header's contract on the buffers until the request is done; `request`
/// points to a pointer.
unsafe fn post(
    what: &str,
    comm: *mut c_void,
    request: *mut *mut c_void,
    plan: impl FnOnce(&Comm) -> Result<Plan, Failure>,
) -> c_int {
    guard(what, || {
        writable(request, "request")?;
        let comm = COMMS.get(comm).ok_or_else(no_group)?;
        comm.shared.tidy();
        let begin = || plan(&comm)?.start(&comm);
        let posted = begin().inspect_err(|failure| {
            comm.give_up_after(failure);
            // Some clients look at no code here, and go on as if the operation were over.
            if comm.group.error().is_some() {
                comm.shared.end_process("an operation could not be posted, and its buffers stay as they are", failure);
            }
        })?;
        // SAFETY: checked above.
        unsafe { request.write(posted.handle()) };
        Ok(())
    })
}

unsafe fn allreduce(comm: &Comm, spec: &ReduceSpec, waits: Waits) -> Result<Plan, Failure> {
    let (dtype, op) = reduction(spec)?;
    let len = bytes(spec.length, dtype)?;
    let signature = operation::allreduce(spec.length as u64, dtype, op);
    // SAFETY: the caller's contract.
    unsafe { exchange(comm, signature, len, spec, waits) }
}

unsafe fn reduce(comm: &Comm, spec: &ReduceSpec, waits: Waits) -> Result<Plan, Failure> {
    let (dtype, op) = reduction(spec)?;
    let len = bytes(spec.length, dtype)?;
    let root = root(comm, spec.root)?;
    let signature = operation::reduce(spec.length as u64, dtype, op, root);
    if root == comm.group.rank() {
        // SAFETY: the caller's contract.
        return unsafe { exchange(comm, signature, len, spec, waits) };
    }
    let mut plan = Plan::default();
    if len == 0 {
        return Ok(Plan::of(Step { signature, input: Input::At(core::ptr::null()), output: core::ptr::null_mut() }));
    }
    // SAFETY: as above; only the root gives a buffer for the result.
    let start = unsafe {
        let from = region(comm, &spec.sbuf_desc, len, "sbuf_desc")?;
        plan.readable(comm, &from, waits == Waits::No && from.may_vanish())?
    };
    plan.steps.push(Step { signature, input: Input::At(start), output: core::ptr::null_mut() });
    Ok(plan)
}

/// Plans a collective that takes a vector and gives one of the same length.
unsafe fn exchange(
    comm: &Comm,
    signature: Signature,
    len: usize,
    spec: &ReduceSpec,
    waits: Waits,
) -> Result<Plan, Failure> {
    if len == 0 {
        return Ok(Plan::of(Step { signature, input: Input::At(core::ptr::null()), output: core::ptr::null_mut() }));
    }
    let mut plan = Plan::default();
    // SAFETY: the caller's contract.
    let (from, to) =
        unsafe { (region(comm, &spec.sbuf_desc, len, "sbuf_desc")?, region(comm, &spec.rbuf_desc, len, "rbuf_desc")?) };
    let is_in_place = from.direct().is_some() && from.direct() == to.direct();
    let overlaps = to.direct().is_some_and(|start| from.overlaps(start, len));
    let input = if is_in_place {
        Input::InPlace
    } else {
        // SAFETY: as above.
        Input::At(unsafe { plan.readable(comm, &from, overlaps || (waits == Waits::No && from.may_vanish())) }?)
    };
    let output = plan.writable(comm, to)?;
    plan.steps.push(Step { signature, input, output });
    Ok(plan)
}

unsafe fn bcast(comm: &Comm, spec: &BcastSpec, waits: Waits) -> Result<Plan, Failure> {
    let root = root(comm, spec.root)?;
    let signature = operation::bcast(length(spec.size)? as u64, root);
    if spec.size == 0 {
        return Ok(Plan::of(Step { signature, input: Input::At(core::ptr::null()), output: core::ptr::null_mut() }));
    }
    let mut plan = Plan::default();
    // SAFETY: the caller's contract.
    let region = unsafe { region(comm, &spec.buf_desc, spec.size, "buf_desc") }?;
    let step = if root == comm.group.rank() {
        let must_copy = waits == Waits::No && region.may_vanish();
        // SAFETY: as above.
        let start = unsafe { plan.readable(comm, &region, must_copy) }?;
        Step { signature, input: Input::At(start), output: start.cast_mut() }
    } else {
        let start = plan.writable(comm, region)?;
        Step { signature, input: Input::At(start), output: start }
    };
    plan.steps.push(step);
    Ok(plan)
}

unsafe fn reduce_scatter(comm: &Comm, spec: &ReduceSpec, waits: Waits) -> Result<Plan, Failure> {
    let (dtype, op) = reduction(spec)?;
    let (rank, size) = (comm.group.rank(), comm.group.size());
    let (window_len, block) = (described(&spec.sbuf_desc)?, described(&spec.rbuf_desc)?);
    let window = Window::new(spec.offset, window_len, block, size, dtype.size())?;
    if window_len == 0 {
        return Ok(nothing());
    }
    let mut plan = Plan::default();
    let own = window.pieces().find(|piece| piece.rank == rank).map_or(0, |piece| piece.len);
    // SAFETY: the caller's contract. Of the receive buffer only this rank's own part of the window
    // counts.
    let (from, to) = unsafe {
        (region(comm, &spec.sbuf_desc, window_len, "sbuf_desc")?, region(comm, &spec.rbuf_desc, own, "rbuf_desc")?)
    };
    let is_in_place = window.is_whole() && from.direct().is_some() && from.direct() == to.direct();
    let overlaps = own > 0 && to.direct().is_some_and(|start| from.overlaps(start, own));
    let must_copy = overlaps || (waits == Waits::No && from.may_vanish());
    if is_in_place {
        let signature = operation::reduce_scatter((block / dtype.size()) as u64, dtype, op);
        return Ok(Plan::of(Step { signature, input: Input::InPlace, output: plan.writable(comm, to)? }));
    }
    // SAFETY: as above.
    let start = unsafe { plan.readable(comm, &from, must_copy) }?;
    let output = plan.writable(comm, to)?;
    if window.is_whole() {
        let signature = operation::reduce_scatter((block / dtype.size()) as u64, dtype, op);
        plan.steps.push(Step { signature, input: Input::At(start), output });
        return Ok(plan);
    }
    plan.steps.extend(window.pieces().map(|piece| {
        let signature = operation::reduce((piece.len / dtype.size()) as u64, dtype, op, piece.rank);
        let input = Input::At(start.wrapping_add(piece.at));
        Step { signature, input, output: if piece.rank == rank { output } else { core::ptr::null_mut() } }
    }));
    Ok(plan)
}

unsafe fn allgather(comm: &Comm, spec: &GatherSpec, waits: Waits) -> Result<Plan, Failure> {
    let (rank, size) = (comm.group.rank(), comm.group.size());
    let (block, window_len) = (described(&spec.sbuf_desc)?, described(&spec.rbuf_desc)?);
    let window = Window::new(spec.offset, window_len, block, size, 1)?;
    if window_len == 0 {
        return Ok(nothing());
    }
    let mut plan = Plan::default();
    let own = window.pieces().find(|piece| piece.rank == rank);
    let own_len = own.map_or(0, |piece| piece.len);
    // NCCL's plugin leaves the types of memory as its stack was, so any of them may be wrong.
    let [sent, received] = [spec.sbuf_desc, spec.rbuf_desc].map(|desc| DataDesc { mem_type: MEM_LAST, ..desc });
    // SAFETY: the caller's contract. Of the send buffer only this rank's own part of the window
    // counts.
    let (from, to) =
        unsafe { (region(comm, &sent, own_len, "sbuf_desc")?, region(comm, &received, window_len, "rbuf_desc")?) };
    let own_output = own.and_then(|piece| Some(to.direct()?.wrapping_add(piece.at)));
    let is_in_place = own_output.is_some() && from.direct() == own_output;
    let overlaps = to.direct().is_some_and(|start| from.overlaps(start, window_len));
    let must_copy = !is_in_place && (overlaps || (waits == Waits::No && from.may_vanish()));
    // SAFETY: as above.
    let start = unsafe { plan.readable(comm, &from, must_copy) }?;
    let output = plan.writable(comm, to)?;
    if window.is_whole() {
        let input = if is_in_place { Input::InPlace } else { Input::At(start) };
        plan.steps.push(Step { signature: operation::allgather(block as u64), input, output });
        return Ok(plan);
    }
    if let Some(piece) = own.filter(|_| !is_in_place) {
        // This rank already has what it sends, and the output is the library's until the call is
        // done. SAFETY: both ends have the piece's length and belong to different buffers.
        unsafe { core::ptr::copy_nonoverlapping(start, output.wrapping_add(piece.at), piece.len) };
    }
    plan.steps.extend(window.pieces().map(|piece| {
        let at = output.wrapping_add(piece.at);
        let input = if piece.rank == rank { start } else { at.cast_const() };
        Step { signature: operation::bcast(piece.len as u64, piece.rank), input: Input::At(input), output: at }
    }));
    Ok(plan)
}

/// The memory that a descriptor names.
///
/// # Safety
/// As for [`Region::read`].
unsafe fn region(comm: &Comm, desc: &DataDesc, need: usize, name: &str) -> Result<Region, Failure> {
    // SAFETY: the caller's contract.
    unsafe { Region::read(desc, need, name, comm.shared.takes_gpu_memory) }
}

/// A plan that takes its place in the order of operations and does nothing else.
fn nothing() -> Plan {
    let signature = operation::bcast(0, 0);
    Plan::of(Step { signature, input: Input::At(core::ptr::null()), output: core::ptr::null_mut() })
}

/// The datatype and the operator of a spec. Tags are carried as bits: where values are equal,
/// floating-point tags are compared as unsigned numbers of the same width, which for tags above
/// zero is the same order.
fn reduction(spec: &ReduceSpec) -> Result<(DataType, ReduceOp), Failure> {
    let unknown = |what: &str, code: c_int| Failure::invalid(format!("there is no {what} with the number {code}"));
    let scalar = |code: c_int| u8::try_from(code).ok().and_then(Scalar::from_code);
    let op = u8::try_from(spec.op).ok().and_then(ReduceOp::from_code).ok_or_else(|| unknown("operator", spec.op))?;
    let value = scalar(spec.dtype).ok_or_else(|| unknown("datatype", spec.dtype))?;
    let dtype = if matches!(op, ReduceOp::MaxLoc | ReduceOp::MinLoc) {
        let tag = scalar(spec.tag_dtype)
            .ok_or_else(|| Failure::unsupported(format!("there is no tag_dtype with the number {}", spec.tag_dtype)))?;
        let tag = match tag {
            Scalar::F16 | Scalar::BF16 => Scalar::U16,
            Scalar::F32 => Scalar::U32,
            Scalar::F64 => Scalar::U64,
            integer => integer,
        };
        DataType::pair(value, tag).ok_or_else(|| unknown("integer type", spec.tag_dtype))?
    } else {
        DataType::number(value)
    };
    match op.refusal(dtype.class()) {
        None => Ok((dtype, op)),
        Some(reason) => Err(Failure::unsupported(format!("the tree does not reduce {dtype} with {op}: {reason}"))),
    }
}

fn root(comm: &Comm, root: c_int) -> Result<u32, Failure> {
    let size = comm.group.size();
    let known = u32::try_from(root).ok().filter(|root| *root < size);
    known.ok_or_else(|| Failure::invalid(format!("root {root} is not a rank of this group of {size}")))
}

/// The length of a descriptor in bytes, as the descriptor states it.
fn described(desc: &DataDesc) -> Result<usize, Failure> {
    if desc.kind != crate::abi::DATA_BUFFER {
        return Err(Failure::unsupported("windows are of one buffer, not of a list of pieces"));
    }
    // SAFETY: any bits are valid values of the fields of this variant.
    length(unsafe { desc.data.buffer }.length)
}

fn bytes(count: usize, dtype: DataType) -> Result<usize, Failure> {
    let bytes = count.checked_mul(dtype.size());
    length(bytes.ok_or_else(|| Failure::invalid(format!("{count} elements are more than memory has")))?)
}

fn length(bytes: usize) -> Result<usize, Failure> {
    if bytes > isize::MAX as usize {
        return Err(Failure::invalid(format!("{bytes} bytes are more than memory has")));
    }
    Ok(bytes)
}

fn no_group() -> Failure {
    Failure::invalid("there is no such group")
}

fn no_memory(cause: std::collections::TryReserveError) -> Failure {
    Failure::new(ENOMEM, format!("no memory for a buffer: {cause}"))
}

/// The operation is done when every member has come.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_do_barrier(comm: *mut c_void) -> c_int {
    // SAFETY: no buffers.
    unsafe { run("sharp_coll_do_barrier", comm, |_| Ok(barrier())) }
}

/// Starts a barrier and gives a request for it.
///
/// # Safety
/// `request` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharp_coll_do_barrier_nb(comm: *mut c_void, request: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { post("sharp_coll_do_barrier_nb", comm, request, |_| Ok(barrier())) }
}

fn barrier() -> Plan {
    Plan::of(Step {
        signature: operation::barrier(),
        input: Input::At(core::ptr::null()),
        output: core::ptr::null_mut(),
    })
}

/// The blocking and the non-blocking form of a collective with a spec.
macro_rules! collective {
    ($blocking:ident, $posting:ident, $plan:ident, $spec:ty) => {
        /// Waits for the outcome.
        ///
        /// # Safety
        /// `spec` points to a spec whose buffers are as the header says until the call returns.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $blocking(comm: *mut c_void, spec: *const $spec) -> c_int {
            // SAFETY: the caller's contract.
            unsafe { run(stringify!($blocking), comm, |comm| $plan(comm, given(spec, "spec")?, Waits::Yes)) }
        }

        /// Posts the same operation as a request; `spec` is not needed any more when the call
        /// returns.
        ///
        /// # Safety
        /// The buffers are as above until the request is done; `request` points to a pointer.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $posting(comm: *mut c_void, spec: *const $spec, request: *mut *mut c_void) -> c_int {
            // SAFETY: the caller's contract.
            unsafe { post(stringify!($posting), comm, request, |comm| $plan(comm, given(spec, "spec")?, Waits::No)) }
        }
    };
}

collective!(sharp_coll_do_allreduce, sharp_coll_do_allreduce_nb, allreduce, ReduceSpec);
collective!(sharp_coll_do_reduce, sharp_coll_do_reduce_nb, reduce, ReduceSpec);
collective!(sharp_coll_do_bcast, sharp_coll_do_bcast_nb, bcast, BcastSpec);
collective!(sharp_coll_do_reduce_scatter, sharp_coll_do_reduce_scatter_nb, reduce_scatter, ReduceSpec);
collective!(sharp_coll_do_allgather, sharp_coll_do_allgather_nb, allgather, GatherSpec);
