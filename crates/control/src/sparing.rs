//! Strangers do not fill a log: of each kind of line a few are written in ten seconds, and the
//! others are counted and told together.
//!
//! ```text
//!   09:12:44  connection not let in peer=10.0.0.9:40112 error=...          five of them
//!   09:12:54  and 523 more in the last 10 s what=malformed
//! ```
//! Kinds are counted apart, so that many lines of one kind hide none of another.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The kinds of lines that strangers can cause, and what was written of each.
#[derive(Debug)]
pub struct Sparing {
    kinds: Mutex<BTreeMap<&'static str, Window>>,
}

/// Ten seconds of one kind.
#[derive(Clone, Copy, Debug)]
struct Window {
    ends: Instant,
    written: u32,
    held: u64,
}

impl Sparing {
    /// None is written yet.
    pub const fn new() -> Sparing {
        Sparing { kinds: Mutex::new(BTreeMap::new()) }
    }

    /// Whether a line of this kind may be written now. If not, it is counted.
    pub fn may(&self, kind: &'static str, now: Instant) -> bool {
        self.tell(now);
        let mut kinds = self.lock();
        let window = kinds.entry(kind).or_insert(Window { ends: now + SPAN, written: 0, held: 0 });
        if window.written < WRITTEN_MAX {
            window.written += 1;
            return true;
        }
        window.held += 1;
        false
    }

    /// Tells what was counted in times that are over. It is to be called now and then, also when
    /// no line comes.
    pub fn tell(&self, now: Instant) {
        for (what, more) in self.over(now) {
            tracing::warn!(what, "and {more} more in the last {} s", SPAN.as_secs());
        }
    }

    /// How long until there is something to tell.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        let kinds = self.lock();
        let ends = kinds.values().filter(|window| window.held > 0).map(|window| window.ends).min();
        ends.map(|ends| ends.saturating_duration_since(now))
    }

    /// The kinds whose time is over and of which lines were held back, and how many.
    fn over(&self, now: Instant) -> Vec<(&'static str, u64)> {
        let mut kinds = self.lock();
        let over = kinds.iter().filter(|(_, window)| window.ends <= now && window.held > 0);
        let over = over.map(|(kind, window)| (*kind, window.held)).collect();
        kinds.retain(|_, window| window.ends > now);
        over
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Window>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Sparing {
    fn default() -> Sparing {
        Sparing::new()
    }
}

/// How long lines of a kind are counted.
const SPAN: Duration = Duration::from_secs(10);
/// How many lines of a kind are written in that time.
const WRITTEN_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_kind_some_are_written_and_the_rest_is_counted() {
        let (sparing, now) = (Sparing::new(), Instant::now());
        assert_eq!((0..528).filter(|_| sparing.may("a", now)).count(), 5);
        assert!(sparing.may("b", now), "another kind is not held back");
        assert_eq!(sparing.patience(now), Some(SPAN));
        assert_eq!(sparing.over(now + SPAN / 2), []);
        assert_eq!(sparing.over(now + SPAN), [("a", 523)]);
        assert_eq!((sparing.over(now + SPAN), sparing.patience(now)), (vec![], None), "it is told once");
        assert!(sparing.may("a", now + SPAN));
    }
}
