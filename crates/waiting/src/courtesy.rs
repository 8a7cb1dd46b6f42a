//! How a thread that tests a request in a loop of the program's lets others run. Where there are
//! more threads than cores, the thread for which it waits needs a core.
//!
//! A yield is enough where the scheduler then runs another thread, and it costs nothing where there
//! is no other. But a scheduler that shares time fairly lets a thread that yields go on until its
//! share is used up, which takes milliseconds. A thread that lost its core while it tested shares
//! this core with another one. From then on it sleeps for a moment now and then, until its
//! operation is done.

use std::time::Duration;

use crate::processor::{Machine, Processor};

/// What a request remembers of its thread's tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Courtesy {
    /// The number of tests in vain since the last step.
    misses: u32,
    /// How often the thread had lost its core when that was last asked.
    lost: i64,
    has_company: bool,
}

/// What a thread does before its next test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It looks again at once.
    Look,
    /// It offers its core to others.
    GiveWay,
    /// It sleeps.
    Sleep,
}

impl Courtesy {
    /// Returns what the thread is to do after a test in vain.
    pub fn missed(&mut self) -> Step {
        self.missed_on(&Machine)
    }

    fn missed_on(&mut self, core: &impl Processor) -> Step {
        self.misses = self.misses.wrapping_add(1);
        if !self.misses.is_multiple_of(MISSES_TO_YIELD) {
            return Step::Look;
        }
        // The program may compute between two tests, so a clock would not tell whose time went by.
        if !self.has_company && self.misses.is_multiple_of(MISSES_TO_ASK) {
            let lost = core.times_lost();
            self.has_company = self.misses > MISSES_TO_ASK && lost != self.lost;
            self.lost = lost;
        }
        if self.has_company { Step::Sleep } else { Step::GiveWay }
    }

    /// Forgets everything after a step, because the next step may come quickly.
    pub fn stepped(&mut self) {
        *self = Courtesy::default();
    }
}

impl Step {
    /// Carries the step out. A sleep lasts for `nap`.
    pub fn take(self, nap: Duration) {
        match self {
            Step::Look => {}
            Step::GiveWay => Machine.give_way(),
            Step::Sleep => std::thread::sleep(nap),
        }
    }
}

const MISSES_TO_YIELD: u32 = 4;
/// A small operation is done before this many tests, and then the kernel is never asked.
const MISSES_TO_ASK: u32 = 64;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::processor::Simulated;

    /// The steps of so many tests in vain.
    fn steps(courtesy: &mut Courtesy, core: &Simulated, tests: u32) -> Vec<Step> {
        (0..tests).map(|_| courtesy.missed_on(core)).collect()
    }

    fn count(steps: &[Step], step: Step) -> u32 {
        steps.iter().filter(|each| **each == step).count() as u32
    }

    #[test]
    fn the_first_looks_only_yield() {
        let core = Simulated::yielding_for(500);
        // The thread has a past, which must not count against this wait.
        core.lost.set(17);
        let steps = steps(&mut Courtesy::default(), &core, MISSES_TO_ASK);
        assert_eq!(count(&steps, Step::GiveWay), MISSES_TO_ASK / MISSES_TO_YIELD);
        assert_eq!(count(&steps, Step::Sleep), 0);
    }

    #[test]
    fn who_keeps_its_core_yields_for_ever() {
        let (core, mut courtesy) = (Simulated::yielding_for(500), Courtesy::default());
        let steps = steps(&mut courtesy, &core, 1_000 * MISSES_TO_ASK);
        assert_eq!(count(&steps, Step::GiveWay), 1_000 * MISSES_TO_ASK / MISSES_TO_YIELD);
        assert_eq!(count(&steps, Step::Sleep), 0);
    }

    #[test]
    fn who_lost_its_core_sleeps_at_every_fourth_test_from_the_next_question_on() {
        let (core, mut courtesy) = (Simulated::yielding_for(500), Courtesy::default());
        steps(&mut courtesy, &core, MISSES_TO_ASK);
        core.lost.set(1);
        let before = steps(&mut courtesy, &core, MISSES_TO_ASK - 1);
        assert_eq!(count(&before, Step::Sleep), 0);
        let after = steps(&mut courtesy, &core, MISSES_TO_ASK);
        assert_eq!((after[0], count(&after, Step::Sleep)), (Step::Sleep, MISSES_TO_ASK / MISSES_TO_YIELD));
        assert_eq!(count(&after, Step::GiveWay), 0);
    }

    /// Whether a thread that tests in vain, with a busy thread on its core, naps within a few
    /// seconds.
    #[test]
    fn who_has_company_naps_until_the_next_step() {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                stay_on_one_core();
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let looker = scope.spawn(|| {
                stay_on_one_core();
                let (mut courtesy, began) = (Courtesy::default(), Instant::now());
                let mut step = Step::Look;
                while step != Step::Sleep && began.elapsed() < Duration::from_secs(20) {
                    step = courtesy.missed();
                    step.take(Duration::from_micros(20));
                }
                (step, courtesy)
            });
            let (step, mut courtesy) = looker.join().unwrap();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(step, Step::Sleep);
            courtesy.stepped();
            assert!((0..MISSES_TO_ASK).all(|_| courtesy.missed() != Step::Sleep));
        });
    }

    fn stay_on_one_core() {
        // SAFETY: sets of cores are plain bits, and the calls affect this thread alone.
        unsafe {
            let (mut all, mut one) = (core::mem::zeroed::<libc::cpu_set_t>(), core::mem::zeroed::<libc::cpu_set_t>());
            assert_eq!(libc::sched_getaffinity(0, size_of_val(&all), &raw mut all), 0);
            let first = (0..libc::CPU_SETSIZE as usize).find(|core| libc::CPU_ISSET(*core, &all)).unwrap();
            libc::CPU_SET(first, &mut one);
            assert_eq!(libc::sched_setaffinity(0, size_of_val(&one), &raw const one), 0);
        }
    }
}
