//! Keys of a job: who holds which, and how each follows from another (`docs/protocol.md#3.1`).
//!
//! ```text
//!   job --+--> node, candidate --+--> edge: child, candidate --+--> frames up     \
//!         |                      |                             +--> frames down    } in one
//!         |                      |                             +--> handshake     /  placement
//!         |                      +--> results: datagrams down, for all children  /
//!         +--> root ---------------------------------------------> handshake    /
//!         +--> mark (no secret)
//!
//!   handshake, both nonces ----> session: tags and payloads of one connection   \ in a mode that
//!   results -------------------> tags and payloads of all that goes down        / seals payloads
//!   payloads ------------------> phase after phase
//! ```
//! A key follows from the one to its left, and nothing leads back. The ranks of a job hold the
//! job's, and an aggregation node only those of its own ends of its own edges: an end is a
//! candidate, so what another candidate of the same node holds is worth nothing elsewhere.
//!
//! Map: `held` (what ticket and grants contain), `derived` (what both ends make of it in a
//! placement), `seal` (how a key travels in a handshake), `derive` (one key from another).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod derive;
mod derived;
mod held;
mod seal;

pub use derived::{EdgeKeys, HelloKey, PayloadKey, Results, Session};
pub use held::{EdgeKey, JobKey, JobMark, NodeKey, RootKey};
pub use seal::Sealed;

#[cfg(test)]
mod tests;
