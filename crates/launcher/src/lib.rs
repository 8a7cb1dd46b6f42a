//! MPI programs under the MPI's own launcher, with what of ours fits that MPI.
//!
//! ```text
//!   mpirun on PATH --(its --version)--> Mpi --+
//!   libraries of the program --(ldd)--> Linked -+--> Way: component, preloaded library, or why
//!   neither files beside `trib` -----> Parts ---------+        --> options and environment for the
//!   launcher
//! ```
//! Which collectives then go through the tree is decided in the program (`mpi/core`); here it is
//! decided only what is loaded there.

mod asking;
mod command;
mod mpi;
mod parts;
mod program;
mod variables;
mod way;

pub use command::command;
pub use mpi::{Launcher, Mpi, NoLauncher};
pub use parts::Parts;
pub use program::{Abi, Linked, is_program, linked_with, linked_within};
pub use variables::is_for_all;
pub use way::{Means, NoWay, Way};
