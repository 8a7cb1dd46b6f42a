//! Section "Collectives": each of them as a blocking call and, with `_nb`, as a request.

use std::ffi::{c_int, c_void};

use trib_client::{DataType, Error, Group, Input, ReduceOp, Request, Signature, operation};

use crate::boundary::{given, guard, put, writable};
use crate::group::TribGroup;
use crate::request::TribRequest;

/// The buffers of a call.
#[derive(Clone, Copy)]
pub(crate) struct Buffers {
    pub(crate) input: *const c_void,
    pub(crate) output: *mut c_void,
}

impl Buffers {
    const NONE: Buffers = Buffers { input: core::ptr::null(), output: core::ptr::null_mut() };

    pub(crate) fn input(self) -> Input {
        // This is TRIB_IN_PLACE of the header.
        if self.input.addr() == usize::MAX { Input::InPlace } else { Input::At(self.input.cast()) }
    }
}

/// # Safety
/// The group is live; until the call returns, the buffers are as long as the operation says.
unsafe fn run(g: *mut TribGroup, buffers: Buffers, signature: impl FnOnce() -> Result<Signature, Error>) -> c_int {
    guard(|| {
        // SAFETY: the contract above.
        unsafe {
            let group = given(g, "g")?;
            group.group.run(signature()?, buffers.input(), buffers.output.cast())
        }
    })
}

/// # Safety
/// The contract of `run` holds until the request is done; `request` points to a pointer.
unsafe fn start(
    g: *mut TribGroup,
    buffers: Buffers,
    request: *mut *mut TribRequest,
    signature: impl FnOnce() -> Result<Signature, Error>,
) -> c_int {
    // SAFETY: the contract above.
    unsafe { begin(g, request, |group| group.start(signature()?, buffers.input(), buffers.output.cast())) }
}

/// Begins an operation and gives the caller its request.
///
/// # Safety
/// The group is live; `request` points to a pointer.
pub(crate) unsafe fn begin(
    g: *mut TribGroup,
    request: *mut *mut TribRequest,
    begin: impl FnOnce(&Group) -> Result<Request, Error>,
) -> c_int {
    guard(|| {
        writable(request, "request")?;
        // SAFETY: the contract above.
        unsafe { put(request, Box::into_raw(Box::new(TribRequest { request: begin(&given(g, "g")?.group)? }))) };
        Ok(())
    })
}

/// The datatype and the operator with these codes.
pub(crate) fn reduction(t: c_int, op: c_int) -> Result<(DataType, ReduceOp), Error> {
    let operator = u8::try_from(op).ok().and_then(ReduceOp::from_code);
    Ok((datatype(t)?, operator.ok_or_else(|| unknown("operator", op))?))
}

/// The datatype with this code.
pub(crate) fn datatype(t: c_int) -> Result<DataType, Error> {
    u8::try_from(t).ok().and_then(DataType::from_code).ok_or_else(|| unknown("datatype", t))
}

fn unknown(what: &str, code: c_int) -> Error {
    Error::Unsupported(format!("there is no {what} with the number {code}"))
}

pub(crate) fn allreduce(count: usize, t: c_int, op: c_int) -> Result<Signature, Error> {
    let (dtype, op) = reduction(t, op)?;
    Ok(operation::allreduce(count as u64, dtype, op))
}

pub(crate) fn reduce(count: usize, t: c_int, op: c_int, root: u32) -> Result<Signature, Error> {
    let (dtype, op) = reduction(t, op)?;
    Ok(operation::reduce(count as u64, dtype, op, root))
}

pub(crate) fn reduce_scatter(count: usize, t: c_int, op: c_int) -> Result<Signature, Error> {
    let (dtype, op) = reduction(t, op)?;
    Ok(operation::reduce_scatter(count as u64, dtype, op))
}

/// Every member gives a vector, every member gets it reduced.
///
/// # Safety
/// The buffers are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_allreduce(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    count: usize,
    t: c_int,
    op: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { run(g, Buffers { input: sbuf, output: rbuf }, || allreduce(count, t, op)) }
}

/// Every member gives a vector, the root gets it reduced.
///
/// # Safety
/// The buffers are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_reduce(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    count: usize,
    t: c_int,
    op: c_int,
    root: u32,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { run(g, Buffers { input: sbuf, output: rbuf }, || reduce(count, t, op, root)) }
}

/// The root's bytes go to all.
///
/// # Safety
/// The buffer is as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_bcast(g: *mut TribGroup, buf: *mut c_void, bytes: usize, root: u32) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { run(g, Buffers { input: buf, output: buf }, || Ok(operation::bcast(bytes as u64, root))) }
}

/// The operation is done when every member has come.
///
/// # Safety
/// The group is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_barrier(g: *mut TribGroup) -> c_int {
    // SAFETY: the caller's contract.
    guard(|| unsafe { given(g, "g") }?.group.barrier())
}

/// Every member gives a block per member and gets its own, reduced.
///
/// # Safety
/// The buffers are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_reduce_scatter(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    count: usize,
    t: c_int,
    op: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { run(g, Buffers { input: sbuf, output: rbuf }, || reduce_scatter(count, t, op)) }
}

/// Every member gives a block and gets all.
///
/// # Safety
/// The buffers are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_allgather(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { run(g, Buffers { input: sbuf, output: rbuf }, || Ok(operation::allgather(bytes as u64))) }
}

/// `trib_allreduce` as a request.
///
/// # Safety
/// The buffers are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_allreduce_nb(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    count: usize,
    t: c_int,
    op: c_int,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { start(g, Buffers { input: sbuf, output: rbuf }, request, || allreduce(count, t, op)) }
}

/// `trib_reduce` as a request.
///
/// # Safety
/// The buffers are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_reduce_nb(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    count: usize,
    t: c_int,
    op: c_int,
    root: u32,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { start(g, Buffers { input: sbuf, output: rbuf }, request, || reduce(count, t, op, root)) }
}

/// `trib_bcast` as a request.
///
/// # Safety
/// The buffer is as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_bcast_nb(
    g: *mut TribGroup,
    buf: *mut c_void,
    bytes: usize,
    root: u32,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { start(g, Buffers { input: buf, output: buf }, request, || Ok(operation::bcast(bytes as u64, root))) }
}

/// `trib_barrier` as a request.
///
/// # Safety
/// The group is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_barrier_nb(g: *mut TribGroup, request: *mut *mut TribRequest) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { start(g, Buffers::NONE, request, || Ok(operation::barrier())) }
}

/// `trib_reduce_scatter` as a request.
///
/// # Safety
/// The buffers are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_reduce_scatter_nb(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    count: usize,
    t: c_int,
    op: c_int,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { start(g, Buffers { input: sbuf, output: rbuf }, request, || reduce_scatter(count, t, op)) }
}

/// `trib_allgather` as a request.
///
/// # Safety
/// The buffers are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_allgather_nb(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    bytes: usize,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { start(g, Buffers { input: sbuf, output: rbuf }, request, || Ok(operation::allgather(bytes as u64))) }
}
