//! Why bytes were not a frame. Each reason has its own counter at the receiver.

/// The sender's bytes are not what the protocol says; the receiver counts and drops them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// There are fewer bytes than the message needs.
    #[error("the frame ends before its fields do")]
    Truncated,
    /// There are more bytes than the message has.
    #[error("bytes follow the end of the frame")]
    TrailingBytes,
    /// The bytes are not a Tributary frame at all.
    #[error("not a Tributary frame (wrong magic number)")]
    BadMagic,
    /// The frame is of another protocol version.
    #[error("frame of protocol version {0}, this side speaks version {ours}", ours = crate::VERSION)]
    BadVersion(u8),
    /// A field holds a value that no sender may write.
    #[error("field `{0}` holds a value outside its range")]
    BadField(&'static str),
    /// The payload does not match its checksum.
    #[error("payload checksum mismatch")]
    BadChecksum,
    /// The keyed tag does not match: wrong key, forged or damaged header.
    #[error("tag mismatch: wrong key or forged header")]
    BadTag,
}
