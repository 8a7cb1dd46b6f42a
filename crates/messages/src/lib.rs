//! Control messages between manager, nodes, clients and tools: length-prefixed JSON over mutual
//! TLS. What they say of frames (identifiers, faults, signatures, ranks) is `trib_wire`'s.
//!
//! Map: `hello` opens every channel. `request` and `reply` are the conversation of applications and
//! tools with the manager, and `node` is that of aggregation nodes. `job` is what a granted job is
//! made of, `quota` the table of its limits, `memory` what they reserve, `message` how each becomes
//! JSON and comes back, `prediction` for which operations its tree is predicted to pay,
//! `explanation` what a job is doing, `jobs` a line about each job that runs or ended, `tenant` for
//! which tenant a job counts and which jobs wait, `processes` where the ranks run, `candidates`
//! where its nodes may run, `recovery` where they are when they have moved, `policy` what a job
//! promises then, `directory` how people call the nodes and ranks of a job, and `via` by which
//! transport an edge goes.
//!
//! Both ends speak the same protocol version. Within one version, a field that a message gains has
//! a default, so that the releases before and after it understand each other in everything that
//! both know.
//!
//! Invariants: a message is data, and nothing here reads a socket or a clock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod by_rank;
pub mod candidates;
pub mod directory;
pub mod explanation;
pub mod hello;
pub mod job;
pub mod jobs;
pub mod levels;
pub mod memory;
mod message;
pub mod node;
pub mod policy;
pub mod prediction;
pub mod processes;
pub mod quota;
pub mod recovery;
pub mod reply;
pub mod request;
pub mod tenant;
pub mod via;

pub use message::Message;
