//! Between C and Rust: errors become codes and texts.

use std::ffi::c_int;

use trib_client::Error;
use trib_client::boundary::caught;
pub(crate) use trib_client::boundary::{given, writable};

use crate::status::remember;

/// Runs the body of an exported function.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Error>) -> c_int {
    match caught(LIBRARY, body) {
        Ok(()) => 0,
        Err(error) => remember(&error),
    }
}

/// Runs the body of an exported function that returns a value instead of a code; `otherwise` is the
/// value for an error.
pub(crate) fn value_or<T>(otherwise: T, body: impl FnOnce() -> Result<T, Error>) -> T {
    match caught(LIBRARY, body) {
        Ok(value) => value,
        Err(error) => {
            remember(&error);
            otherwise
        }
    }
}

/// Writes a result through a pointer argument that `writable` has checked.
///
/// # Safety
/// The pointer points to writable memory for a `T`; the old value there needs no drop.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T) {
    // SAFETY: the contract above.
    unsafe { pointer.write(value) }
}

const LIBRARY: &str = "libtributary";
