//! Links between places: what builds them, and what they have carried.
//!
//! - [`wire`]: the scripts for `ip` and `tc`
//! - [`counters`]: bytes and packets per link and direction
//! - [`tool`]: running the tools with a place's network

pub(crate) mod counters;
pub(crate) mod tool;
pub(crate) mod wire;

pub use counters::{Direction, LinkCounters};
