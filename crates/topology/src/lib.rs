//! The fabric as its operator describes it, and the reduction trees that fit it: pure functions.
//!
//! Map. For the fabric that a manager serves: `file` (the TOML text), `error` (what is wrong with
//! it, with line and remedy), `topology` (the checked fabric, a tree or a graph), `addresses` (of a
//! node or a host), `limits` (the quota that a fabric gives), `plan` (from hosts by rank to a
//! logical tree), `backups` (which other nodes may host it), `cascade` (more children than a node
//! may have). For whole fabrics: `hostlist` (many names in few characters), [`graph`] (readers of
//! the formats that clusters have), [`trees`] (trees in a graph), [`predict`] (how long operations
//! are expected to take on them), [`draw`] (text and SVG).
//!
//! Invariants: a [`Topology`] is one tree or one graph and is checked once. A plan depends on the
//! topology, and on where the program's ranks are, alone, and in a graph also on the other trees
//! there. So the same program gets the same tree, and with it the same bits. In a graph whose
//! switches of a level are alike, it gets at least a tree of the same shape.
#![forbid(unsafe_code)]

mod addresses;
mod backups;
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
pub use backups::backups;
pub use error::{Fault, TopologyError};
pub use limits::{Bound, LimitTable};
pub use plan::{Home, Plan, PlanChild, PlanError, PlanNode, Program, Way, plan};
pub use topology::{AggregationNode, Host, Topology};
pub use trib_messages::candidates::BACKUPS_MAX;
