//! How long a thread that waits for a datagram offers its core to others before it sleeps.
//!
//! Sleeping costs the thread, whoever wakes it, and on a machine of few cores the interrupted work
//! of a third one; a yield costs a tenth of that, and with several yields a thread often finds all
//! that it waits for at once. So a waiter yields for about the time that a small operation takes
//! and looks in between. That pays only if the wait usually ends in that time, and while nobody
//! else computes on the core: who yields to a thread that does not yield back gets the core again
//! milliseconds later, but a sleeper that is woken interrupts it at once.
//!
//! ```text
//!              begin                     goes_on             end(found)
//!   waiter ---------------> Patience --> Turns: yield, look, yield, look ... ---> Patience learns
//!              None: sleep at once          |
//!                                           '-- time over, or the core was kept from us: sleep
//! ```

use std::time::Duration;

use crate::clock::Reading;

/// What a waiter has learnt from its earlier waits.
#[derive(Debug)]
pub struct Patience {
    /// Longest time and largest number of yields of one wait.
    span: Duration,
    yields: u32,
    /// Waits to come that sleep at once.
    rest: u32,
    /// Waits without success since the last that had some.
    failures: u32,
    /// How often somebody kept the core, less what good waits have made up for.
    robberies: u32,
    /// Good waits since the last change of `robberies`.
    successes: u32,
}

/// One wait's yields.
#[derive(Debug)]
pub struct Turns {
    end: Reading,
    left: u32,
    before: Reading,
    robbed: bool,
}

impl Patience {
    /// Waits of at most `span` and `yields` yields.
    pub fn new(span: Duration, yields: u32) -> Patience {
        Patience { span, yields, rest: 0, failures: 0, robberies: 0, successes: 0 }
    }

    /// At the beginning of a wait, which is `now`: the yields it may do, or `None` if it should
    /// sleep at once.
    pub fn begin(&mut self, now: Reading) -> Option<Turns> {
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        Some(Turns { end: now.after(self.span.as_nanos() as u64), left: self.yields, before: now, robbed: false })
    }

    /// At its end: whether what was waited for had come when the thread last looked.
    pub fn end(&mut self, turns: &Turns, found: bool) {
        if turns.robbed {
            // Once is chance: a daemon, a compiler with low priority. Four times: every yield costs
            // milliseconds.
            self.rest = 4u32.pow(self.robberies) - 1;
            self.robberies = (self.robberies + 1).min(ROBBERIES_MAX);
            self.successes = 0;
        } else if found {
            self.failures = 0;
            self.successes += 1;
            if self.successes >= FORGIVEN {
                self.robberies = self.robberies.saturating_sub(1);
                self.successes = 0;
            }
        } else {
            // A failure or two may be chance; after six, one wait in sixteen tries again.
            self.rest = (1 << self.failures.saturating_sub(1)) - 1;
            self.failures = (self.failures + 1).min(FAILURES_MAX);
        }
    }
}

impl Turns {
    /// Whether there is a turn left.
    pub fn goes_on(&self) -> bool {
        self.left > 0 && !self.robbed && self.before < self.end
    }

    /// When the thread last looked, or began.
    pub fn last_look(&self) -> Reading {
        self.before
    }

    /// Offers the core to others up to four times, and looks after each; whether a look found
    /// something.
    ///
    /// What happens in between is kept small on purpose. Where more processes share a core than the
    /// processor keeps address spaces apart for, each turn begins with no page translated, and
    /// every page that it touches, of code or of data, costs 0.2 us of walking through the page
    /// tables. A clock is three of them, and so is the C library's wrapper of a call that may
    /// block. So the calls are made directly, and everything is in line.
    #[inline]
    pub fn look(&mut self, mut look: impl FnMut() -> bool) -> bool {
        let mut found = false;
        let mut count = 0;
        while !found && count < LOOKS.min(self.left) {
            rustix::thread::sched_yield();
            found = look();
            count += 1;
        }
        self.note(Reading::now(), count);
        found
    }

    fn note(&mut self, after: Reading, count: u32) {
        self.robbed = after.since(self.before) > ROBBED;
        self.before = after;
        self.left -= count;
    }
}

/// Looks between two readings of the clock.
const LOOKS: u32 = 4;
/// Turns that take longer went to somebody who computes: threads that wait as we do give the core
/// back in microseconds. Nanoseconds.
const ROBBED: u64 = 1_000_000;
/// One wait in 256 tries again, whatever happened: programs that have only just been started keep
/// each other from the core, and that must not be held against them for long.
const ROBBERIES_MAX: u32 = 4;
/// So many good waits make up for a robbery.
const FORGIVEN: u32 = 32;
const FAILURES_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn patience() -> Patience {
        Patience::new(Duration::from_millis(500), 30)
    }

    fn wait(patience: &mut Patience, found: bool) {
        let turns = patience.begin(Reading::now()).expect("it rests no more");
        patience.end(&turns, found);
    }

    #[test]
    fn a_wait_has_as_many_yields_as_it_may() {
        let mut turns = patience().begin(Reading::now()).unwrap();
        let mut count = 0;
        while turns.goes_on() {
            turns.look(|| false);
            count += 4;
        }
        assert!(count == 32 && turns.left == 0 || turns.robbed);
    }

    #[test]
    fn a_wait_ends_when_its_time_is_over() {
        let mut turns = Patience::new(Duration::from_micros(100), 30).begin(Reading::now()).unwrap();
        assert!(turns.goes_on());
        turns.note(turns.before.after(101_000), 1);
        assert!(!turns.goes_on());
    }

    #[test]
    fn who_waits_in_vain_tries_ever_less_often() {
        let mut patience = patience();
        let mut seen = Vec::new();
        for _ in 0..7 {
            let turns = patience.begin(Reading::now()).unwrap();
            patience.end(&turns, false);
            let mut rest = 0;
            while patience.rest > 0 {
                assert!(patience.begin(Reading::now()).is_none());
                rest += 1;
            }
            seen.push(rest);
        }
        assert_eq!(seen, [0, 0, 1, 3, 7, 15, 15]);
        wait(&mut patience, true);
        wait(&mut patience, false);
        assert_eq!(patience.rest, 0);
    }

    #[test]
    fn who_loses_the_core_rests_long_and_longer_the_next_time() {
        let mut patience = patience();
        for rest in [0, 3, 15, 63, 255, 255] {
            let mut turns = patience.begin(Reading::now()).unwrap();
            turns.note(turns.before.after(3_000_000), 1);
            assert!(!turns.goes_on());
            patience.end(&turns, true);
            assert_eq!(patience.rest, rest);
            patience.rest = 0;
        }
        for _ in 0..FORGIVEN * ROBBERIES_MAX {
            wait(&mut patience, true);
        }
        assert_eq!(patience.robberies, 0);
    }
}
