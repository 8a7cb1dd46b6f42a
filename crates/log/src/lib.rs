//! What is logged, and the log of a program that links the library.
//!
//! ```text
//!   TRIB_LOG --> filter --> a tool's lines, a daemon's lines (elsewhere)
//!                      \--> lines on a program's stderr
//! ```
//!
//! Map: `filter` (which events are let through), `program` (the lines of a program).
//!
//! Invariant: a program's log has no thread-local value and starts no thread, so that the library
//! can be unloaded.
#![forbid(unsafe_code)]

mod filter;
mod program;

pub use filter::{FilterError, filter};
pub use program::begin_in_program;
