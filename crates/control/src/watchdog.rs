//! A supervisor's watchdog: it restarts a daemon that has not said for a while that it is well.
//!
//! systemd sets `$WATCHDOG_USEC` for units with `WatchdogSec=`, and sets `$WATCHDOG_PID` to the
//! process that is meant. The daemon's own loop sends `WATCHDOG=1` to `$NOTIFY_SOCKET` whenever it
//! has found its threads alive; a timer that sent it by itself would keep a stuck daemon running.

use std::env;
use std::io;
use std::time::{Duration, Instant};

use crate::notify;

/// A watchdog, and when its next message is due.
#[derive(Debug)]
pub struct Watchdog {
    pause: Duration,
    next: Instant,
}

impl Watchdog {
    /// The watchdog that the environment names, if it means this process. The first message is due
    /// at once.
    pub fn from_env(now: Instant) -> Option<Self> {
        let variable = |name| env::var(name).ok();
        Self::from(variable("WATCHDOG_USEC")?, variable("WATCHDOG_PID"), std::process::id(), now)
    }

    fn from(usec: String, pid: Option<String>, own: u32, now: Instant) -> Option<Self> {
        let limit = Duration::from_micros(usec.parse().ok().filter(|usec| *usec > 0)?);
        let meant = pid.is_none_or(|pid| pid.parse() == Ok(own));
        // Two messages may be lost or late before the supervisor restarts the daemon.
        meant.then_some(Watchdog { pause: limit / 3, next: now })
    }

    /// How long until the next message is due.
    pub fn due_in(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// Tells the supervisor that the daemon is well.
    pub fn feed(&mut self, now: Instant) -> io::Result<()> {
        self.next = now + self.pause;
        notify::alive().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_period_for_this_process_counts() {
        let now = Instant::now();
        let watchdog = |usec: &str, pid: Option<&str>| Watchdog::from(usec.into(), pid.map(String::from), 7, now);
        for (usec, pid) in [("0", None), ("", None), ("x", None), ("3000000", Some("8")), ("3000000", Some(""))] {
            assert!(watchdog(usec, pid).is_none(), "{usec} {pid:?}");
        }
        assert!(watchdog("3000000", None).is_some());
        let mut watchdog = watchdog("3000000", Some("7")).unwrap();
        assert_eq!(watchdog.due_in(now), Duration::ZERO);
        // No supervisor listens in a test; the next message is due all the same.
        let _ = watchdog.feed(now);
        assert_eq!(watchdog.due_in(now), Duration::from_secs(1));
        assert_eq!(watchdog.due_in(now + Duration::from_secs(2)), Duration::ZERO);
    }
}
