//! Leases that no operation uses. The node may ask for one back at any time, others wait until this
//! rank answers, and the program may compute for long. So the helper thread watches the streams.
//!
//! It begins to watch only when the program has left its streams alone for a while: a thread that
//! watches the same streams as the application's would be woken for every result.
//!
//! ```text
//!   a call ends and leaves a lease unused --SETTLE--> the helper watches --an operation streams-->
//! ```

use trib_proto::Nanos;

/// What the helper thread knows of the leases of this rank.
#[derive(Debug, Default)]
pub(super) struct UnusedLease {
    /// The last call left one behind, and nothing has been streamed since.
    left: bool,
    /// When that call ended.
    since: Nanos,
    /// The helper sleeps on the streams.
    pub(super) watched: bool,
}

impl UnusedLease {
    /// A call of the application's has posted something.
    pub(super) fn posted(&mut self, unused: bool) {
        self.left &= unused;
    }

    /// A call of the application's ends. Returns when the helper has to be awake.
    pub(super) fn call_ends(&mut self, now: Nanos, unused: bool) -> Nanos {
        if unused && !self.left {
            self.since = now;
        }
        self.left = unused;
        if !unused || self.watched { Nanos::NEVER } else { (self.since + SETTLE).max(now) }
    }

    /// When the helper is to begin to watch; that may be in the past. `called` says that a thread
    /// of the application's is inside a call.
    pub(super) fn watch_from(&self, unused: bool, called: bool) -> Nanos {
        match (unused, self.left) {
            (true, true) => self.since + SETTLE,
            // The helper itself has finished what the last call left under way.
            (true, false) if !called => Nanos(0),
            _ => Nanos::NEVER,
        }
    }

    /// Whether the program has just used its streams: it will soon leave a lease behind again, and
    /// would have to wake a helper that sleeps for long.
    pub(super) fn was_left_lately(&self, now: Nanos) -> bool {
        self.since != Nanos(0) && now.since(self.since) < SETTLE
    }
}

/// How long the program has to have left its streams alone. It is short beside the time that an
/// operation waits for a rank that computes, and a hundred wake-ups a second are not to be seen.
pub(super) const SETTLE: Nanos = Nanos::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn the_helper_watches_what_the_program_leaves_alone() {
        let mut lease = UnusedLease::default();
        assert_eq!(lease.watch_from(true, true), Nanos::NEVER, "the call goes on");
        assert_eq!(lease.call_ends(ms(100), true), ms(110));
        assert_eq!(lease.watch_from(true, false), ms(110));
        assert_eq!(lease.watch_from(false, false), Nanos::NEVER, "the node has taken it back");
    }

    #[test]
    fn the_helper_goes_on_watching_after_an_operation_that_it_has_finished() {
        let mut lease = UnusedLease::default();
        lease.posted(false);
        assert_eq!(lease.call_ends(ms(100), false), Nanos::NEVER);
        assert_eq!(lease.watch_from(false, false), Nanos::NEVER);
        assert_eq!(lease.watch_from(true, false), Nanos(0));
    }

    #[test]
    fn a_program_that_streams_all_the_time_wakes_nobody() {
        let mut lease = UnusedLease::default();
        for call in 100..200 {
            lease.posted(false);
            assert_eq!(lease.watch_from(false, true), Nanos::NEVER);
            assert_eq!(lease.watch_from(true, true), Nanos::NEVER, "the thread inside the call watches");
            assert_eq!(lease.call_ends(ms(call), true), ms(call + 10));
            assert!(lease.was_left_lately(ms(call + 1)), "the helper looks by itself");
        }
        lease.posted(false);
        assert!(!lease.was_left_lately(ms(1000)), "it need not look while a call lasts");
    }

    #[test]
    fn short_operations_beside_an_unused_lease_disturb_no_watch() {
        let mut lease = UnusedLease::default();
        lease.call_ends(ms(100), true);
        for call in 101..200 {
            lease.posted(true);
            lease.watched = call >= 110;
            let awake = lease.call_ends(ms(call), true);
            assert_eq!(awake, if lease.watched { Nanos::NEVER } else { ms(110) });
            assert_eq!(lease.watch_from(true, true), ms(110));
        }
    }
}
