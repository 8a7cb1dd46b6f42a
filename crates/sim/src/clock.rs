//! Simulated time: events happen in the order of (time, number), so that of events at one time the
//! one scheduled first happens first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trib_proto::Nanos;

struct Entry<E> {
    at: Nanos,
    number: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The clock and what will happen.
pub struct Clock<E> {
    now: Nanos,
    number: u64,
    events: BinaryHeap<Reverse<Entry<E>>>,
}

impl<E> Clock<E> {
    /// A clock at zero with nothing to come.
    pub fn new() -> Clock<E> {
        Clock { now: Nanos(0), number: 0, events: BinaryHeap::new() }
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Schedules an event for a time; if that has passed, the event happens at once.
    pub fn at(&mut self, at: Nanos, event: E) {
        self.number += 1;
        self.events.push(Reverse(Entry { at: at.max(self.now), number: self.number, event }));
    }

    /// Goes on to the next event.
    pub fn advance(&mut self) -> Option<E> {
        let Reverse(entry) = self.events.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }

    /// Events that have been scheduled so far.
    pub fn scheduled(&self) -> u64 {
        self.number
    }
}

impl<E> Default for Clock<E> {
    fn default() -> Self {
        Clock::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_orders_and_arrival_breaks_ties() {
        let mut clock = Clock::new();
        clock.at(Nanos(5), 'b');
        clock.at(Nanos(3), 'a');
        clock.at(Nanos(5), 'c');
        assert_eq!(clock.advance(), Some('a'));
        clock.at(Nanos(1), 'x');
        assert_eq!((clock.advance(), clock.now()), (Some('x'), Nanos(3)));
        assert_eq!(clock.advance(), Some('b'));
        assert_eq!(clock.advance(), Some('c'));
        assert_eq!(clock.advance(), None);
    }
}
