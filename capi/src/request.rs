//! Section "Requests".

use std::ffi::c_int;
use std::time::Duration;

use trib_client::{Error, Request};

use crate::boundary::{given, guard, put, writable};

/// `trib_request`.
pub struct TribRequest {
    pub(crate) request: Request,
}

/// Whether the request is finished; if it is, the status is returned too.
///
/// # Safety
/// `request` is a live request, `done` points to an int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_test(request: *mut TribRequest, done: *mut c_int) -> c_int {
    guard(|| {
        writable(done, "done")?;
        // SAFETY: checked above.
        unsafe { put(done, 0) };
        // SAFETY: the caller's contract.
        let Some(outcome) = unsafe { given(request, "request") }?.request.test() else { return Ok(()) };
        // In a forked child no request is ever finished.
        if !matches!(outcome, Err(Error::Forked(_))) {
            // SAFETY: checked above.
            unsafe { put(done, 1) };
        }
        outcome
    })
}

/// Waits for the request.
///
/// # Safety
/// `request` is a live request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_wait(request: *mut TribRequest, timeout_ms: c_int) -> c_int {
    // SAFETY: the caller's contract.
    guard(|| {
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        // SAFETY: the caller's contract.
        unsafe { given(request, "request") }?.request.wait(timeout)
    })
}

/// Frees a request in any state.
///
/// # Safety
/// `request` is null or a live request; it is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_request_free(request: *mut TribRequest) -> c_int {
    guard(|| {
        if !request.is_null() {
            // SAFETY: the call that made the request made a box of it, and the caller gives it up.
            drop(unsafe { Box::from_raw(request) });
        }
        Ok(())
    })
}
