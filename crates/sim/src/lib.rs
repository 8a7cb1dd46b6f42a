//! Deterministic simulator: the protocol core under simulated time, network and faults. A seed in,
//! a verdict out.
//!
//! ```text
//!   seed -> options -> tree (fabric), program (workload), faults
//!                          |
//!   clock -> world -> actors: node, leaf (drivers of the same cores that the daemons and the client library run)
//!                          |
//!                environment: links (network), checkers, trace
//! ```
//! Vectors are symbolic (`symbol`): what a buffer holds is an expression over contributions, so the
//! checkers see a fold in the wrong order, a piece too many or too few, or one from elsewhere, and
//! long vectors cost nothing.
//!
//! Invariants: no clock but `clock`, no randomness but `random`, only ordered containers; equal
//! seeds give equal traces. Checkers see what crosses the drivers' interface, never the inside of a
//! core.
#![forbid(unsafe_code)]

pub mod checkers;
pub mod cli;
pub mod clock;
pub mod environment;
pub mod fabric;
pub mod leaf;
pub mod network;
pub mod node;
pub mod options;
pub mod random;
pub mod symbol;
pub mod trace;
pub mod verdict;
pub mod workload;
pub mod world;

pub use verdict::Verdict;

/// Runs one seed to its verdict.
pub fn run_seed(seed: u64) -> Verdict {
    world::World::random(seed, false).run()
}
