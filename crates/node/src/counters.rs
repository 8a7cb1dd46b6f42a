//! What a node counts, and the names by which the manager and `trib status` show it.

use std::collections::BTreeMap;

use trib_messages::recovery::Replayed;
use trib_proto::node::Note;
use trib_transport::ucx::UcxCounters;
use trib_transport::udp::UdpCounters;

/// Counts by name.
pub type Counters = BTreeMap<String, u64>;

/// The counts of one worker. That worker alone changes them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    notes: [u64; NOTES.len()],
    /// Bytes of vector that came in, over both paths.
    pub payload_bytes_in: u64,
    /// Bytes of vector that went into folds. Each child's piece counts.
    pub payload_bytes_folded: u64,
    /// What was folded of what ranks had sent in earlier epochs, too.
    pub replayed: Replayed,
    pub stream_bytes_in: u64,
    pub stream_bytes_out: u64,
    pub frames_in: u64,
    pub links_opened: u64,
    pub links_closed: u64,
    /// Links whose far end shares memory with this process.
    pub links_near: u64,
    /// Links over UCX.
    pub links_ucx: u64,
    /// Links closed because the far end broke the protocol.
    pub link_faults: u64,
    /// Links closed because the far end does not read.
    pub link_overruns: u64,
    /// Payloads that were turned away because the job's memory was used up.
    pub pool_exhausted: u64,
    pub jobs_installed: u64,
    pub jobs_removed: u64,
    /// Jobs that had to stop here because a fold was impossible.
    pub jobs_broken: u64,
    pub rejected_unknown_job: u64,
    pub rejected_epoch: u64,
    pub rejected_child: u64,
    pub rejected_source: u64,
    pub rejected_tag: u64,
    pub rejected_kind: u64,
    pub rejected_body: u64,
}

impl Tally {
    /// Counts what a core has noted.
    pub(crate) fn note(&mut self, note: Note) {
        self.notes[note as usize] += 1;
    }

    /// Adds these counts to a map.
    pub(crate) fn add_to(&self, counters: &mut Counters) {
        for (name, count) in NOTES.iter().zip(self.notes) {
            add(counters, name, count);
        }
        for (name, count) in [
            ("payload_bytes_in", self.payload_bytes_in),
            ("payload_bytes_folded", self.payload_bytes_folded),
            ("fragments_replayed", self.replayed.fragments),
            ("segments_replayed", self.replayed.segments),
            ("payload_bytes_replayed", self.replayed.bytes),
            ("stream_bytes_in", self.stream_bytes_in),
            ("stream_bytes_out", self.stream_bytes_out),
            ("stream_frames_in", self.frames_in),
            ("links_opened", self.links_opened),
            ("links_closed", self.links_closed),
            ("links_near", self.links_near),
            ("links_ucx", self.links_ucx),
            ("link_faults", self.link_faults),
            ("link_overruns", self.link_overruns),
            ("pool_exhausted", self.pool_exhausted),
            ("jobs_installed", self.jobs_installed),
            ("jobs_removed", self.jobs_removed),
            ("jobs_broken", self.jobs_broken),
            ("rejected_unknown_job", self.rejected_unknown_job),
            ("rejected_epoch", self.rejected_epoch),
            ("rejected_child", self.rejected_child),
            ("rejected_source", self.rejected_source),
            ("rejected_tag", self.rejected_tag),
            ("rejected_kind", self.rejected_kind),
            ("rejected_body", self.rejected_body),
        ] {
            add(counters, name, count);
        }
    }
}

/// Adds the counts of a datagram socket to a map. `rejected` has what was counted while batches
/// were looked at.
pub(crate) fn add_datagrams(socket: &UdpCounters, rejected: &UdpCounters, overflowed: u64, counters: &mut Counters) {
    for (name, count) in [
        ("datagrams_out", socket.sent),
        ("datagram_bytes_out", socket.sent_bytes),
        ("datagrams_in", socket.received),
        ("datagram_bytes_in", socket.received_bytes),
        ("datagram_send_would_block", socket.send_would_block),
        ("datagram_send_too_long", socket.send_too_long),
        ("datagram_send_failed", socket.send_failed),
        ("datagram_fault_lost", socket.fault_lost),
        ("datagram_socket_overflow", overflowed),
        ("rejected_malformed", rejected.rejected_malformed),
        ("rejected_version", rejected.rejected_version),
        ("rejected_checksum", rejected.rejected_checksum),
    ] {
        add(counters, name, count);
    }
}

/// Adds the counts of UCX to a map.
pub(crate) fn add_ucx(ucx: UcxCounters, counters: &mut Counters) {
    for (name, count) in [
        ("ucx_messages_out", ucx.sent),
        ("ucx_bytes_out", ucx.sent_bytes),
        ("ucx_messages_in", ucx.received),
        ("ucx_bytes_in", ucx.received_bytes),
        ("ucx_rejected", ucx.rejected),
    ] {
        add(counters, name, count);
    }
}

/// Adds one count to a map.
pub(crate) fn add(counters: &mut Counters, name: &str, count: u64) {
    match counters.get_mut(name) {
        Some(sum) => *sum += count,
        None => {
            counters.insert(name.to_owned(), count);
        }
    }
}

/// The CPU time of the calling thread, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is that of `time`, which is valid for the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    if result != 0 {
        return 0;
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The names of the core's notes, in the order of their codes.
const NOTES: [&str; 16] = [
    "fragments_folded",
    "segments_folded",
    "duplicates",
    "stale",
    "unknown_group",
    "violations",
    "disagreements",
    "probes",
    "resent",
    "groups_made",
    "groups_freed",
    "groups_refused",
    "groups_failed",
    "leases_granted",
    "leases_revoked",
    "links_silent",
];
const _: () = assert!(Note::LinkSilent as usize + 1 == NOTES.len());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_counted_under_their_names_and_workers_add_up() {
        let mut tally = Tally::default();
        tally.note(Note::FragmentFolded);
        tally.note(Note::LeaseRevoked);
        let mut counters = Counters::new();
        tally.add_to(&mut counters);
        tally.add_to(&mut counters);
        assert_eq!(counters["fragments_folded"], 2);
        assert_eq!(counters["leases_revoked"], 2);
        assert_eq!(counters["duplicates"], 0);
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let before = thread_cpu_ns();
        let mut sum = 0u64;
        while thread_cpu_ns() < before + 1_000_000 {
            sum = sum.wrapping_add(1);
        }
        assert!(sum > 0 && before > 0);
    }
}
