//! Between C and Rust: panics become errors, errors become codes and lines of the log.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{ERROR, Failure};
use crate::log;

/// Runs the body of an export.
pub fn guard(what: &str, body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match caught(body) {
        Ok(()) => 0,
        Err(failure) => {
            log::error(format_args!("{what}: {}", failure.text));
            failure.code
        }
    }
}

/// What the body gives; a panic is a failure.
pub fn caught<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // What a panic leaves half done lies behind locks, which are poisoned then: later calls fail.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
        Err(Failure::new(ERROR, format!("broken invariant in libsharp_coll: {text}; please report it")))
    })
}

/// What a pointer argument points to.
///
/// # Safety
/// The pointer is null or points to a live `T` for as long as the caller's call lasts.
pub unsafe fn given<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: the contract above.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::invalid(format!("argument `{name}` is NULL")))
}

/// Checks a pointer for results before anything is done.
pub fn writable<T>(pointer: *mut T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() { Err(Failure::invalid(format!("argument `{name}` is NULL"))) } else { Ok(()) }
}
