//! The keys of an edge in one placement.

use core::fmt;

use trib_wire::auth::FrameKey;

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
