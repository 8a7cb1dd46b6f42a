//! What protects the payloads of an edge, beside the tag of their headers.

use crate::bytes::{Reader, Writer};
use crate::error::ParseError;

code! {
    /// The mode of a job's data path, the same at all its ranks and nodes. The larger one demands
    /// more.
    Mode {
        /// A checksum covers the payload of a datagram, and that of TCP the payload of a stream.
        Checked = 0, "checked";
        /// A keyed tag covers every payload.
        Signed = 1, "signed";
        /// Every payload is encrypted, and a tag covers it.
        Encrypted = 2, "encrypted";
    }
}

#[expect(clippy::derivable_impls, reason = "the macro makes the enumeration")]
impl Default for Mode {
    fn default() -> Mode {
        Mode::Checked
    }
}

impl Mode {
    /// The names of all modes, each at the index that is its code.
    pub const NAMES: [&'static str; 3] = [Mode::Checked.name(), Mode::Signed.name(), Mode::Encrypted.name()];

    /// Whether payloads have a seal.
    pub const fn seals(self) -> bool {
        !matches!(self, Mode::Checked)
    }
}

/// Bytes of a seal on the wire.
pub const SEAL_LEN: usize = 24;

/// What says of a payload that its sender made it. It travels behind the frame's header, which has
/// [`FLAG_SEALED`](crate::header::FLAG_SEALED).
///
/// ```text
///  byte  0                8                               24
///       +----------------+-------------------------------+
///       | number         | tag of the payload            |
///       +----------------+-------------------------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    /// Which seal of its key's owner this is: no two have the same number, and none is above
    /// [`SEALS_MAX`].
    pub number: u64,
    /// The tag.
    pub tag: [u8; 16],
}

impl Seal {
    /// The seal as bytes.
    pub fn to_bytes(&self) -> [u8; SEAL_LEN] {
        let mut bytes = [0; SEAL_LEN];
        Writer::new(&mut bytes).u64(self.number);
        bytes[8..].copy_from_slice(&self.tag);
        bytes
    }

    /// Reads the seal at the front of these bytes.
    ///
    /// # Errors
    /// If there are too few, or the number is too large.
    pub fn parse(bytes: &[u8]) -> Result<Seal, ParseError> {
        let (bytes, _) = bytes.split_first_chunk::<SEAL_LEN>().ok_or(ParseError::Truncated)?;
        let number = Reader::new(bytes).u64()?;
        if number > SEALS_MAX {
            return Err(ParseError::BadField("seal"));
        }
        let mut tag = [0; 16];
        tag.copy_from_slice(&bytes[8..]);
        Ok(Seal { number, tag })
    }
}

/// The largest number of a seal. Nobody gets so far.
pub const SEALS_MAX: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_survives_the_wire_and_a_piece_of_one_is_none() {
        let seal = Seal { number: SEALS_MAX, tag: [7; 16] };
        let bytes = seal.to_bytes();
        assert_eq!(Seal::parse(&bytes), Ok(seal));
        assert_eq!(bytes[..9], [0, 0, 0, 0, 0, 0, 0, 0x40, 7]);
        for len in 0..SEAL_LEN {
            assert_eq!(Seal::parse(&bytes[..len]), Err(ParseError::Truncated));
        }
        let beyond = Seal { number: SEALS_MAX + 1, ..seal };
        assert_eq!(Seal::parse(&beyond.to_bytes()), Err(ParseError::BadField("seal")));
    }

    #[test]
    fn a_mode_that_demands_more_is_larger() {
        assert!(Mode::Checked < Mode::Signed && Mode::Signed < Mode::Encrypted);
        assert_eq!(Mode::NAMES, ["checked", "signed", "encrypted"]);
        assert!(Mode::ALL.iter().enumerate().all(|(at, mode)| usize::from(mode.code()) == at));
        assert!(!Mode::default().seals() && Mode::Signed.seals() && Mode::Encrypted.seals());
    }
}
