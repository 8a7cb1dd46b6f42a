//! `libnccl-net-tributary.so`: a network plugin for NCCL. Between two ranks it carries messages
//! over TCP, and allreduces of all ranks go through the tree (NCCL calls that CollNet).
//!
//! ```text
//!   versions   the tables of functions that NCCL looks for, one file for each version
//!   net        what they call between two ranks      coll    what they call for all ranks
//!      |                                                |
//!   socket/    listener, stream, transfer            collnet/   rendezvous, member, numbers
//!      |                                                |
//!   interfaces (network devices)                     trib-client
//!   ticket (requests that NCCL holds)   handle (what NCCL carries from a listener to others)
//!   boundary   failure   log
//! ```
//!
//! Invariants:
//!
//! - No panic crosses into C.
//! - Nothing that NCCL says must not block does; joining a job is the one call that waits.
//! - Bytes of a peer are never an address or an index, and no length of a peer's is believed beyond
//!   the buffer that NCCL gave.
//! - A buffer is touched only between the call that gave it and the test that says it is done, or
//!   `deregMr` if that comes first.
//! - What goes wrong is told once, through NCCL's logger, in words.

mod boundary;
mod coll;
mod collnet;
mod failure;
mod handle;
mod interfaces;
mod log;
mod net;
mod socket;
mod ticket;
mod versions;
