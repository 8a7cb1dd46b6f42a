//! Questions over one stream connection: when to ask, and when the other side counts as dead.
//!
//! Silence alone proves nothing: this side may have had no processor, or may not have read what was
//! there. So silence is counted from tick to tick, and only the time until a tick was due: by then
//! this side was awake, and it has read its socket since. What a tick came late was this side's own
//! wait, and does not count. On a machine on which every tick comes late, patience grows with that.
//!
//! How long silence may last depends on what a wrong verdict costs. A node that does not answer may
//! only lack a processor. Where the job goes on at another one, a wrong verdict costs an epoch, so
//! the verdict comes early, and later after each epoch that bore no fruit; else it is an error, and
//! of a span whose tick came very late nothing counts at all.
//!
//! ```text
//!   tick        heard  tick        tick  tick  tick due     came    tick
//!    |            |     | asks      | asks | asks  |          | asks  |
//!    |------------|-----|-----------|------|-------|..........|-------|
//!                 counts . . . . . . . . . . . . . . not counted . . . . . .
//! ```
//! Ticks come once per heartbeat, and more often while questions wait for an answer.

use crate::limits::Limits;
use crate::time::Nanos;

/// The kind of peer at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// It may compute or be stopped in a debugger, and nothing else can do its part: a rank, or a
    /// node with neither backup nor deputy.
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
    pub(crate) fn patience(self, limits: &Limits) -> Nanos {
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
    /// Until when silence has been counted, or when something came last.
    since: Nanos,
    /// How long nothing has come, as far as this side can tell.
    silence: Nanos,
    /// The number of ticks since something came, the first included.
    ticks: u64,
}

/// A moment at which this side looks after its connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tick {
    /// When it was due.
    pub due: Nanos,
    /// When this side came to it.
    pub now: Nanos,
}

impl Tick {
    /// How much of the time since then this side can vouch for. It slept for what the tick came
    /// late, and `is_strict` says that it then vouches for nothing if that was long.
    pub(crate) fn observed(self, since: Nanos, is_strict: bool, limits: &Limits) -> Nanos {
        let is_late = self.now.since(self.due).0 > limits.heartbeat.0 / 2;
        if is_strict && is_late { Nanos(0) } else { self.due.since(since) }
    }
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
        Liveness { peer, spoke: now, since: now, silence: Nanos(0), ticks: 0 }
    }

    /// Something came.
    pub fn heard(&mut self, now: Nanos) {
        (self.since, self.silence, self.ticks) = (now, Nanos(0), 0);
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

    /// What is due at a tick. The caller calls it at every tick, after it has read everything that
    /// had come.
    pub fn need(&mut self, tick: Tick, limits: &Limits) -> Need {
        let observed = tick.observed(self.since, self.peer == Peer::Only, limits);
        self.silence = self.silence + observed;
        self.since = tick.now;
        self.ticks += 1;
        // The first tick came upon a side that had spoken, and asked it at most.
        let asked_enough = self.ticks > QUESTIONS_MIN;
        if asked_enough && self.silence >= self.peer.patience(limits) {
            Need::Dead
        } else if self.is_in_doubt() || tick.now.since(self.spoke) >= limits.heartbeat {
            Need::Heartbeat
        } else {
            Need::Nothing
        }
    }

    /// Whether questions wait for an answer, so that the next tick is due early.
    pub fn is_in_doubt(&self) -> bool {
        self.ticks > 1
    }
}

/// When the next tick of a side is due, whose connections are or are not in doubt.
pub fn next_tick(now: Nanos, in_doubt: bool, limits: &Limits) -> Nanos {
    let span = if in_doubt { limits.heartbeat.0 / TICKS_IN_DOUBT } else { limits.heartbeat.0 };
    now + Nanos(span.max(1))
}

/// A node that can be replaced is dead if it leaves questions without an answer for this long, and
/// for twice as long after each epoch without fruit. A job may have less patience, but not more.
pub const NODE_PATIENCE: Nanos = Nanos::from_millis(5_000);

/// Beyond that a job's own patience is less, as a rule.
const DOUBLINGS_MAX: u32 = 16;

/// At least this many questions are asked, however long the periods are.
const QUESTIONS_MIN: u64 = 3;

