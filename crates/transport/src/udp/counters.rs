//! Counts what happened on a datagram socket.

use trib_wire::ParseError;

/// Counts since the socket was opened. Faults that only the caller can see (a wrong tag, a wrong
/// source) are counted by the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UdpCounters {
    /// Datagrams handed to the kernel.
    pub sent: u64,
    /// Their bytes, including our headers.
    pub sent_bytes: u64,
    /// Datagrams not sent because the socket's buffer was full.
    pub send_would_block: u64,
    /// Datagrams not sent because they exceed the path's MTU.
    pub send_too_long: u64,
    /// Datagrams not sent for another reason (no route, filtered).
    pub send_failed: u64,
    /// Datagrams taken from the kernel.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Datagrams that are not frames, or have another size than their header says.
    pub rejected_malformed: u64,
    /// Datagrams of another protocol version.
    pub rejected_version: u64,
    /// Datagrams whose payload and checksum disagree.
    pub rejected_checksum: u64,
    /// Datagrams lost on purpose, see `fault`.
    pub fault_lost: u64,
}

impl UdpCounters {
    /// Counts a datagram that was not a frame.
    pub(crate) fn reject(&mut self, error: ParseError) {
        match error {
            ParseError::BadVersion(_) => self.rejected_version += 1,
            ParseError::BadChecksum => self.rejected_checksum += 1,
            _ => self.rejected_malformed += 1,
        }
    }
}
