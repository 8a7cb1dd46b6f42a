//! Section "Memory of GPUs": collectives in the order of a stream of the program's.

use std::ffi::{c_int, c_void};

use trib_client::{Error, Signature, UserStream, operation};

use crate::boundary::{given, guard};
use crate::collective::{Buffers, allreduce, begin, reduce, reduce_scatter};
use crate::group::TribGroup;
use crate::request::{TribRequest, limit};

/// # Safety
/// The group and the stream are live; until the request is done, the buffers are as long as the
/// operation says; `request` points to a pointer.
unsafe fn start(
    g: *mut TribGroup,
    buffers: Buffers,
    stream: *mut c_void,
    request: *mut *mut TribRequest,
    signature: impl FnOnce() -> Result<Signature, Error>,
) -> c_int {
    // SAFETY: the contract above.
    unsafe {
        begin(g, request, |group| {
            group.start_on_stream(signature()?, buffers.input(), buffers.output.cast(), UserStream::new(stream))
        })
    }
}

/// `trib_allreduce_nb` over memory of a GPU.
///
/// # Safety
/// The buffers and the stream are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_allreduce_stream_nb(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    count: usize,
    t: c_int,
    op: c_int,
    stream: *mut c_void,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { start(g, Buffers { input: sbuf, output: rbuf }, stream, request, || allreduce(count, t, op)) }
}

/// `trib_reduce_nb` over memory of a GPU.
///
/// # Safety
/// The buffers and the stream are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_reduce_stream_nb(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    count: usize,
    t: c_int,
    op: c_int,
    root: u32,
    stream: *mut c_void,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { start(g, Buffers { input: sbuf, output: rbuf }, stream, request, || reduce(count, t, op, root)) }
}

/// `trib_bcast_nb` over memory of a GPU.
///
/// # Safety
/// The buffers and the stream are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_bcast_stream_nb(
    g: *mut TribGroup,
    buf: *mut c_void,
    bytes: usize,
    root: u32,
    stream: *mut c_void,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        start(g, Buffers { input: buf, output: buf }, stream, request, || Ok(operation::bcast(bytes as u64, root)))
    }
}

/// `trib_reduce_scatter_nb` over memory of a GPU.
///
/// # Safety
/// The buffers and the stream are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_reduce_scatter_stream_nb(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    count: usize,
    t: c_int,
    op: c_int,
    stream: *mut c_void,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { start(g, Buffers { input: sbuf, output: rbuf }, stream, request, || reduce_scatter(count, t, op)) }
}

/// `trib_allgather_nb` over memory of a GPU.
///
/// # Safety
/// The buffers and the stream are as `tributary.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_allgather_stream_nb(
    g: *mut TribGroup,
    sbuf: *const c_void,
    rbuf: *mut c_void,
    bytes: usize,
    stream: *mut c_void,
    request: *mut *mut TribRequest,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        start(g, Buffers { input: sbuf, output: rbuf }, stream, request, || Ok(operation::allgather(bytes as u64)))
    }
}

/// Makes a stream go on when the result of a request is there.
///
/// # Safety
/// `request` is a live request, `stream` a live stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_wait_stream(request: *mut TribRequest, stream: *mut c_void, timeout_ms: c_int) -> c_int {
    guard(|| {
        // SAFETY: the caller's contract.
        unsafe { given(request, "request") }?.request.wait_on_stream(UserStream::new(stream), limit(timeout_ms))
    })
}
