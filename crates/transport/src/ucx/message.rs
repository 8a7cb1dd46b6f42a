//! The head of a message, and what must hold for it.
//!
//! ```text
//!   0      8      12     16     24
//!   name | kind | 0    | at   | taken (24..32)
//! ```
//! The name is the receiver's for the edge, a number that it drew at random for this connection and
//! has told over the edge's authenticated handshake. `at` is where in the stream the payload
//! belongs. `taken` says how many bytes of the other direction's stream the sender has read, so
//! that the receiver knows how many more it may send.

/// What a message brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Bytes of the stream.
    Bytes = 1,
    /// A datagram.
    Record = 2,
    /// No more than the head.
    Taken = 3,
}

/// The head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) name: u64,
    pub(super) kind: Kind,
    pub(super) at: u64,
    pub(super) taken: u64,
}

impl Head {
    pub(super) const LEN: usize = 32;

    pub(super) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.name.to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.kind as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.at.to_le_bytes());
        bytes[24..].copy_from_slice(&self.taken.to_le_bytes());
        bytes
    }

    /// Reads a head; `None` if it is none.
    pub(super) fn parse(bytes: &[u8]) -> Option<Head> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let kind = match word(8)? {
            1 => Kind::Bytes,
            2 => Kind::Record,
            3 => Kind::Taken,
            _ => return None,
        };
        Some(Head { name: word(0)?, kind, at: word(16)?, taken: word(24)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_head_survives_and_nothing_else_is_one(
            name: u64, at: u64, taken: u64, kind in 0u64..5, bytes in prop::collection::vec(any::<u8>(), 0..64)
        ) {
            for kind in [Kind::Bytes, Kind::Record, Kind::Taken] {
                let head = Head { name, kind, at, taken };
                prop_assert_eq!(Head::parse(&head.to_bytes()), Some(head));
            }
            let mut other = Head { name, kind: Kind::Taken, at, taken }.to_bytes();
            other[8..16].copy_from_slice(&kind.to_le_bytes());
            prop_assert_eq!(Head::parse(&other).is_some(), (1..=3).contains(&kind));
            prop_assert!(bytes.len() == Head::LEN || Head::parse(&bytes).is_none());
        }
    }
}
