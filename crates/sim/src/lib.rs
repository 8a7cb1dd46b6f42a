//! Deterministic simulator: the protocol core runs under simulated time, network and faults. A seed
//! goes in, and a verdict comes out.
//!
//! ```text
//!   seed -> options -> tree (fabric), program (workload), faults
//!                          |
//!   clock -> world -> actors: node, leaf (drivers of the cores that daemons and clients run, too)
//!                          |
//!                environment: links (network), checkers, trace
//! ```
//! Each node of the tree may be in some processes (`sites`). Actors call each other anew in each
//! epoch (`world/placing`), and processes are killed, begin anew, stop and are cut off
//! (`world/faults`), while every operation is to end with the oracle's value.
//!
//! Vectors are symbolic (`symbol`): what a buffer holds is an expression over contributions. So the
//! checkers see a fold in the wrong order, a piece too many or too few, or a piece from elsewhere,
//! and long vectors cost nothing.
//!
//! Invariants: there is no clock but `clock`, no randomness but `random`, and no container without
//! an order, so equal seeds give equal traces. Checkers see what crosses the drivers' interface,
//! never the inside of a core.
#![forbid(unsafe_code)]

pub mod buffer;
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
pub mod sites;
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
