//! Between C and Rust: failures become codes and lines of the log.

use std::ffi::c_int;

use crate::failure::{Code, Failure};
use crate::log;

/// Runs the body of a function of a table.
pub fn guard(what: &str, body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match trib_client::boundary::caught("libnccl-net-tributary", body) {
        Ok(()) => Code::Success as c_int,
        Err(failure) => {
            // An empty text was told before.
            if !failure.text.is_empty() {
                log::warn(&format!("{what}: {}", failure.text));
            }
            failure.number()
        }
    }
}

/// Gives a value to C.
///
/// # Safety
/// The pointer is null or may be written to.
pub unsafe fn give<T>(pointer: *mut T, name: &str, value: T) -> Result<(), Failure> {
    trib_client::boundary::writable(pointer, name)?;
    // SAFETY: the caller's contract, and it is not null.
    unsafe { pointer.write(value) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_and_failures_are_codes() {
        assert_eq!(guard("test", || Ok(())), 0);
        assert_eq!(guard("test", || Err(Failure::remote("gone"))), 6);
        assert_eq!(guard("test", || panic!("broken")), 3);
        // SAFETY: a null pointer is refused.
        assert_eq!(guard("test", || unsafe { give(core::ptr::null_mut(), "out", 1) }), 4);
    }
}
