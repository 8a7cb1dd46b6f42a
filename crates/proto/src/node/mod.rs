//! The aggregation node: one logical node of one job.
//!
//! Map, inner rooms first. A file uses only those above it in this list; `lease/locking` and
//! `membership/` are methods of the core, which they therefore know.
//!
//! ```text
//!   config, output, link         what the driver says and is asked for
//!   identity, info, frame, at    where an event meets a group
//!   parts, results, marks, report  folding, handing down, who holds what, counting
//!   llt/, sat/, lease/           a group's three machines: datagrams, streams, the right to stream
//!   board                        what members say of operations that no node sees
//!   group/, table                one group with its machines; all groups, by name
//!   absent                       children that are missed and have not called
//!   membership/                  groups come into being and go
//!   core, dispatch, explain      the node, the way of a frame to its machine, what is late
//! ```
//!
//! Each machine has its table of transitions in a file of its own: `llt/slot`, `sat/accumulator`,
//! `lease/phase`, `group/state`, `membership/stage`. Beside it are tests, one for each arrow, which
//! share a `harness`.
//!
//! Invariants: the only timer is the heartbeat's; of a group's members only their runs take memory
//! or time, not their number; folds go in child order whatever the order of arrival; every buffer
//! has one owner, which a piece is on its way from machine to machine, and is the driver's again
//! when it is dropped, so none can be used twice and none can be forgotten.

mod absent;
mod at;
mod board;
mod config;
mod core;
mod dispatch;
mod explain;
mod frame;
mod group;
#[cfg(test)]
mod harness;
mod identity;
mod info;
mod lease;
mod link;
mod llt;
mod marks;
mod membership;
mod output;
mod parts;
mod report;
mod results;
mod sat;
mod table;

pub use self::core::NodeCore;
pub use config::{NodeChild, NodeConfig};
pub use frame::Frame;
#[cfg(test)]
pub(crate) use harness::LIMITS;
pub use link::Link;
pub use output::{Fold, NodeOutput, Note, Part, Payload, Stage, Target};
pub use report::{Folded, GroupReport};
