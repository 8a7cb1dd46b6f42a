//! Drivers that move frames: they know bytes, sockets and keys, not the protocol's state machines.
//!
//! Map: `tcp` (stream connections: handshake, framing, scheduling of what is sent), `udp`
//! (datagrams, one send per fan-out), `memory` (both, between processes of one host), `ucx` (both,
//! where the topology says so), `edge` (what these two have in common), `pool` (fixed buffers of a
//! job), `mapping` (memory from the system), `landing` (where payload bytes are read from and
//! written to), `sealing` (how the frames of an edge are protected), `option` (socket options),
//! `sync` (types for what is shared without a lock), `fault` (loss, duplication and reordering for
//! tests).
//!
//! Invariants: nothing blocks except [`tcp::connect`]; nothing is allocated per frame that carries
//! vector data; no byte of a frame reaches the caller before the frame's header has been parsed,
//! and on streams authenticated.

pub mod edge;
pub mod fault;
pub mod landing;
mod mapping;
pub mod memory;
mod option;
pub mod pool;
pub mod sealing;
mod sync;
pub mod tcp;
pub mod ucx;
pub mod udp;
