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
        // SAFETY: the caller's contract.
        unsafe { given(request, "request") }?.request.wait(limit(timeout_ms))
    })
}

/// Waits for the request, and frees it once the operation has succeeded.
///
/// # Safety
/// `request` points to a live request, which nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trib_finish(request: *mut *mut TribRequest, timeout_ms: c_int) -> c_int {
    guard(|| {
        writable(request, "request")?;
        // SAFETY: checked above; the caller's contract.
        let live = unsafe { *request };
        // SAFETY: the caller's contract.
        unsafe { given(live, "*request") }?.request.wait(limit(timeout_ms))?;
        // SAFETY: the call that made the request made a box of it, which nobody finds from here on.
        unsafe {
            put(request, std::ptr::null_mut());
            drop(Box::from_raw(live));
        }
        Ok(())
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

/// A limit in milliseconds; a negative one is none.
pub(crate) fn limit(timeout_ms: c_int) -> Option<Duration> {
    u64::try_from(timeout_ms).ok().map(Duration::from_millis)
}
