//! How fast this machine is at the moment, compared with its own best.
//!
//! A virtual machine shares its cores with other machines. At times a core does half of what it
//! can, and nothing inside the machine says so, not even stolen time, if the other thread of the
//! same physical core is busy. What does show it is a fixed piece of work that takes longer. The
//! figures of a comparison are worth what the machine was worth while they were taken. So the
//! comparison looks before and after every launch, waits for a steady moment as long as it has
//! patience, and measures again what was disturbed. Only the fixed work decides this, never the
//! figures themselves.

use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A machine that is slower than at its best by no more than this factor is steady: clock
/// frequencies alone vary by a few percent.
pub const STEADY: f64 = 1.2;

/// Tells how fast the machine is, and how long to wait until it is faster.
#[derive(Debug)]
pub struct Pace {
    /// Cores that this process may use.
    cores: Vec<usize>,
    /// Shortest time of one piece of work seen so far.
    best: Duration,
    /// The slow-down up to which the machine counts as steady.
    steady: f64,
    /// Time left for waiting and for measuring again.
    patience: Duration,
    /// The part of it that the present scenario may spend.
    share: Duration,
    /// What the patience was spent on.
    pub spent: Spent,
}

/// What was done for steadier figures.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Spent {
    /// Time in which nothing was measured, for the machine to become steady.
    pub waited: Duration,
    /// Launches that were measured again.
    pub repeated: u32,
}

/// Whether a measurement may be made again. One that shows a hang or a failure stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    /// It may.
    Allowed,
    /// What was seen must not be lost.
    Never,
}

impl Pace {
    /// A pace with this much time to wait and to measure again.
    pub fn new(patience: Duration) -> Pace {
        let allowed = sched_getaffinity(None).unwrap_or_default();
        let cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
        let mut pace =
            Pace { cores, best: Duration::MAX, steady: STEADY, patience, share: patience, spent: Spent::default() };
        // The first moments wake the cores up, so what they show is not kept.
        pace.slowdown();
        pace
    }

    /// Called before each scenario, when `left` are still to come including it: sets its share of
    /// the patience, so that an unsteady hour does not leave the last scenarios without any. What
    /// one scenario does not spend remains for those after it.
    pub fn allot(&mut self, left: usize) {
        self.share = self.patience / u32::try_from(left.max(1)).unwrap_or(u32::MAX);
    }

    fn spend(&mut self, time: Duration) {
        self.patience = self.patience.saturating_sub(time);
        self.share = self.share.saturating_sub(time);
    }

