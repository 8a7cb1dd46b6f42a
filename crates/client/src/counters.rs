//! Counts of one rank since it joined, for reports.

/// The counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Operations started on the datagram path.
    pub operations_llt: u64,
    /// Operations started on the stream path.
    pub operations_sat: u64,
    /// Datagrams handed to the kernel.
    pub datagrams_sent: u64,
    /// Datagrams accepted.
    pub datagrams_received: u64,
    /// Datagrams that were no frame of ours, forged, damaged, or of no use.
    pub datagrams_rejected: u64,
    /// Bytes written to the stream connection.
    pub stream_bytes_sent: u64,
    /// Bytes read from the stream connection.
    pub stream_bytes_received: u64,
    /// Contributions sent again.
    pub retransmissions: u64,
    /// Probes sent.
    pub probes: u64,
    /// Groups that became ready.
    pub groups_created: u64,
    /// Groups left.
    pub groups_freed: u64,
}
