//! Questions over one stream connection: when to ask, and when the other side counts as dead.
//!
//! Silence alone proves nothing: this side may have had no processor, or may not have read what was
//! there. So only questions count that stay without an answer over a span which this side has
//! observed: it asked at one tick, came to the next tick on time, and had read its socket before
//! that. A span that took much longer was this side's own sleep, and does not count.
//!
//! How many they must be depends on what a wrong verdict costs. A node that does not answer may
//! only lack a processor. Where the job goes on at another one, a wrong verdict costs an epoch, so
//! the verdict comes early, and later after each epoch that bore no fruit; else it is an error.
//!
//! ```text
//!   tick      tick      tick                        tick      tick
//!    | asks    | asks    | asks   ... no processor   | asks    | asks
//!    |---------|---------|---------------------------|---------|
//!     answered  unanswered        not observed        unanswered
//! ```

use crate::limits::Limits;
use crate::time::Nanos;

/// The kind of peer at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// It may compute or be stopped in a debugger, and nothing else can do its part: a rank, or a
    /// node without a backup.
    Only,
    /// A node that another process can take the place of, after so many epochs without fruit.
    Replaceable(u32),
}

impl Peer {
    /// A node. `recovery` is the number of epochs without fruit before this one, if the job goes on
    /// when a node dies.
    pub fn node(recovery: Option<u32>) -> Peer {
        recovery.map_or(Peer::Only, Peer::Replaceable)
    }

    /// How long it may leave questions without an answer.
    fn patience(self, limits: &Limits) -> Nanos {
        match self {
            Peer::Only => limits.dead_after,
            Peer::Replaceable(fruitless) => {
                limits.dead_after.min(Nanos(NODE_PATIENCE.0 << fruitless.min(DOUBLINGS_MAX)))
            }
        }
    }
}

/// The questions over one connection. Any frame is an answer.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    peer: Peer,
    spoke: Nanos,
    checked: Nanos,
    /// Whether something came since the last tick.
    heard: bool,
    /// The number of observed spans, one after the other, in which nothing came.
    unanswered: u64,
}

/// What a connection needs now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A heartbeat, which is a question too.
    Heartbeat,
    /// To be given up: the other side has left too many questions without an answer.
    Dead,
}

impl Liveness {
    /// The questions of a connection that was opened now.
    pub fn new(now: Nanos, peer: Peer) -> Liveness {
        Liveness { peer, spoke: now, checked: now, heard: true, unanswered: 0 }
    }

    /// Something came.
    pub fn heard(&mut self) {
        self.heard = true;
    }

    /// A heartbeat was sent.
    pub fn spoke(&mut self, now: Nanos) {
        self.spoke = now;
    }

    /// Whether a heartbeat that has just come needs an answer. It needs none if this side's own has
    /// just gone, so that two sides do not answer each other for ever.
    pub fn owes_answer(&self, now: Nanos, limits: &Limits) -> bool {
        now.since(self.spoke).0 >= limits.heartbeat.0 / 2
    }

    /// What is due at a tick. The caller calls it once per heartbeat, after it has read everything
    /// that had come.
    pub fn need(&mut self, now: Nanos, limits: &Limits) -> Need {
        let span = now.since(core::mem::replace(&mut self.checked, now));
        if core::mem::take(&mut self.heard) {
            self.unanswered = 0;
        } else if span.0 <= limits.heartbeat.0 + limits.heartbeat.0 / 2 {
            self.unanswered += 1;
        }
        let asked_enough = self.unanswered >= QUESTIONS_MIN;
        if asked_enough && self.unanswered.saturating_mul(limits.heartbeat.0) >= self.peer.patience(limits).0 {
            Need::Dead
        } else if self.unanswered > 0 || now.since(self.spoke) >= limits.heartbeat {
            Need::Heartbeat
        } else {
            Need::Nothing
        }
    }
}

/// A node that can be replaced is dead if it leaves questions without an answer for this long, and
/// for twice as long after each epoch without fruit. A job may have less patience, but not more.
pub const NODE_PATIENCE: Nanos = Nanos::from_millis(5_000);

