//! From one place into another.
//!
//! A process gets into PID namespaces below its own, never into a sibling: who is in a place cannot
//! enter another one. So each command that enters from outside leaves a process there, the porter.
//! Those below the command ask it, as they would ask a daemon of ssh on a real host, at a socket
//! in the state folder, which all places see.
//!
//! ```text
//!   outside                      place h0                           place h1
//!   trib lab exec h0 --enters--> launcher
//!     |                            |
//!   porter <---------------------- trib lab exec h1 -- program
//!     | forks    three open files, the command
//!   child ---enters, becomes like who asked-----------------------> program
//!     passes signals on <--------- signals
//!     waits  --------------------> status
//! ```
//!
//! The program ends when who asked for it ends. It is in the session of the command that came from
//! outside, as if it had been started on one machine: Linux may schedule by session (autogroup),
//! and then a yield lets only processes of the same session run, while programs of a laboratory
//! share few cores and wait for one another.
//!
//! - [`request`]: what is asked for, as it travels
//! - [`asking`]: the process in a place
//! - [`serving`]: the porter and what it forks
//! - [`likeness`]: what the program would have inherited from who asked

mod asking;
mod likeness;
mod request;
mod serving;

pub(crate) use asking::ask;
pub(crate) use serving::Porter;

/// The variable that names the porter's socket to those below a command.
pub(crate) const SOCKET: &str = "TRIB_LAB_PORTER";
/// Before the status of a program that has ended.
const ENDED: u8 = b'e';
/// Before the reason why there is no program.
const REFUSED: u8 = b'r';
