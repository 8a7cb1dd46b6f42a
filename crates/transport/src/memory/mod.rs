//! Shared memory between two processes of one host that belong to one user.
//!
//! An edge over memory is opened like one over TCP, by the same handshake, but over a Unix socket
//! (`door`). With its proof the child hands over a `segment` of memory and two event descriptors,
//! without names, so that nothing is left when a process is killed. From then on frames go through
//! rings in the segment: a `ring` of bytes for what goes by stream, and one of `records` for
//! datagrams, in each direction. The Unix socket stays open and carries nothing: its end is the end
//! of the far process.
//!
//! ```text
//!   child                      segment                       node
//!   StreamWriter --> socket --> [ bytes up     ] --> socket --> StreamReader
//!   datagram ----> records ---> [ records up   ] --> records --> core
//!   StreamReader <-- socket <-- [ bytes down   ] <-- socket <-- StreamWriter
//!   datagram <---- records <--- [ records down ] <-- records <-- core
//!         '-- bell <---- rung if its owner is asleep ----> bell --'
//! ```
//!
//! No system call is made while both ends are awake. An end that is about to sleep says so in the
//! segment (`line`), looks once more, and then sleeps on its bell; who has put something into a
//! ring, or taken something out of a full one, rings the far end's bell if that end is asleep.
//!
//! Beside the edges a group of one host has a `board`, to which all its members give and from which
//! all of them take; a `bell` wakes those that sleep meanwhile.
//!
//! The far end is not trusted with our memory: its counts are checked, and what it has written is
//! copied before it is parsed.

mod asleep;
mod bell;
mod board;
mod copy;
mod door;
mod file;
mod line;
mod records;
mod ring;
mod segment;
mod socket;

pub use bell::{Bell, BellAddress, BellName, Token};
pub use board::{Board, MEMBERS_MAX, WINDOW, Wish};
pub use copy::copy;
pub use door::{Door, NoDoor};
pub use line::NearGlance;
pub use records::{NearInbox, NearOutbox, Records};
pub use socket::NearSocket;

pub(crate) use door::{Call, call};

#[cfg(test)]
mod tests;
