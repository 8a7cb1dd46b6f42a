//! A clock that remembers its last reading.
//!
//! A reading is cheap where the processor still has the clock's pages at hand. Who has just been given the core does not:
//! he touches three pages for each reading, which costs more than the protocol's own work in between. So a thread reads
//! once when it comes back from waiting, and what it does within the next microseconds happens at that time.

use std::time::Instant;

/// Nanoseconds since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    last: Instant,
    nanos: u64,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        let start = Instant::now();
        Clock { start, last: start, nanos: 0 }
    }

    /// Reads it.
    pub fn read(&mut self) -> u64 {
        self.note(Instant::now());
        self.nanos
    }

    /// Takes over a reading that somebody else made; the clock never goes back.
    pub fn note(&mut self, reading: Instant) {
        if reading > self.last {
            self.last = reading;
            self.nanos = (reading - self.start).as_nanos() as u64;
        }
    }

    /// The last reading.
    pub fn last(&self) -> u64 {
        self.nanos
    }

    /// The last reading, for who compares readings.
    pub fn last_instant(&self) -> Instant {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_goes_on_and_never_back() {
        let mut clock = Clock::start();
        let earlier = Instant::now();
        let read = clock.read();
        assert!(read > 0 && clock.last() == read);
        clock.note(earlier);
        assert_eq!(clock.last(), read);
        clock.note(clock.last_instant() + Duration::from_millis(3));
        assert_eq!(clock.last(), read + 3_000_000);
    }
}
