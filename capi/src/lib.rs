//! `libtributary.so`: the C API of `include/tributary.h`.
//!
//! There is one file for each section of the header: `context` (joining, leaving, counters),
//! `group` (and `feedback`), `collective`, `request`, `prediction`, `status` (codes and texts).
//! `boundary` keeps panics and null pointers on this side.
//!
//! Invariants: only `trib_*` symbols are exported; no panic crosses into C; no thread-local value
//! has a destructor, so that the library can be unloaded once every context is finalized.

mod boundary;
mod collective;
mod context;
mod feedback;
mod group;
mod prediction;
mod request;
mod status;
mod stream;
