//! How long a thread that waits for a datagram offers its core to others before it sleeps.
//!
//! A sleep costs time three times over: in the thread that sleeps, in the thread that wakes it,
//! and, on a machine of few cores, in a third thread whose work the waking interrupts. A yield
//! costs a tenth of that, and after several yields a thread often finds all that it waits for at
//! once. So a waiter yields for about the time that a small operation takes, and looks in between.
//! That pays only if the wait usually ends in that time, and only while no other thread computes on
//! the core: a thread that yields to one that does not yield back gets the core again milliseconds
//! later, whereas a sleeper that is woken interrupts it at once.
//!
//! ```text
//!              begin                     goes_on             end(found)
//!   waiter ---------------> Patience --> Turns: yield, look, yield, look ... ---> Patience learns
//!              None: sleep at once          |
//!                                           '-- time over, or the core was kept from us: sleep
//! ```

use std::time::Duration;

use crate::clock::Reading;
use crate::processor::{Machine, Processor};

/// How long, and how often, a thread yields at most in one wait.
#[derive(Clone, Copy, Debug)]
pub struct Yields {
    /// The longest time.
    pub span: Duration,
    /// The largest number.
    pub count: u32,
    /// How long it takes at most until the core comes back after some yields, if the threads that
    /// had it wait, too. If it takes longer, it went to a thread that computes.
    pub turn: Duration,
}

/// Threads that only wait give the core back within microseconds.
pub const TURN: Duration = Duration::from_millis(1);

/// What a waiter has learnt from its earlier waits.
#[derive(Debug)]
pub struct Patience {
    most: Yields,
    /// How many of the next waits sleep at once.
    rest: u32,
    /// How many waits failed since the last that succeeded.
    failures: u32,
    /// How often another thread kept the core, less what successful waits have made up for.
    preemptions: u32,
    /// Successful waits since the last change of `preemptions`.
    successes: u32,
}

/// One wait's yields.
#[derive(Debug)]
pub struct Turns {
    end: Reading,
    left: u32,
    before: Reading,
    /// In nanoseconds.
    longest: u64,
    preempted: bool,
}

impl Patience {
    /// Lets a wait have at most these yields.
    pub fn new(most: Yields) -> Patience {
        Patience { most, rest: 0, failures: 0, preemptions: 0, successes: 0 }
    }

    /// Begins a wait at `now`: the yields that it may do, or `None` if the thread should sleep at
    /// once.
    pub fn begin(&mut self, now: Reading) -> Option<Turns> {
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        let Yields { span, count, turn } = self.most;
        let (end, longest) = (now.after(span.as_nanos() as u64), turn.as_nanos() as u64);
        Some(Turns { end, left: count, before: now, longest, preempted: false })
    }

    /// Ends a wait; `found` says whether that for which it waited had come when the thread last
    /// looked.
    pub fn end(&mut self, turns: &Turns, found: bool) {
        if turns.preempted {
            // Once may be chance: a daemon ran, or a compiler of low priority. After four times,
            // every yield is taken to cost milliseconds.
            self.rest = 4u32.pow(self.preemptions) - 1;
            self.preemptions = (self.preemptions + 1).min(PREEMPTIONS_MAX);
            self.successes = 0;
        } else if found {
            self.failures = 0;
            self.successes += 1;
            if self.successes >= FORGIVEN {
                self.preemptions = self.preemptions.saturating_sub(1);
                self.successes = 0;
            }
        } else {
            // One or two failures may be chance; after six, one wait in sixteen tries again.
            self.rest = (1 << self.failures.saturating_sub(1)) - 1;
            self.failures = (self.failures + 1).min(FAILURES_MAX);
        }
    }
}

impl Turns {
    /// Whether there is a turn left.
    pub fn goes_on(&self) -> bool {
        self.left > 0 && !self.preempted && self.before < self.end
    }

    /// When the thread last looked, or began to wait.
    pub fn last_look(&self) -> Reading {
        self.before
    }

    /// Offers the core to other threads up to four times, and looks after each; returns whether a
    /// look found something.
    ///
    /// What happens in between is kept small on purpose. Where more processes share a core than the
    /// processor can keep address spaces apart for, each turn begins with no page translated. Every
    /// page that the turn touches, of code or of data, then costs 0.2 us for walking through the
    /// page tables. Reading a clock touches three pages, and so does the C library's wrapper of a
    /// call that may block. So system calls are made directly, and everything is inlined.
    #[inline]
    pub fn look(&mut self, look: impl FnMut() -> bool) -> bool {
        self.look_on(&Machine, look)
    }

    #[inline]
    fn look_on(&mut self, core: &impl Processor, mut look: impl FnMut() -> bool) -> bool {
        let mut found = false;
        let mut count = 0;
        while !found && count < LOOKS.min(self.left) {
            core.give_way();
            found = look();
            count += 1;
        }
        self.note(core.now(), count);
        found
    }

