//! Between C and Rust: null pointers are refused, panics become errors, errors become codes.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use trib_client::Error;

use crate::status::remember;

/// Runs the body of an export.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Error>) -> c_int {
    match outcome(body) {
        Ok(()) => 0,
        Err(error) => remember(&error),
    }
}

/// Runs the body of an export that gives a value instead of a code.
pub(crate) fn value_or<T>(otherwise: T, body: impl FnOnce() -> Result<T, Error>) -> T {
    match outcome(body) {
        Ok(value) => value,
        Err(error) => {
            remember(&error);
            otherwise
        }
    }
}

fn outcome<T>(body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // What a panic leaves half done lies behind the engine's lock, which is poisoned then: later calls fail.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
        Err(Error::Internal(format!("broken invariant in libtributary: {text}; please report it")))
    })
}

/// The thing a pointer argument points to.
///
/// # Safety
/// The pointer is null or points to a live `T` for as long as the caller's call lasts.
pub(crate) unsafe fn given<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Error> {
    // SAFETY: the contract above.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Writes a result through a pointer argument that was checked by `writable` before.
///
/// # Safety
/// The pointer points to writable memory for a `T`, whose old value needs no drop.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T) {
    // SAFETY: the contract above.
    unsafe { pointer.write(value) }
}

/// Checks a pointer for results before anything is done.
pub(crate) fn writable<T>(pointer: *mut T, name: &str) -> Result<(), Error> {
    if pointer.is_null() { Err(null(name)) } else { Ok(()) }
}

fn null(name: &str) -> Error {
    Error::Invalid(format!("argument `{name}` is NULL"))
}
