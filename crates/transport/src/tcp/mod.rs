//! Stream connections: who is there (`handshake`), frames in (`reader`), frames out (`writer`), the socket itself.

pub mod handshake;
mod reader;
mod socket;
mod writer;

pub use handshake::{
    Admission, Admitted, Caller, Connected, HandshakeError, Identity, Progress, connect, connect_from,
};
pub use reader::{Arrived, FORESEEN_MAX, FrameSink, Place, ReadEnd, StreamError, StreamReader};
pub use socket::StreamSocket;
pub use writer::{FlushEnd, QueueFull, StreamWriter, Written};

#[cfg(test)]
mod tests;
