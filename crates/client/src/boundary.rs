//! Between C and Rust, for libraries with a C interface over this one: panics become errors, and
//! null pointers are refused.
//!
//! It lies in this crate because it returns this crate's errors. Every such library has them anyway
//! and turns them into codes in its own way.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Error;

/// Runs the body of a function that `library` exports and returns what the body returns. A panic
/// becomes an error.
pub fn caught<T, E: From<Error>>(library: &str, body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    // What a panic leaves half done lies behind locks, which are then poisoned, so that later calls
    // fail.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
        Err(Error::Internal(format!("broken invariant in {library}: {text}; please report it")).into())
    })
}

/// The thing to which a pointer argument points.
///
/// # Safety
/// The pointer is null or points to a live `T` for as long as the caller's call lasts.
pub unsafe fn given<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Error> {
    // SAFETY: the contract above.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Checks a pointer for results before anything is done.
pub fn writable<T>(pointer: *mut T, name: &str) -> Result<(), Error> {
    if pointer.is_null() { Err(null(name)) } else { Ok(()) }
}

fn null(name: &str) -> Error {
    Error::Invalid(format!("argument `{name}` is NULL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors_and_everything_else_passes() {
        let told = |body: fn() -> Result<u8, Error>| caught("libexample", body);
        assert_eq!(told(|| Ok(7)), Ok(7));
        assert_eq!(told(|| Err(Error::Quota("no".into()))), Err(Error::Quota("no".into())));
        for broken in [(|| panic!("number {}", 3)) as fn() -> Result<u8, Error>, || panic!("number 3")] {
            let Err(Error::Internal(text)) = told(broken) else { panic!("not an internal error") };
            assert_eq!(text, "broken invariant in libexample: number 3; please report it");
        }
    }

    #[test]
    fn null_is_refused_by_name() {
        let mut number = 5;
        // SAFETY: one pointer is null, the other points to a live number.
        let (none, some) = unsafe { (given(core::ptr::null::<i32>(), "spec"), given(&raw const number, "spec")) };
        assert_eq!(none, Err(Error::Invalid("argument `spec` is NULL".into())));
        assert_eq!(some, Ok(&5));
        assert!(writable(&raw mut number, "out").is_ok() && writable(core::ptr::null_mut::<i32>(), "out").is_err());
    }
}