    fn note(&mut self, after: Reading, count: u32) {
        self.preempted = after.since(self.before) > self.longest;
        self.before = after;
        self.left -= count;
    }
}

/// Looks between two readings of the clock.
const LOOKS: u32 = 4;
/// At this count one wait in 256 still tries, whatever happened: programs that have only just been
/// started keep each other from the core, and that must not count against them for long.
const PREEMPTIONS_MAX: u32 = 4;
/// So many successful waits make up for one time that the core was kept.
const FORGIVEN: u32 = 32;
const FAILURES_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::Simulated;

    const MOST: Yields = Yields { span: Duration::from_micros(300), count: 30, turn: TURN };

    /// Waits until the `finding`-th look, in vain without one. Returns whether it yielded at all.
    fn wait(patience: &mut Patience, core: &Simulated, finding: Option<u32>) -> bool {
        let Some(mut turns) = patience.begin(core.now()) else { return false };
        let (mut looks, mut found) = (0, false);
        while !found && turns.goes_on() {
            found = turns.look_on(core, || {
                looks += 1;
                finding == Some(looks)
            });
        }
        patience.end(&turns, found);
        true
    }

    /// How many waits sleep at once from now on.
    fn rests(patience: &mut Patience, core: &Simulated) -> u32 {
        let mut rests = 0;
        while patience.begin(core.now()).is_none() {
            rests += 1;
        }
        rests
    }

    #[test]
    fn a_wait_has_as_many_yields_as_it_may() {
        let core = Simulated::yielding_for(500);
        assert!(wait(&mut Patience::new(MOST), &core, None));
        assert_eq!(core.yields.get(), 30, "15 us are over, far less than it may take");
    }

    #[test]
    fn a_wait_ends_when_its_time_is_over() {
        let core = Simulated::yielding_for(20_000);
        wait(&mut Patience::new(MOST), &core, None);
        assert_eq!(core.yields.get(), 16, "300 us have fifteen yields, and the clock is read after four");
    }

    #[test]
    fn a_wait_ends_with_the_look_that_finds_something() {
        let core = Simulated::yielding_for(500);
        let mut patience = Patience::new(MOST);
        wait(&mut patience, &core, Some(6));
        assert_eq!((core.yields.get(), rests(&mut patience, &core)), (6, 0));
    }

    #[test]
    fn a_turn_may_take_as_long_as_those_need_to_whom_the_core_goes() {
        let core = Simulated::yielding_for(1_500_000);
        let longer = Yields { span: Duration::from_millis(500), turn: Duration::from_millis(2), ..MOST };
        for (most, yields) in [(longer, 30), (Yields { turn: TURN, ..longer }, 1)] {
            core.yields.set(0);
            let mut patience = Patience::new(most);
            let mut turns = patience.begin(core.now()).unwrap();
            while turns.goes_on() {
                turns.look_on(&core, || true);
            }
            patience.end(&turns, true);
            assert_eq!((core.yields.get(), patience.preemptions), (yields, u32::from(yields == 1)));
        }
    }

    #[test]
    fn the_machine_itself_yields_and_tells_the_time() {
        let began = Reading::now();
        let mut turns = Patience::new(MOST).begin(began).unwrap();
        let mut looks = 0;
        while turns.goes_on() {
            turns.look(|| {
                looks += 1;
                false
            });
        }
        assert!(turns.last_look() > began && (1..=30).contains(&looks), "{looks}");
    }

    #[test]
    fn who_waits_in_vain_tries_ever_less_often() {
        let core = Simulated::yielding_for(500);
        let mut patience = Patience::new(MOST);
        let mut seen = Vec::new();
        for _ in 0..7 {
            assert!(wait(&mut patience, &core, None));
            seen.push(rests(&mut patience, &core));
        }
        assert_eq!(seen, [0, 0, 1, 3, 7, 15, 15]);
        assert!(wait(&mut patience, &core, Some(1)));
        assert!(wait(&mut patience, &core, None));
        assert_eq!(rests(&mut patience, &core), 0, "one success makes up for all failures");
    }

    #[test]
    fn who_loses_the_core_rests_long_and_longer_the_next_time() {
        let core = Simulated::yielding_for(3_000_000);
        let mut patience = Patience::new(Yields { span: Duration::from_millis(500), ..MOST });
        for rest in [0, 3, 15, 63, 255, 255] {
            let before = core.yields.get();
            assert!(wait(&mut patience, &core, Some(1)));
            assert_eq!(core.yields.get() - before, 1);
            assert_eq!(rests(&mut patience, &core), rest);
        }
        core.yield_ns.set(500);
        for _ in 0..FORGIVEN * PREEMPTIONS_MAX {
            assert!(wait(&mut patience, &core, Some(1)));
        }
        assert_eq!(patience.preemptions, 0);
    }
}
