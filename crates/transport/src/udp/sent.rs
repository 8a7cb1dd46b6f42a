//! What became of a datagram that went another way than by a socket.

/// What became of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It is on its way, or it was lost and can be sent again.
    Tried,
    /// It is longer than any that can be sent here.
    TooLong,
}
