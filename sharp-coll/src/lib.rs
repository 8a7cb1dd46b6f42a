//! `libsharp_coll.so`: the API of `include/sharp/api/sharp_coll.h`, a thin layer over the client
//! library.
//!
//! ```text
//!   context, comm, registration, config, diagnostics    exported functions, a file per section
//!   collective, request                                 posting, and what is in flight
//!        |
//!   descriptor (buffers and lists of pieces)   cuda (memory of GPUs)   loaded (CUDA's driver)
//!   window (partial reduce-scatter and allgather)
//!        |
//!   handle (what C holds instead of pointers)   exchange (out-of-band callbacks)
//!   statistics   agreed   wishes   settings   log   error   boundary   abi
//!        |
//!   trib-client
//! ```
//!
//! Invariants:
//!
//! - No panic crosses into C.
//! - What C holds is looked up and never followed, so that a stale handle is an error and not a
//!   crash.
//! - Words named reserved are never read.
//! - No lock is held across a callback.
//! - Nothing is printed to stdout.
//! - Out-of-band callbacks run in `sharp_coll_init` and `sharp_coll_comm_init` only, unless
//!   counters are to be summed over the job.
//! - No thread and no thread-local destructor stays behind once every context is finalized.

mod abi;
mod agreed;
mod boundary;
mod collective;
mod comm;
mod config;
mod context;
mod cuda;
mod descriptor;
mod diagnostics;
mod entries;
mod error;
mod exchange;
mod handle;
mod loaded;
mod log;
mod registration;
mod request;
mod settings;
mod statistics;
mod window;
mod wishes;
