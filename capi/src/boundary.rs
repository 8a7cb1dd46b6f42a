//! Between C and Rust: errors become codes and texts.

use std::ffi::c_int;

use trib_client::Error;
use trib_client::boundary::caught;
pub(crate) use trib_client::boundary::{given, writable};

use crate::status::remember;

/// Runs the body of an export.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Error>) -> c_int {
    match caught(LIBRARY, body) {
        Ok(()) => 0,
        Err(error) => remember(&error),
    }
}

/// Runs the body of an export that gives a value instead of a code.
pub(crate) fn value_or<T>(otherwise: T, body: impl FnOnce() -> Result<T, Error>) -> T {
    match caught(LIBRARY, body) {
        Ok(value) => value,
        Err(error) => {
            remember(&error);
            otherwise
        }
    }
}

/// Writes a result through a pointer argument that was checked by `writable` before.
///
/// # Safety
/// The pointer points to writable memory for a `T`, whose old value needs no drop.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T) {
    // SAFETY: the contract above.
    unsafe { pointer.write(value) }
}

const LIBRARY: &str = "libtributary";
