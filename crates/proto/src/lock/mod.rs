//! The lock on stream contexts. Intents travel up holding nothing; one arbiter, at the root of the tree, grants.
mod arbiter;

pub use arbiter::{Arbiter, Decision};
