//! Waiting for a late rank is cheap: a waiter sends a few small packets a second.

use trib_proto::Nanos;

use super::Checkers;

const NAME: &str = "traffic";
/// The largest number of datagrams a second that a waiting rank may send, besides what a window
/// takes: where a node had room for a part of it only, the rank learns by a question which part,
/// and sends the rest again, and what of the rest is lost a third time.
const PER_SECOND_MAX: u64 = 50;
const SENT_AGAIN: u64 = 2;
const SECOND: u64 = 1_000_000_000;

/// One rank's datagrams since it last got anything done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    quiet_since: Nanos,
    second: u64,
    sent: u64,
}

impl Traffic {
    pub(super) fn progress(&mut self, now: Nanos) {
        self.quiet_since = now;
        self.sent = 0;
    }

    /// Datagrams of the current second; the first second of waiting does not count.
    fn send(&mut self, now: Nanos) -> u64 {
        let second = now.since(self.quiet_since).0 / SECOND;
        if second != self.second {
            self.second = second;
            self.sent = 0;
        }
        self.sent += 1;
        if second == 0 { 0 } else { self.sent }
    }
}

impl Checkers {
    /// Something came for the rank that lets it send, though nothing is delivered.
    pub fn goes_on(&mut self, rank: u32) {
        self.traffic[rank as usize].progress(self.now);
    }

    /// The rank sends a datagram.
    pub fn datagram_sent(&mut self, rank: u32) {
        let now = self.now;
        let sent = self.traffic[rank as usize].send(now);
        // A rank whose datagrams never get through does more than wait: it sends them again.
        let most = PER_SECOND_MAX + SENT_AGAIN * u64::from(self.limits.window);
        if sent >= most && self.narrow.is_none() {
            self.fail(NAME, format!("rank {rank} sends {sent} datagrams within a second while it only waits"));
        }
    }
}
