//! How a thread that tests a request in a loop lets others run. Where there are more threads than
//! cores, the thread for which it waits needs a core.
//!
//! A yield is enough where the scheduler then runs another thread, and it costs nothing where there
//! is no other. But a scheduler that shares time fairly lets a thread that yields go on until its
//! share is used up, which takes milliseconds. A thread that lost its core while it tested shares
//! this core with another one. From then on it sleeps for a moment now and then, until its
//! operation is done.

use std::time::Duration;

/// What a request remembers of its thread's tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Courtesy {
    /// The number of tests in vain since the last step.
    misses: u32,
    /// The number of switches to other threads when it was last read.
    switches: i64,
    has_company: bool,
}

/// What a thread does before its next test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    None,
    Yield,
    Nap,
}

impl Courtesy {
    /// Returns what the thread is to do after a test in vain.
    pub fn missed(&mut self) -> Pause {
        self.misses = self.misses.wrapping_add(1);
        if !self.misses.is_multiple_of(MISSES_TO_YIELD) {
            return Pause::None;
        }
        if !self.has_company && self.misses.is_multiple_of(MISSES_TO_LOOK) {
            let switches = switches();
            self.has_company = self.misses > MISSES_TO_LOOK && switches != self.switches;
            self.switches = switches;
        }
        if self.has_company { Pause::Nap } else { Pause::Yield }
    }

    /// Forgets everything after a step, because the next step may come quickly.
    pub fn stepped(&mut self) {
        *self = Courtesy::default();
    }
}

impl Pause {
    /// Carries the pause out.
    pub fn make(self) {
        match self {
            Pause::None => {}
            Pause::Yield => std::thread::yield_now(),
            Pause::Nap => std::thread::sleep(NAP),
        }
    }
}

/// The number of times that this thread lost its core while it could have gone on.
fn switches() -> i64 {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the struct; if it does not, zeros are a valid value.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nivcsw
    }
}

const MISSES_TO_YIELD: u32 = 4;
/// A small operation is done before this many tests, and then the kernel is never asked.
const MISSES_TO_LOOK: u32 = 64;
/// With the kernel's timers this becomes some 70 us, which is little beside the time slice of a
/// busy neighbour.
const NAP: Duration = Duration::from_micros(20);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_first_looks_only_yield() {
        let mut courtesy = Courtesy::default();
        let pauses: Vec<Pause> = (0..MISSES_TO_LOOK).map(|_| courtesy.missed()).collect();
        assert_eq!(
            pauses.iter().filter(|pause| **pause == Pause::Yield).count() as u32,
            MISSES_TO_LOOK / MISSES_TO_YIELD
        );
        assert!(!pauses.contains(&Pause::Nap));
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
                let mut pause = Pause::None;
                while pause != Pause::Nap && began.elapsed() < Duration::from_secs(20) {
                    pause = courtesy.missed();
                    pause.make();
                }
                (pause, courtesy)
            });
            let (pause, mut courtesy) = looker.join().unwrap();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(pause, Pause::Nap);
            courtesy.stepped();
            assert!((0..MISSES_TO_LOOK).all(|_| courtesy.missed() != Pause::Nap));
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
