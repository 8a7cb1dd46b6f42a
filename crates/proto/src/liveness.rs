//! Heartbeats of one stream connection: when to say something, when the other side is dead.

use crate::limits::Limits;
use crate::time::Nanos;

/// One connection's clock. Any frame counts as a sign of life.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    heard: Nanos,
    spoke: Nanos,
    checked: Nanos,
}

/// What a connection needs now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A heartbeat.
    Heartbeat,
    /// The other side has been silent for too long.
    Dead,
}

impl Liveness {
    /// A connection opened now.
    pub fn new(now: Nanos) -> Liveness {
        Liveness { heard: now, spoke: now, checked: now }
    }

    /// Something came.
    pub fn heard(&mut self, now: Nanos) {
        self.heard = now;
    }

    /// A heartbeat was sent.
    pub fn spoke(&mut self, now: Nanos) {
        self.spoke = now;
    }

    /// What is due. To be called at least once per heartbeat: a longer gap means that this side itself was stopped, and
    /// then the other side's silence proves nothing.
    pub fn need(&mut self, now: Nanos, limits: &Limits) -> Need {
        let away = now.since(core::mem::replace(&mut self.checked, now));
        if away.0 > 3 * limits.heartbeat.0 {
            self.heard = now;
        }
        if now.since(self.heard) >= limits.dead_after {
            Need::Dead
        } else if now.since(self.spoke) >= limits.heartbeat {
            Need::Heartbeat
        } else {
            Need::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            groups: 1,
            window: 1,
            osts: 1,
            payload: 8,
            streams: 1,
            segment: 8,
            staging: 1,
            flight: 1,
            stream_threshold: 0,
            lease_operations: 0,
            heartbeat: Nanos(10),
            dead_after: Nanos(50),
        }
    }

    #[test]
    fn silence_kills_after_the_limit_only() {
        let mut liveness = Liveness::new(Nanos(0));
        for now in (10..50).step_by(10) {
            assert_eq!(liveness.need(Nanos(now), &limits()), Need::Heartbeat);
            liveness.spoke(Nanos(now));
            assert_eq!(liveness.need(Nanos(now + 1), &limits()), Need::Nothing);
        }
        assert_eq!(liveness.need(Nanos(50), &limits()), Need::Dead);
    }

    #[test]
    fn who_was_stopped_itself_judges_nobody() {
        let mut liveness = Liveness::new(Nanos(0));
        assert_eq!(liveness.need(Nanos(1_000), &limits()), Need::Heartbeat);
    }
}
