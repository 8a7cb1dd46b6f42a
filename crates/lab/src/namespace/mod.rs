//! Hosts and switches as namespaces of this machine.
//!
//! ```text
//!   keeper        process 1 of a PID namespace of the laboratory's own, and without root in a user
//!     |           namespace of its own
//!     | has started, and holds open
//!     +-- place h0: process 1 of a PID namespace below the keeper's, with the host's processes;
//!     |             network, mounts (/proc, /sys, /dev/shm, /tmp), host name, System V memory
//!     +-- place leaf0: the same
//!     ...
//! ```
//!
//! No namespace has a name in the file system: each exists while the keeper holds it or a process
//! is inside. When the keeper ends, in whatever way, the kernel kills every process of the PID
//! namespace and of those below, and then nothing holds the namespaces and their links. So nothing
//! has to be cleaned up, whichever process is killed.
//!
//! - [`keeper`]: the process itself
//! - [`init`]: the first process of a place
//! - [`temporary`]: the /tmp of a place
//! - [`doors`]: what the keeper tells about the places it holds
//! - [`entry`]: the way in, for a command that is about to run
//! - [`porter`]: the way from one place into another
//! - [`fresh`]: the way into namespaces that do not exist yet, for the keeper

pub(crate) mod doors;
pub(crate) mod entry;
pub(crate) mod fork;
pub(crate) mod fresh;
mod init;
pub mod keeper;
mod porter;
mod temporary;

pub(crate) use doors::Doors;
pub(crate) use entry::{Entry, end_with_us};
pub(crate) use porter::{Porter, SOCKET, ask};
