//! What is asked of UCX and takes longer, and what UCX calls when it is over.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Release;

use super::abi::{self, Endpoint, Request, RequestParam, Status};
use super::edge::Edge;
use super::library::Library;

/// A request with this callback, which gets `user_data`.
pub(super) fn request<T>(callback: *const c_void, user_data: *const T, flags: u32) -> RequestParam {
    RequestParam {
        op_attr_mask: abi::OP_FIELD_CALLBACK | abi::OP_FIELD_USER_DATA | abi::OP_FIELD_FLAGS,
        flags,
        request: core::ptr::null_mut(),
        cb: callback,
        datatype: 0,
        user_data: user_data.cast_mut().cast(),
        reply_buffer: core::ptr::null_mut(),
        memory_type: 0,
        recv_info: core::ptr::null_mut(),
        memh: core::ptr::null_mut(),
    }
}

/// A request is one more holder, until its callback is called.
pub(super) fn hold<T>(held: &Arc<T>) {
    core::mem::forget(held.clone());
}

/// # Safety
/// `hold` was called for the value before, and this is the one call that answers it.
unsafe fn let_go<T>(user_data: *mut c_void) -> Arc<T> {
    // SAFETY: the caller's promise.
    unsafe { Arc::from_raw(user_data.cast_const().cast()) }
}

/// # Safety
/// UCX calls it for a message that `post` has given it, once.
pub(super) unsafe extern "C" fn on_sent(request: Request, status: Status, user_data: *mut c_void) {
    // SAFETY: `post` has held the edge for this request.
    let edge = unsafe { let_go::<Edge>(user_data) };
    if status != abi::OK {
        edge.fail("a message could not be sent");
    }
    edge.is_over(request);
    free(request);
}

/// # Safety
/// UCX calls it for a payload that `fetch` has asked for, once.
pub(super) unsafe extern "C" fn on_received(request: Request, status: Status, _len: usize, user_data: *mut c_void) {
    // SAFETY: `fetch` has held the edge for this request.
    let edge = unsafe { let_go::<Edge>(user_data) };
    edge.with(|state| match state.come.find(request) {
        Some(at) if status == abi::OK => state.come.is_there(at),
        _ => state.fail("a message could not be fetched"),
    });
    free(request);
}

/// # Safety
/// UCX calls it for a flush that `see_out` has begun, once.
pub(super) unsafe extern "C" fn on_flushed(request: Request, _status: Status, user_data: *mut c_void) {
    // SAFETY: `see_out` has held the flag for this request.
    unsafe { let_go::<AtomicBool>(user_data) }.store(true, Release);
    free(request);
}

/// # Safety
/// UCX calls it for an endpoint that `close` has closed, once.
pub(super) unsafe extern "C" fn on_closed(request: Request, _status: Status, user_data: *mut c_void) {
    // SAFETY: `close` has held the edge for this request.
    drop(unsafe { let_go::<Edge>(user_data) });
    free(request);
}

/// # Safety
/// UCX calls it for an endpoint whose edge lives.
pub(super) unsafe extern "C" fn on_error(arg: *mut c_void, _endpoint: *mut Endpoint, _status: Status) {
    // SAFETY: the edge outlives its endpoint.
    unsafe { &*arg.cast_const().cast::<Edge>() }.fail("UCX has lost the far end");
}

fn free(request: Request) {
    if let Ok(library) = Library::get() {
        // SAFETY: the request is over, and nobody else knows it.
        unsafe { (library.request_free)(request) };
    }
}
