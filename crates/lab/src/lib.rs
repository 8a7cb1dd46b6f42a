//! Laboratory: whole fabrics of real processes, for the demo, for measurements and for the system
//! tests.
//!
//! ```text
//! topology/   what a laboratory is made of, as values: the local fabric, fat trees
//! lab/        one that runs: up, attach, down; its state folder, its record, its daemons
//! namespace/  places (hosts and switches) as namespaces, their keeper, entering one
//! network/    links between places, built with ip and tc, and what they have carried
//! fault/      loss, corruption, cut links, isolated hosts
//! mpi/        starting the ranks of an MPI program on the hosts
//! process     a process that can be named for good: pid and start time, held by a pidfd
//! run         a command with a time limit, of which nothing is left afterwards
//! visit       a command in a place
//! heeded      whether this process was started to outlive its terminal
//! typed       which signals come from a terminal, and so to a command as well as to us
//! ucx         what UCX may use there
//! supervise   a child of a command or a test: stopped, continued, killed, and never left behind
//! ```
//!
//! Nothing here is on a data path. Only the `trib` binary, comparisons and system tests depend on
//! it.

pub mod fault;
mod heeded;
pub mod lab;
pub mod mpi;
pub mod namespace;
pub mod network;
pub mod process;
pub mod run;
pub mod supervise;
pub mod topology;
mod typed;
mod ucx;
pub mod visit;

pub use heeded::heeded;
pub use lab::{Lab, LabError, LabLaunch, LabName, Lifetime, default_base};
pub use mpi::{Map, Mpi, MpiLaunch, Placement};
pub use network::{Direction, LinkCounters};
pub use topology::{BitRate, FatTree, Local, Topology};