/// Beyond that a job's own patience is less, as a rule.
const DOUBLINGS_MAX: u32 = 16;

/// At least this many questions are asked, however long the periods are.
const QUESTIONS_MIN: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const HEARTBEAT: u64 = 1_000_000_000;

    fn limits() -> Limits {
        Limits {
            groups: 1,
            window: 1,
            osts: 1,
            payload: 8,
            streams: 1,
            segment: 8,
            staging: 1,
            flight: 1,
            stream_threshold: 0,
            lease_operations: 0,
            heartbeat: Nanos(HEARTBEAT),
            dead_after: Nanos(60 * HEARTBEAT),
        }
    }

    /// The number of ticks until the other side counts as dead, if this side is always on time.
    fn ticks_until_dead(peer: Peer) -> u64 {
        let mut liveness = Liveness::new(Nanos(0), peer);
        let mut tick = 1;
        while liveness.need(Nanos(tick * HEARTBEAT), &limits()) != Need::Dead {
            liveness.spoke(Nanos(tick * HEARTBEAT));
            tick += 1;
        }
        tick
    }

    #[test]
    fn who_can_be_replaced_has_seconds_to_answer_and_who_cannot_as_long_as_the_job_says() {
        // The first tick asks, because the connection itself was the first sign of life.
        assert_eq!((ticks_until_dead(Peer::node(Some(0))), ticks_until_dead(Peer::Only)), (6, 61));
        assert_eq!(ticks_until_dead(Peer::node(None)), 61, "a wrong verdict would be an error");
    }

    #[test]
    fn patience_doubles_with_every_epoch_without_fruit_up_to_the_jobs_own() {
        let ticks = [0, 1, 2, 3, 4, u32::MAX].map(|fruitless| ticks_until_dead(Peer::node(Some(fruitless))));
        assert_eq!(ticks, [6, 11, 21, 41, 61, 61]);
    }

    #[test]
    fn one_answer_makes_up_for_all_questions_before_it() {
        let mut liveness = Liveness::new(Nanos(0), Peer::Replaceable(0));
        for tick in 1..100 {
            if tick % 5 == 0 {
                liveness.heard();
            }
            assert_ne!(liveness.need(Nanos(tick * HEARTBEAT), &limits()), Need::Dead, "tick {tick}");
        }
    }

    #[test]
    fn who_comes_late_to_its_own_ticks_judges_nobody_however_long_it_goes_on() {
        for late in [HEARTBEAT / 2 + 1, HEARTBEAT, 30 * HEARTBEAT] {
            let mut liveness = Liveness::new(Nanos(0), Peer::Replaceable(0));
            let mut now = 0;
            for _ in 0..100 {
                now += HEARTBEAT + late;
                assert_ne!(liveness.need(Nanos(now), &limits()), Need::Dead, "{late} late");
            }
        }
    }

    #[test]
    fn spans_that_were_not_observed_neither_count_nor_forgive() {
        let mut liveness = Liveness::new(Nanos(0), Peer::Replaceable(0));
        let mut now = 0;
        let mut needs = Vec::new();
        for observed in [true, true, false, true, true, false, true, true] {
            now += if observed { HEARTBEAT } else { 40 * HEARTBEAT };
            needs.push(liveness.need(Nanos(now), &limits()));
        }
        assert!(needs[..7].iter().all(|need| *need == Need::Heartbeat), "{needs:?}");
        assert_eq!(needs[7], Need::Dead);
    }

    #[test]
    fn a_question_is_answered_at_once_and_an_answer_is_not() {
        let mut liveness = Liveness::new(Nanos(0), Peer::Only);
        assert!(liveness.owes_answer(Nanos(HEARTBEAT), &limits()));
        liveness.spoke(Nanos(HEARTBEAT));
        assert!(!liveness.owes_answer(Nanos(HEARTBEAT + 1), &limits()));
    }
}
