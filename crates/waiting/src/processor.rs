//! What waiting asks of the machine, so that tests can stand in for it.

use std::time::Duration;

use crate::clock::Reading;

/// The core on which a thread runs, and its clock.
pub(crate) trait Processor {
    /// Reads the clock.
    fn now(&self) -> Reading;

    /// Offers the core to other threads.
    fn give_way(&self);

    /// How long this thread has used a processor so far, which the time of other threads is no part
    /// of.
    fn time_used(&self) -> Duration;

    /// The number of times that this thread lost its core while it could have gone on.
    fn times_lost(&self) -> i64;
}

/// The core of the calling thread.
pub(crate) struct Machine;

impl Processor for Machine {
    #[inline]
    fn now(&self) -> Reading {
        Reading::now()
    }

    #[inline]
    fn give_way(&self) {
        rustix::thread::sched_yield();
    }

    fn time_used(&self) -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` has room for one reading. The kernel cannot refuse a clock that every
        // Linux has.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    fn times_lost(&self) -> i64 {
        let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel fills the struct; if it does not, zeros are a valid value.
        unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init().ru_nivcsw
        }
    }
}

/// A core of which a test says how long others keep it.
#[cfg(test)]
pub(crate) struct Simulated {
    now: core::cell::Cell<Reading>,
    /// How long each yield takes, in nanoseconds.
    pub(crate) yield_ns: core::cell::Cell<u64>,
    pub(crate) yields: core::cell::Cell<u32>,
    pub(crate) lost: core::cell::Cell<i64>,
    used: core::cell::Cell<Duration>,
}

#[cfg(test)]
impl Simulated {
    /// A core on which each yield takes so long.
    pub(crate) fn yielding_for(yield_ns: u64) -> Simulated {
        let now = Reading::now().into();
        Simulated { now, yield_ns: yield_ns.into(), yields: 0.into(), lost: 0.into(), used: Duration::ZERO.into() }
    }

    /// Time passes without this thread.
    pub(crate) fn pass(&self, span: Duration) {
        self.now.set(self.now.get().after(span.as_nanos() as u64));
    }

    /// This thread computes.
    pub(crate) fn compute(&self, span: Duration) {
        self.pass(span);
        self.used.set(self.used.get() + span);
    }
}

#[cfg(test)]
impl Processor for Simulated {
    fn now(&self) -> Reading {
        self.now.get()
    }

    fn give_way(&self) {
        self.yields.set(self.yields.get() + 1);
        self.pass(Duration::from_nanos(self.yield_ns.get()));
    }

    fn time_used(&self) -> Duration {
        self.used.get()
    }

    fn times_lost(&self) -> i64 {
        self.lost.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_uses_no_processor() {
        let before = Machine.time_used();
        std::thread::sleep(Duration::from_millis(100));
        let slept = Machine.time_used();
        while Machine.time_used() - slept < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        assert!(slept - before < Duration::from_millis(50));
    }
}
