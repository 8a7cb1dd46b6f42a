//! Waiting for a late rank is cheap: a waiter sends a few small packets a second, and again what
//! the node lacks.

use std::collections::BTreeMap;

use trib_proto::Nanos;
use trib_wire::{Generation, GroupIndex, Header, Kind};

use super::Checkers;

const NAME: &str = "traffic";
/// The largest number of questions a second from a rank that waits, in however many groups.
const QUESTIONS_MAX: u64 = 50;
/// The largest number of windows that a rank sends again of one group in a second, besides a
/// fragment for each question. How much it sends at once depends on what has arrived, and a test of
/// that rule shows that this is enough, whatever arrives. Each group has a window of its own, and a
/// node that stood still may lack all of them.
const WINDOWS_MAX: u64 = 6;
const SECOND: u64 = 1_000_000_000;

/// One rank's datagrams since it last got anything done.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    quiet_since: Nanos,
    second: u64,
    /// Those of the current second, by group.
    sent: BTreeMap<(GroupIndex, Generation), Sent>,
}

/// The datagrams of one group.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    questions: u64,
    contributions: u64,
}

impl Traffic {
    pub(super) fn progress(&mut self, now: Nanos) {
        self.quiet_since = now;
        self.sent.clear();
    }

    /// Counts a datagram, and says what is too much. The first second of waiting does not count.
    fn send(&mut self, now: Nanos, header: &Header, window: u64) -> Option<String> {
        let second = now.since(self.quiet_since).0 / SECOND;
        if second != self.second {
            self.second = second;
            self.sent.clear();
        }
        let group = self.sent.entry((header.group, header.generation)).or_default();
        match header.kind {
            Kind::Probe => group.questions += 1,
            _ => group.contributions += 1,
        }
        let Sent { questions, contributions } = *group;
        let asked: u64 = self.sent.values().map(|group| group.questions).sum();
        if second == 0 {
            None
        } else if asked > QUESTIONS_MAX {
            Some(format!("asks {asked} times"))
        } else if contributions > questions + WINDOWS_MAX * window {
            Some(format!("sends {contributions} contributions and {questions} questions of one group"))
        } else {
            None
        }
    }
}

impl Checkers {
    /// Something came for the rank that lets it send, though nothing is delivered.
    pub fn goes_on(&mut self, rank: u32) {
        self.traffic[rank as usize].progress(self.now);
    }

    /// The rank sends a datagram.
    pub fn datagram_sent(&mut self, rank: u32, header: &Header) {
        let (now, window) = (self.now, u64::from(self.limits.window));
        if let Some(what) = self.traffic[rank as usize].send(now, header, window) {
            self.fail(NAME, format!("rank {rank} {what} within a second while it only waits"));
        }
    }
}
