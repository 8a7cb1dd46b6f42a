//! The keys of an edge in one placement.

use core::fmt;

use trib_wire::Mode;
use trib_wire::auth::FrameKey;
use trib_wire::hello::{Challenge, Hello};

use crate::derive::derive;

/// What both ends of an edge need to authenticate each other.
#[derive(Clone, PartialEq, Eq)]
pub struct EdgeKeys {
    /// Tags of all frames from the child to the node.
    pub up: FrameKey,
    /// Tags of frames that the node sends to this child by stream.
    pub down: FrameKey,
    /// The handshake of the child's stream connection.
    pub hello: HelloKey,
}

/// The key of a handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HelloKey(pub [u8; 32]);

/// The key of payloads that one sender seals.
#[derive(Clone, PartialEq, Eq)]
pub struct PayloadKey(pub [u8; 32]);

/// The keys of one connection, in a mode that seals payloads.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    /// What they are for.
    pub mode: Mode,
    /// Tags of all frames from the child to the node.
    pub up: FrameKey,
    /// Tags of frames that the node sends over the connection.
    pub down: FrameKey,
    /// The child's vector data and datagrams.
    pub data_up: PayloadKey,
    /// The child's control frames on the stream.
    pub bodies_up: PayloadKey,
    /// The node's control frames on the stream.
    pub bodies_down: PayloadKey,
}

/// What a node sends to all its children alike.
#[derive(Clone, PartialEq, Eq)]
pub struct Results {
    /// Tags of datagrams.
    pub tags: FrameKey,
    /// Vector data and datagrams, in a mode that seals payloads.
    pub data: Option<PayloadKey>,
}

impl HelloKey {
    /// The keys of the connection that was opened with these two; `None` in a mode that needs none.
    /// Each end has drawn its nonce for this connection alone, so no other one has any of them.
    pub fn session(&self, hello: &Hello, challenge: &Challenge) -> Option<Session> {
        if !hello.mode.seals() {
            return None;
        }
        let what = [&[hello.mode.code()][..], &hello.nonce, &challenge.nonce];
        Some(Session {
            mode: hello.mode,
            up: FrameKey(derive(&self.0, "tributary v1 session up", &what)),
            down: FrameKey(derive(&self.0, "tributary v1 session down", &what)),
            data_up: PayloadKey(derive(&self.0, "tributary v1 data up", &what)),
            bodies_up: PayloadKey(derive(&self.0, "tributary v1 bodies up", &what)),
            bodies_down: PayloadKey(derive(&self.0, "tributary v1 bodies down", &what)),
        })
    }
}

impl Results {
    /// What follows from the key that a node hands to its children.
    pub fn of(key: &FrameKey, mode: Mode) -> Results {
        if !mode.seals() {
            return Results { tags: *key, data: None };
        }
        let what = [&[mode.code()][..]];
        Results {
            tags: FrameKey(derive(&key.0, "tributary v1 tags down", &what)),
            data: Some(PayloadKey(derive(&key.0, "tributary v1 data down", &what))),
        }
    }
}

impl PayloadKey {
    /// The key of one phase, a stretch of a sender's seals.
    pub fn phase(&self, phase: u64) -> [u8; 16] {
        derive(&self.0, "tributary v1 phase", &[&phase.to_le_bytes()])
    }
}

impl fmt::Debug for PayloadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PayloadKey(..)")
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session(..)")
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Results(..)")
    }
}

impl fmt::Debug for HelloKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HelloKey(..)")
    }
}

impl fmt::Debug for EdgeKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EdgeKeys(..)")
    }
}
