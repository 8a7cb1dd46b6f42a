//! `libsharp_coll.so`: the API of `include/sharp/api/sharp_coll.h`, a thin layer over the client library.
//!
//! ```text
//!   context, comm, registration, config, diagnostics       one file per section of the header: exported functions
//!   collective, request                                     posting, and what is in flight
//!        |
//!   descriptor (buffers and lists of pieces)   window (partial reduce-scatter and allgather)   cuda (memory of GPUs)
//!        |
//!   handle (what C holds instead of pointers)   exchange (out-of-band callbacks)   statistics   wishes   settings   log
//!   error   boundary   abi
//!        |
//!   trib-client
//! ```
//!
//! Invariants: no panic crosses into C; what C holds is looked up, never followed, so that a stale handle is an error and
//! not a crash; words named reserved are never read; no lock is held across a callback; nothing is printed to stdout; out-of-band
//! callbacks run in `sharp_coll_init` and `sharp_coll_comm_init` only, unless counters shall be summed over the job; no thread and no thread-local destructor
//! stays behind once every context is finalized.

mod abi;
mod boundary;
mod collective;
mod comm;
mod config;
mod context;
mod courtesy;
mod cuda;
mod descriptor;
mod diagnostics;
mod error;
mod exchange;
mod handle;
mod log;
mod place;
mod registration;
mod request;
mod settings;
mod statistics;
mod window;
mod wishes;
