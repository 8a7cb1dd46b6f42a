//! UCX, for links whose topology says `via = "ucx"`: RDMA where the network has it.
//!
//! An edge over UCX is opened like one over TCP, by the same handshake over the same TCP
//! connection. With the proofs both ends tell each other an [offer](trib_wire::offer::Offer): where
//! their UCX is reached, and a name that they have drawn for the edge. From then on frames go as
//! active messages. The TCP connection stays open and carries nothing but, at the end, how many
//! bytes there were; its end is the end of the far process, whatever the network below UCX is and
//! notices.
//!
//! ```text
//!   StreamWriter -> socket -> outgoing -> message -> handler -> incoming -> socket -> StreamReader
//!   datagram ---> records --> outgoing -> message -> handler -> inbox ---> records -> core
//!                                  '-- worker: UCX's, one for each thread --'
//! ```
//! UCX's bytes are not authenticated, and its ports answer everybody. What is in a message is
//! therefore as little trusted as what comes as a datagram: the name of the edge is a number that
//! only its two ends know, position and length are checked before a byte is taken, and a frame
//! counts only with its tag. At most `WINDOW` bytes of a stream are under way.
//!
//! [`UcxWorker::drive`] lets UCX work; it does nothing by itself. A thread that is about to sleep
//! says so (`fall_asleep`) and sleeps on the worker's bell. What UCX uses is for its own
//! environment to say (`UCX_TLS`, `UCX_NET_DEVICES`, ...).

mod abi;
mod context;
mod devices;
mod edge;
mod glance;
mod incoming;
mod library;
mod message;
mod outgoing;
mod records;
mod request;
mod socket;
mod stub;
mod worker;

pub use devices::{Devices, devices};
pub use glance::UcxGlance;
pub use library::NoUcx;
pub use records::{UcxInbox, UcxOutbox};
pub use worker::{UcxCounters, UcxWorker};

pub(crate) use socket::UcxSocket;
pub(crate) use stub::Stub;

use trib_wire::header::{DATAGRAM_MAX, HEADER_LEN};
use trib_wire::mode::SEAL_LEN;

/// The bytes of one direction of a stream that may be under way.
const WINDOW: usize = 512 * 1024;
/// The most bytes of one message. Several have to be under way at once.
const PIECE: usize = 64 * 1024;
/// The bytes of datagrams that may be under way in one direction.
const RECORDS: usize = 64 * 1024;
/// The longest datagram, which may be under way only alone. A job may ask for fragments that are
/// that long; so that several of them are under way at once, it should not.
const LONGEST: usize = RECORDS - 8;
const _: () = assert!(HEADER_LEN + SEAL_LEN + DATAGRAM_MAX as usize <= LONGEST);

#[cfg(test)]
mod tests;