    /// How many times longer than at its best the slowest core takes for its work, while all cores
    /// work; 1 is as fast as it has ever been.
    pub fn slowdown(&mut self) -> f64 {
        let times: Vec<Times> = std::thread::scope(|scope| {
            let all: Vec<_> = self.cores.iter().map(|core| scope.spawn(|| work_on(*core))).collect();
            all.into_iter().filter_map(|one| one.join().ok()).collect()
        });
        self.best = times.iter().map(|one| one.shortest).fold(self.best, Duration::min);
        let longest = times.iter().map(|one| one.mean).max().unwrap_or(self.best);
        longest.as_secs_f64() / self.best.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Measures when the machine is steady, and again if it turns out that it was not; keeps the
    /// steadiest attempt. Returns the slow-down at the time of that attempt.
    pub fn steadily<T>(&mut self, mut measure: impl FnMut() -> (T, Again)) -> (T, f64) {
        let mut kept = self.attempt(&mut measure);
        let mut attempts = 1;
        while kept.again == Again::Allowed
            && kept.slowdown > self.steady
            && attempts < ATTEMPTS
            && self.share >= kept.cost
        {
            self.spend(kept.cost);
            self.spent.repeated += 1;
            attempts += 1;
            let next = self.attempt(&mut measure);
            if next.again == Again::Never || next.slowdown < kept.slowdown {
                kept = next;
            }
        }
        (kept.value, kept.slowdown)
    }

    fn attempt<T>(&mut self, measure: &mut impl FnMut() -> (T, Again)) -> Attempt<T> {
        let before = self.wait();
        let start = Instant::now();
        let (value, again) = measure();
        let cost = start.elapsed();
        Attempt { value, again, slowdown: before.max(self.slowdown()), cost }
    }

    /// Waits until the machine is steady, as long as the scenario's share lasts but not too long
    /// before one launch; returns the slow-down at the end.
    fn wait(&mut self) -> f64 {
        let start = Instant::now();
        let most = self.share.min(WAIT_MOST);
        let mut slowdown = self.slowdown();
        while slowdown > self.steady && start.elapsed() < most {
            std::thread::sleep(LOOK_AGAIN);
            slowdown = self.slowdown();
        }
        if !most.is_zero() {
            let waited = start.elapsed();
            self.spend(waited);
            self.spent.waited += waited;
        }
        slowdown
    }
}

struct Attempt<T> {
    value: T,
    again: Again,
    slowdown: f64,
    cost: Duration,
}

/// Times of one core for its pieces of work.
struct Times {
    mean: Duration,
    shortest: Duration,
}

fn work_on(core: usize) -> Times {
    let mut only = CpuSet::new();
    only.set(core);
    // If this process may not use the core, the work is measured on the core on which the thread
    // runs.
    let _ = sched_setaffinity(None, &only);
    let start = Instant::now();
    let mut shortest = Duration::MAX;
    for _ in 0..PIECES {
        let piece = Instant::now();
        let mut number = 1_u64;
        for _ in 0..STEPS {
            number = std::hint::black_box(number.wrapping_mul(3) + 1);
        }
        shortest = shortest.min(piece.elapsed());
    }
    Times { mean: start.elapsed() / PIECES, shortest }
}

/// Pieces of work of one look, some 200 us each: long enough to meet disturbances that come and go
/// within milliseconds.
const PIECES: u32 = 50;
/// Multiplications of one piece.
const STEPS: u32 = 100_000;
/// How often one launch is measured at most.
const ATTEMPTS: u32 = 3;
/// Longest wait before one launch.
const WAIT_MOST: Duration = Duration::from_secs(30);
/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    /// A pace for which the machine is never steady.
    fn never_steady(patience: Duration) -> Pace {
        Pace { steady: 0.0, ..Pace::new(patience) }
    }

    #[test]
    fn slow_downs_are_relative_to_the_best() {
        let mut pace = Pace::new(Duration::ZERO);
        assert!(pace.slowdown() >= 1.0);
        pace.best = Duration::from_nanos(1);
        assert!(pace.slowdown() > 100.0);
    }

    #[test]
    fn without_patience_everything_is_measured_once() {
        let mut times = 0;
        let (value, slowdown) = never_steady(Duration::ZERO).steadily(|| {
            times += 1;
            (times, Again::Allowed)
        });
        assert_eq!(value, 1);
        assert!(slowdown >= 1.0);
    }

    #[test]
    fn what_is_disturbed_is_measured_again_but_not_for_ever() {
        let mut pace = never_steady(Duration::from_millis(500));
        let mut times = 0;
        pace.steadily(|| {
            times += 1;
            ((), Again::Allowed)
        });
        // The first wait spends all of the patience, so only attempts that cost next to nothing
        // could follow.
        assert!((1..=ATTEMPTS).contains(&times), "{times}");
        assert!(pace.spent.waited >= Duration::from_millis(500), "{:?}", pace.spent);
        let mut steady = Pace { steady: f64::INFINITY, ..Pace::new(Duration::from_secs(60)) };
        let mut times = 0;
        steady.steadily(|| {
            times += 1;
            ((), Again::Allowed)
        });
        assert_eq!((times, steady.spent.repeated), (1, 0));
    }

    #[test]
    fn no_scenario_spends_what_others_need() {
        let patience = Duration::from_secs(60);
        let mut pace = never_steady(patience);
        pace.allot(200);
        assert_eq!(pace.share, Duration::from_millis(300));
        pace.steadily(|| ((), Again::Allowed));
        let waited = pace.spent.waited;
        // This is far less than all of the patience, however long the last look took.
        assert!(waited >= Duration::from_millis(300) && waited < WAIT_MOST / 2, "{waited:?}");
        assert_eq!((pace.share, pace.patience), (Duration::ZERO, patience - waited));
        pace.allot(1);
        assert_eq!(pace.share, patience - waited, "what one does not spend is there for the last");
    }

    #[test]
    fn a_failure_is_kept() {
        let mut times = 0;
        let (value, _) = never_steady(Duration::from_millis(300)).steadily(|| {
            times += 1;
            (times, if times == 1 { Again::Never } else { Again::Allowed })
        });
        assert_eq!((value, times), (1, 1));
    }
}
