//! The threads that sleep on the bell of this rank's boards.
//!
//! ```text
//!   A says for what, sleeps ---> B posts, looks, clears the bell ---> B stops looking: says for A
//!                                                                     what is awaited now
//! ```
//! A member is rung for what it said before it fell asleep, and for that once. A thread that has
//! posted something else meanwhile, or has taken what the bell was rung for, looks for itself and
//! needs no bell; when it stops, those who sleep look for it, too.

use super::running::Running;

/// How many threads sleep until the bell is rung.
#[derive(Default)]
pub(super) struct Sleepers {
    count: u32,
}

impl Sleepers {
    /// Called before every sleep, for the groups that have something under way. Returns whether
    /// there is something to do instead.
    pub(super) fn fall_asleep<'a>(&mut self, groups: impl Iterator<Item = &'a Running>) -> bool {
        self.count += 1;
        self.look_for(groups)
    }

    /// Called after every sleep.
    pub(super) fn wake_up<'a>(&mut self, groups: impl Iterator<Item = &'a Running>) {
        self.count = self.count.saturating_sub(1);
        if self.count == 0 {
            groups.for_each(Running::wake_up);
        }
    }

    /// Says what the groups wait for now, if anybody sleeps. Returns whether some of it is there.
    pub(super) fn look_for<'a>(&self, groups: impl Iterator<Item = &'a Running>) -> bool {
        let mut is_there = false;
        if self.count > 0 {
            // Each of them says it, whatever another has found.
            groups.for_each(|running| is_there |= running.fall_asleep());
        }
        is_there
    }
}
