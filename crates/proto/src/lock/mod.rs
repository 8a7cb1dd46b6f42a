//! The lock on stream contexts. Intents travel up the tree and hold nothing. One arbiter, at the
//! root of the tree, grants.
mod arbiter;

pub use arbiter::{Arbiter, Decision};
