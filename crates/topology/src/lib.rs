//! The fabric as its operator describes it, and the reduction trees that fit it: pure functions.
//!
//! Map: `file` (the TOML text), `error` (what is wrong with it, with line and remedy), `topology` (the
//! checked fabric), `limits` (the quota a fabric gives), `plan` (hosts by rank to a logical tree),
//! `cascade` (more children than a node may have).
//!
//! Invariants: a [`Topology`] is one tree, checked once; a plan depends on the topology and the hosts
//! alone, so the same program gets the same tree, and with it the same bits.
#![forbid(unsafe_code)]

mod cascade;
mod error;
mod file;
mod limits;
mod plan;
mod topology;

pub use error::{Fault, TopologyError};
pub use limits::{Bound, LimitTable};
pub use plan::{Plan, PlanChild, PlanError, PlanNode, plan};
pub use topology::{AggregationNode, Host, Topology};
