//! A clock that remembers its last reading.
//!
//! Reading the system's clock is cheap while the processor still has the clock's pages at hand. A
//! thread that has just been given the core has not: each reading touches three pages then, which
//! costs more than the protocol's own work in between. So a thread reads the clock once when it
//! comes back from waiting, and what it does within the next microseconds counts as happening at
//! that time.

/// What the system's monotonic clock said, in nanoseconds. It has a type of its own because
/// `std::time::Instant` keeps seconds and nanoseconds apart, so that a difference of two costs more
/// than the reading.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Reading(u64);

impl Reading {
    /// Reads the system's clock.
    #[inline]
    pub fn now() -> Reading {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` has room for one reading. The kernel cannot refuse a clock that every
        // Linux has.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        Reading((time.tv_sec as u64).wrapping_mul(NANOS_PER_SECOND).wrapping_add(time.tv_nsec as u64))
    }

    /// The nanoseconds from an earlier reading to this one; 0 if it is not earlier.
    #[inline]
    pub fn since(self, earlier: Reading) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The reading this many nanoseconds later.
    #[inline]
    pub fn after(self, nanos: u64) -> Reading {
        Reading(self.0.saturating_add(nanos))
    }
}

/// A clock that counts the nanoseconds since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Reading,
    last: Reading,
    /// It goes on only by what is noted.
    stands: bool,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        let start = Reading::now();
        Clock { start, last: start, stands: false }
    }

    /// A clock that goes on only by what is noted, so that its owner decides how time passes.
    pub fn still() -> Clock {
        Clock { stands: true, ..Clock::start() }
    }

    /// Reads the system's clock, unless this one stands still, and remembers the reading.
    #[inline]
    pub fn read(&mut self) -> u64 {
        if !self.stands {
            self.note(Reading::now());
        }
        self.last()
    }

    /// Takes over a reading that other code made; the clock never goes back.
    #[inline]
    pub fn note(&mut self, reading: Reading) {
        self.last = self.last.max(reading);
    }

    /// The last reading.
    #[inline]
    pub fn last(&self) -> u64 {
        self.last.since(self.start)
    }

    /// The last reading in the system's terms, for code that compares readings.
    pub fn last_reading(&self) -> Reading {
        self.last
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_and_never_back() {
        let mut clock = Clock::start();
        let earlier = Reading::now();
        let read = clock.read();
        assert!(read > 0 && clock.last() == read);
        assert_eq!((earlier.since(clock.last_reading()), earlier.after(5).since(earlier)), (0, 5));
        clock.note(earlier);
        assert_eq!(clock.last(), read);
        clock.note(clock.last_reading().after(3_000_000));
        assert_eq!(clock.last(), read + 3_000_000);
    }

    #[test]
    fn one_that_stands_still_goes_on_by_what_is_noted_alone() {
        let mut clock = Clock::still();
        assert_eq!((clock.read(), clock.read()), (0, 0));
        clock.note(clock.last_reading().after(7));
        assert_eq!((clock.read(), clock.last()), (7, 7));
    }
}