/// So many times in a heartbeat this side looks, and asks, while questions wait for an answer.
const TICKS_IN_DOUBT: u64 = 4;

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
            control_memory: 1 << 20,
            stream_threshold: 0,
            lease_operations: 0,
            heartbeat: Nanos(HEARTBEAT),
            dead_after: Nanos(60 * HEARTBEAT),
        }
    }

    /// This side of a connection, and its clock.
    struct Side {
        liveness: Liveness,
        due: Nanos,
        questions: u64,
    }

    impl Side {
        fn new(peer: Peer) -> Side {
            Side { liveness: Liveness::new(Nanos(0), peer), due: Nanos(HEARTBEAT), questions: 0 }
        }

        /// Comes to its next tick, so much later than that was due.
        fn tick(&mut self, late: u64) -> Need {
            let now = self.due + Nanos(late);
            let need = self.liveness.need(Tick { due: self.due, now }, &limits());
            if need == Need::Heartbeat {
                self.liveness.spoke(now);
                self.questions += 1;
            }
            self.due = next_tick(now, self.liveness.is_in_doubt(), &limits());
            need
        }

        /// The time after which the other side counts as dead, if every tick is so late.
        fn verdict(mut self, late: u64) -> Option<u64> {
            for _ in 0..1_000 {
                let now = self.due.0 + late;
                if self.tick(late) == Need::Dead {
                    assert!(self.questions >= QUESTIONS_MIN);
                    return Some(now);
                }
            }
            None
        }
    }

    /// The time in milliseconds until the other side counts as dead, if this side is on time.
    fn patience(peer: Peer) -> Option<u64> {
        Side::new(peer).verdict(0).map(|nanos| nanos / 1_000_000)
    }

    #[test]
    fn who_can_be_replaced_has_seconds_to_answer_and_who_cannot_as_long_as_the_job_says() {
        assert_eq!((patience(Peer::node(Some(0))), patience(Peer::Only)), (Some(5_000), Some(60_000)));
        assert_eq!(patience(Peer::node(None)), Some(60_000), "a wrong verdict would be an error");
    }

    #[test]
    fn patience_doubles_with_every_epoch_without_fruit_up_to_the_jobs_own() {
        let spans = [0, 1, 2, 3, 4, u32::MAX].map(|fruitless| patience(Peer::node(Some(fruitless))));
        assert_eq!(spans, [5_000, 10_000, 20_000, 40_000, 60_000, 60_000].map(Some));
    }

    #[test]
    fn silence_begins_with_the_last_word_wherever_that_lies_between_two_ticks() {
        for spoken in [1, HEARTBEAT / 3, HEARTBEAT - 1] {
            let mut side = Side::new(Peer::Replaceable(0));
            side.tick(0);
            let last = side.due.0 - HEARTBEAT + spoken;
            side.liveness.heard(Nanos(last));
            let verdict = side.verdict(0).unwrap() - last;
            assert!((NODE_PATIENCE.0..NODE_PATIENCE.0 + HEARTBEAT / TICKS_IN_DOUBT).contains(&verdict), "{verdict}");
        }
    }

    #[test]
    fn one_answer_makes_up_for_all_questions_before_it() {
        let mut side = Side::new(Peer::Replaceable(0));
        for tick in 1..1_000 {
            if tick % 13 == 0 {
                side.liveness.heard(side.due);
            }
            assert_ne!(side.tick(0), Need::Dead, "tick {tick}");
        }
    }

    #[test]
    fn what_a_tick_comes_late_prolongs_the_patience_with_a_node_by_as_much() {
        for late in [HEARTBEAT / 100, HEARTBEAT / 4, HEARTBEAT, 30 * HEARTBEAT] {
            // Two ticks after a heartbeat, and the others after a part of it.
            let ticks = 2 + 3 * TICKS_IN_DOUBT;
            assert_eq!(Side::new(Peer::Replaceable(0)).verdict(late), Some(NODE_PATIENCE.0 + ticks * late));
        }
    }

    #[test]
    fn who_comes_very_late_to_its_own_ticks_gives_nobody_up_that_cannot_be_replaced() {
        for late in [HEARTBEAT / 2 + 1, HEARTBEAT, 30 * HEARTBEAT] {
            assert_eq!(Side::new(Peer::Only).verdict(late), None, "{late} late");
        }
    }

    #[test]
    fn what_was_not_observed_neither_counts_nor_forgives() {
        let mut side = Side::new(Peer::Only);
        let mut observed = Nanos(0);
        for turn in 0.. {
            let (since, late) = (side.liveness.since, if turn % 3 == 0 { 40 * HEARTBEAT } else { 0 });
            observed = observed + Nanos(if late == 0 { side.due.since(since).0 } else { 0 });
            let is_over = observed >= limits().dead_after;
            assert_eq!(side.tick(late) == Need::Dead, is_over, "turn {turn}");
            if is_over {
                break;
            }
        }
    }

    #[test]
    fn a_side_that_speaks_is_asked_once_per_heartbeat_and_one_in_doubt_more_often() {
        let mut side = Side::new(Peer::Only);
        for _ in 0..10 {
            side.liveness.heard(side.due);
            assert_eq!(side.tick(0), Need::Heartbeat);
        }
        assert_eq!((side.due, side.liveness.is_in_doubt()), (Nanos(11 * HEARTBEAT), false));
        side.tick(0);
        assert_eq!(side.due, Nanos(11 * HEARTBEAT + HEARTBEAT / TICKS_IN_DOUBT));
    }

    #[test]
    fn a_question_is_answered_at_once_and_an_answer_is_not() {
        let mut liveness = Liveness::new(Nanos(0), Peer::Only);
        assert!(liveness.owes_answer(Nanos(HEARTBEAT), &limits()));
        liveness.spoke(Nanos(HEARTBEAT));
        assert!(!liveness.owes_answer(Nanos(HEARTBEAT + 1), &limits()));
    }
}
