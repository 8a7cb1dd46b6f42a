//! The aggregation node: one logical node of one job.
//!
//! Map, inner rooms first; a file uses only those above it in this list.
//!
//! ```text
//!   config, output, link         what the driver says and is asked for
//!   place, info, frame, at       where an event meets a group
//!   parts, results, report       folding, handing down, counting
//!   llt/, sat/, lease/           a group's three machines: datagrams, streams, the right to stream
//!   group, table                 one group with its machines; all groups, by name
//!   membership/                  groups come into being and go
//!   core, dispatch, explain      the node itself, from a frame to its machine, for whom it waits
//! ```
//!
//! Each machine has its table of transitions in a file of its own: `llt/slot`, `sat/accumulator`,
//! `lease/phase`, `group/state`, `membership/stage`.
//!
//! Invariants: no timer but the heartbeat's; nothing proportional to a group's members but their
//! runs; folds run in child order whatever the order of arrival; every buffer that comes in goes
//! out through `release` or `fold`.

mod at;
mod config;
mod core;
mod dispatch;
mod explain;
mod frame;
mod group;
mod info;
mod lease;
mod link;
mod llt;
mod membership;
mod output;
mod parts;
mod place;
mod report;
mod results;
mod sat;
mod table;

pub use self::core::NodeCore;
pub use config::{NodeChild, NodeConfig};
pub use frame::Frame;
pub use link::Link;
pub use output::{Fold, NodeOutput, Note, Part, Payload, Stage, Target};
pub use report::{Folded, GroupReport};
