//! Heartbeats of one stream connection: when to say something, when the other side is dead.

use crate::limits::Limits;
use crate::time::Nanos;

/// One connection's clock. Any frame counts as a sign of life.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    heard: Nanos,
    spoke: Nanos,
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
        Liveness {
            heard: now,
            spoke: now,
        }
    }

    /// Something came.
    pub fn heard(&mut self, now: Nanos) {
        self.heard = now;
    }

    /// Something was sent.
    pub fn spoke(&mut self, now: Nanos) {
        self.spoke = now;
    }

    /// What is due.
    pub fn need(&self, now: Nanos, limits: &Limits) -> Need {
        if now.since(self.heard) >= limits.dead_after {
            Need::Dead
        } else if now.since(self.spoke) >= limits.heartbeat {
            Need::Heartbeat
        } else {
            Need::Nothing
        }
    }

    /// When `need` changes next.
    pub fn deadline(&self, limits: &Limits) -> Nanos {
        (self.heard + limits.dead_after).min(self.spoke + limits.heartbeat)
    }
}
