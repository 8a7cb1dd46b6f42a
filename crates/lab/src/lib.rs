//! Laboratory: whole fabrics of real processes, for the demo, for trying things out and for the system tests.
//!
//! ```text
//! fabric/     one manager and its nodes as daemons: start, find again, take down; the local fabric is the smallest lab
//! namespace/  hosts and a switch as network namespaces: real links, counters, and a switch that can cut hosts off
//! process     a process that can be named for good: pid and start time, held by a pidfd
//! supervise   a child of a test: stopped, continued, killed, and never left behind
//! ```
//!
//! Nothing here is on a data path, and nothing else depends on it but the `trib` binary and the system tests.

pub mod fabric;
pub mod namespace;
pub mod process;
pub mod supervise;
