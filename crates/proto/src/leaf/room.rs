//! How much of what this rank has given it still keeps for others, and how much that may be.
//!
//! Only copies of operations that are over count: they go when all others have the results, for
//! which nobody has to post anything. To count what is still under way as well would let two ranks
//! wait for each other, each with its memory full of what the other has not posted. In a new epoch
//! copies may have to be sent again first, and to wait for a lease: so all is sent that a lease
//! covers, whether there is room or not.

use super::group::Group;

/// The memory of a rank's copies.
#[derive(Debug)]
pub(super) struct Room {
    most: u64,
    kept: u64,
    /// There was no room, and there is now: what waits for it can be sent.
    reopened: bool,
}

impl Room {
    /// Room for this many bytes.
    pub(super) fn new(most: u64) -> Room {
        Room { most, kept: 0, reopened: false }
    }

    /// Whether a new fragment may be sent, and the lock asked for.
    pub(super) fn is_open(&self) -> bool {
        self.kept < self.most
    }

    /// What a group keeps may have changed.
    #[inline]
    pub(super) fn count(&mut self, group: &mut Group) {
        let kept = group.kept_bytes();
        if kept != group.counted {
            self.change(core::mem::replace(&mut group.counted, kept), kept);
        }
    }

    /// A group of which so much was counted is gone.
    pub(super) fn forget(&mut self, counted: u64) {
        self.change(counted, 0);
    }

    fn change(&mut self, before: u64, now: u64) {
        let was_open = self.is_open();
        self.kept = self.kept - before + now;
        self.reopened |= !was_open && self.is_open();
    }

    /// Whether there is room again since this was last asked.
    pub(super) fn take_reopened(&mut self) -> bool {
        core::mem::take(&mut self.reopened) && self.is_open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_there_until_what_is_kept_fills_it_and_again_when_some_is_gone() {
        let mut room = Room::new(10);
        room.change(0, 9);
        assert!(room.is_open() && !room.take_reopened());
        room.change(9, 10);
        assert!(!room.is_open());
        room.change(0, 5);
        room.change(10, 6);
        assert!(!room.is_open() && !room.take_reopened());
        room.change(5, 0);
        assert!(room.take_reopened() && !room.take_reopened());
    }
}
