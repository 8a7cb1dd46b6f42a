//! What waiting asks of the machine, so that tests can stand in for it.

use crate::clock::Reading;

/// The core on which a thread runs, and its clock.
pub(crate) trait Processor {
    /// Reads the clock.
    fn now(&self) -> Reading;

    /// Offers the core to other threads.
    fn give_way(&self);

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
}

#[cfg(test)]
impl Simulated {
    /// A core on which each yield takes so long.
    pub(crate) fn yielding_for(yield_ns: u64) -> Simulated {
        let now = Reading::now().into();
        Simulated { now, yield_ns: yield_ns.into(), yields: 0.into(), lost: 0.into() }
    }
}

#[cfg(test)]
impl Processor for Simulated {
    fn now(&self) -> Reading {
        self.now.get()
    }

    fn give_way(&self) {
        self.yields.set(self.yields.get() + 1);
        self.now.set(self.now.get().after(self.yield_ns.get()));
    }

    fn times_lost(&self) -> i64 {
        self.lost.get()
    }
}
