//! Stream connections: authentication (`handshake`), frames in (`reader`), frames out (`writer`),
//! how many bytes wake a sleeper (`low_water`), last frames (`farewell`), and the socket itself
//! (`socket`).

mod farewell;
pub mod handshake;
mod low_water;
mod reader;
mod socket;
mod writer;

pub use farewell::{Parting, say};
pub use handshake::{
    Admission, Admitted, Caller, Connected, Denied, HandshakeError, Identity, Progress, connect, connect_from,
    connect_once,
};
pub use low_water::{Due, LowWater};
pub use reader::{Arrived, Destination, FORESEEN_MAX, FrameSink, ReadEnd, StreamError, StreamReader};
pub use socket::StreamSocket;
pub use writer::{FlushEnd, QueueFull, StreamWriter, Written};

#[cfg(test)]
mod tests;
