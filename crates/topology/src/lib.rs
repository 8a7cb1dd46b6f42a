//! The fabric as its operator describes it, and the reduction trees that fit it: pure functions.
//!
//! Map. Of the tree that the manager serves: `file` (the TOML text), `error` (what is wrong with it, with line and remedy),
//! `topology` (the checked fabric, a tree or a graph), `addresses` (of a node or a host), `limits` (the quota a fabric gives), `plan` (hosts by rank to a logical tree), `cascade`
//! (more children than a node may have). Of whole fabrics: `hostlist` (many names in few characters), [`graph`] (readers of the
//! formats that clusters have), [`trees`] (trees in a graph), [`predict`] (what they are expected to take), [`draw`] (text and SVG).
//!
//! Invariants: a [`Topology`] is one tree or one graph, checked once; a plan depends on the topology, the hosts and, in a
//! graph, the trees beside it alone. So the same program gets the same tree, and with it the same bits; in a graph whose switches of a
//! level are alike it gets at least a tree of the same shape.
#![forbid(unsafe_code)]

mod addresses;
mod cascade;
pub mod draw;
mod error;
mod file;
pub mod graph;
pub mod hostlist;
mod limits;
mod plan;
pub mod predict;
mod topology;
pub mod trees;

pub use addresses::AddressFault;
pub use error::{Fault, TopologyError};
pub use limits::{Bound, LimitTable};
pub use plan::{Plan, PlanChild, PlanError, PlanNode, plan};
pub use topology::{AggregationNode, Host, Topology};
