//! From one place into another.
//!
//! A process gets into PID namespaces below its own, never into a sibling: who is in a place cannot
//! enter another one. So it asks the keeper, as it would ask a daemon of ssh on a real host: at a
//! socket in the state folder, which all places see.
//!
//! ```text
//!   place h0                          keeper                       place h1
//!   trib lab exec h1 -- program  ---> porter forks, and its child enters
//!     three open files, the command     becomes like who asked,   --> program
//!     signals  -------------------->    passes them on
//!     status   <--------------------    waits
//! ```
//!
//! The program ends when who asked for it ends.
//!
//! - [`request`]: what is asked for, as it travels
//! - [`asking`]: the process in a place
//! - [`serving`]: the keeper and what it forks
//! - [`likeness`]: what the program would have inherited from who asked

mod asking;
mod likeness;
mod request;
mod serving;

pub(crate) use asking::ask;
pub(super) use serving::Porter;

/// The socket's name in the state folder.
const SOCKET: &str = "porter";
/// Before the status of a program that has ended.
const ENDED: u8 = b'e';
/// Before the reason why there is no program.
const REFUSED: u8 = b'r';
