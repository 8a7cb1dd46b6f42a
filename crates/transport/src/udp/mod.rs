//! Datagrams: one system call sends a whole fan-out, and one receives a whole batch.

mod address;
mod batch;
mod counters;
mod sent;
mod socket;

pub use batch::{Datagram, RecvBatch};
pub use counters::UdpCounters;
pub use sent::Sent;
pub use socket::{DatagramSocket, RECV_BUFFER_WANTED, Receiver, seal, seal_with};

#[cfg(test)]
mod tests;
