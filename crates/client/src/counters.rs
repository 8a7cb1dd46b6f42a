//! Counts of one rank since it joined, for reports.

/// The counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Operations started on the datagram path.
    pub operations_llt: u64,
    /// Operations started on the stream path.
    pub operations_sat: u64,
    /// Operations of groups of one host, which all members did in memory.
    pub operations_board: u64,
    /// Operations over memory of GPUs in which those of each host combine on the devices.
    pub operations_combined: u64,
    /// Datagrams handed to the kernel.
    pub datagrams_sent: u64,
    /// Datagrams that were accepted.
    pub datagrams_received: u64,
    /// Datagrams that were dropped because they are no frames of ours, forged or damaged.
    pub datagrams_rejected: u64,
    /// Bytes written to the stream connection.
    pub stream_bytes_sent: u64,
    /// Bytes read from the stream connection.
    pub stream_bytes_received: u64,
    /// Contributions that were sent again in the same epoch.
    pub retransmissions: u64,
    /// Probes that were sent.
    pub probes: u64,
    /// Groups that became ready.
    pub groups_created: u64,
    /// Groups that were left.
    pub groups_freed: u64,
    /// Datagrams whose content had come before, as happens when a question and its answer cross.
    pub datagrams_repeated: u64,
    /// How often the job has gone on in another epoch.
    pub epochs: u64,
    /// Contributions that were sent again because the job has gone on in another epoch.
    pub replayed: u64,
}

impl Counters {
    /// The sum with the counters of another lane. Groups exist on all lanes, so they are not added.
    pub(crate) fn with_lane(&self, lane: &Counters) -> Counters {
        Counters {
            operations_llt: self.operations_llt + lane.operations_llt,
            operations_sat: self.operations_sat + lane.operations_sat,
            operations_board: self.operations_board,
            operations_combined: self.operations_combined,
            datagrams_sent: self.datagrams_sent + lane.datagrams_sent,
            datagrams_received: self.datagrams_received + lane.datagrams_received,
            datagrams_rejected: self.datagrams_rejected + lane.datagrams_rejected,
            datagrams_repeated: self.datagrams_repeated + lane.datagrams_repeated,
            stream_bytes_sent: self.stream_bytes_sent + lane.stream_bytes_sent,
            stream_bytes_received: self.stream_bytes_received + lane.stream_bytes_received,
            retransmissions: self.retransmissions + lane.retransmissions,
            probes: self.probes + lane.probes,
            groups_created: self.groups_created,
            groups_freed: self.groups_freed,
            epochs: self.epochs + lane.epochs,
            replayed: self.replayed + lane.replayed,
        }
    }
}
