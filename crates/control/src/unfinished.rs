//! The memory of long messages, over all connections of a listener but those of nodes: messages
//! that are not whole yet, and those that their receiver still works on.
//!
//! A message may be long, because a job may have a million ranks; so a few connections could take
//! all memory with messages that they never end. Short ones need no room, so that what most
//! programs say is heard while others fill what there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What all connections of a listener take.
#[derive(Debug)]
pub(crate) struct Unfinished {
    taken: AtomicUsize,
    most: usize,
}

impl Unfinished {
    /// Room for what a listener hears.
    pub(crate) fn of_listener() -> Arc<Unfinished> {
        Arc::new(Unfinished { taken: AtomicUsize::new(0), most: MOST })
    }
}

/// The part that one connection has.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Without this there is no bound.
    all: Option<Arc<Unfinished>>,
    own: usize,
}

impl Room {
    /// A part of what a listener's connections may take; nothing yet.
    pub(crate) fn of(all: &Arc<Unfinished>) -> Room {
        Room { all: Some(all.clone()), own: 0 }
    }

    /// Holds what a message needs of which so many bytes are here. Returns false if others have it.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        let Some(all) = &self.all else { return true };
        let need = if bytes <= FREE { 0 } else { bytes * DECODED };
        let (more, less) = (need.saturating_sub(self.own), self.own.saturating_sub(need));
        all.taken.fetch_sub(less, Ordering::Relaxed);
        self.own -= less;
        let fits = |taken: usize| taken.checked_add(more).filter(|taken| *taken <= all.most);
        let got = more == 0 || all.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        self.own += if got { more } else { 0 };
        got
    }

    /// How long a message may take from its first byte to its last; `None`: as long as it likes.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.all.is_some().then_some(WHOLE)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.hold(0);
    }
}

/// Messages up to this length need no room, in bytes.
const FREE: usize = 64 << 10;
/// What a byte of a long message takes while it is read and worked on, in bytes.
const DECODED: usize = 5;
/// Room for two of the longest messages.
const MOST: usize = 2 * DECODED * crate::MESSAGE_MAX;
const WHOLE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_share_what_there_is_and_short_ones_need_none() {
        let all = Unfinished::of_listener();
        let mut rooms: Vec<Room> = (0..3).map(|_| Room::of(&all)).collect();
        assert!(rooms[0].hold(crate::MESSAGE_MAX) && rooms[1].hold(crate::MESSAGE_MAX));
        assert!(!rooms[2].hold(FREE + 1) && rooms[2].hold(FREE));
        assert!(rooms[0].hold(1 << 20) && rooms[2].hold(crate::MESSAGE_MAX / 2));
        rooms.pop();
        rooms.pop();
        assert!(rooms[0].hold(0));
        assert_eq!(all.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_has_not_got_more_keeps_what_it_had() {
        let all = Unfinished::of_listener();
        let (mut one, mut other) = (Room::of(&all), Room::of(&all));
        assert!(one.hold(crate::MESSAGE_MAX) && other.hold(crate::MESSAGE_MAX / 2));
        assert!(!other.hold(crate::MESSAGE_MAX + 1));
        assert!(one.hold(0) && other.hold(crate::MESSAGE_MAX + 1));
    }
}
