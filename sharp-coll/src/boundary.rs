//! Between C and Rust: errors become codes and lines of the log.

use std::ffi::c_int;

pub use trib_client::boundary::{given, writable};

use crate::error::Failure;
use crate::log;

/// Runs the body of an exported function.
pub fn guard(what: &str, body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match caught(body) {
        Ok(()) => 0,
        Err(failure) => {
            log::error(format_args!("{what}: {}", failure.text));
            failure.code
        }
    }
}

/// Returns what the body returns; a panic becomes a failure.
pub fn caught<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    trib_client::boundary::caught("libsharp_coll", body)
}
