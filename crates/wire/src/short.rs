//! The short header of a stream: it says that the frame continues the one before it by one piece.
//!
//! ```text
//!  byte  0        2           4               8                               16
//!       +--------+-----------+---------------+-------------------------------+
//!       | magic  | operation | mark step     | tag of the whole header       |
//!       +--------+-----------+---------------+-------------------------------+
//! ```
//! Most data frames of a connection differ from the data frame before them in three numbers that
//! both ends know already: `seq` is one more, `first` lies one piece further, and `mark` has
//! grown a little. Or they begin the next operation of the same kind: `op_seq` is one more as well,
//! and `first` is zero. Such a frame may travel with a header of 16 bytes instead of 104, so that
//! it costs little to cut a vector into small pieces. The receiver rebuilds the whole header and
//! checks the tag over that, so a short header proves as much as a long one.

use crate::auth::FrameKey;
use crate::bytes::{Reader, Writer};
use crate::error::ParseError;
use crate::header::Header;

/// Bytes of a short header.
pub const SHORT_LEN: usize = 16;
/// First two bytes of a short header.
pub const MAGIC_SHORT: u16 = 0x7273;

/// What a short header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortHeader {
    /// Whether the frame begins the operation after that of the previous data frame; else it
    /// continues that one.
    pub next_operation: bool,
    /// By how much the mark has grown since the previous data frame.
    pub mark_step: u32,
}

impl ShortHeader {
    /// The short form of `next` behind `previous`, which is the data frame before it on the
    /// connection; `None` where the two differ in more than a short header can tell.
    pub fn between(previous: &Header, next: &Header) -> Option<ShortHeader> {
        let mark_step = u32::try_from(next.mark.checked_sub(previous.mark)?).ok()?;
        let short = ShortHeader { next_operation: next.op_seq != previous.op_seq, mark_step };
        (short.expand(previous).ok()? == *next).then_some(short)
    }

    /// The whole header of the frame that follows `previous`.
    ///
    /// # Errors
    /// [`ParseError::BadField`] when no header can follow: `previous` carries no data, or a number
    /// would overflow.
    pub fn expand(self, previous: &Header) -> Result<Header, ParseError> {
        if !previous.kind.carries_data() {
            return Err(ParseError::BadField("short header"));
        }
        let end = |value: u64, step: u64| value.checked_add(step).ok_or(ParseError::BadField("short header"));
        let (op_seq, first) = match self.next_operation {
            true => (end(previous.op_seq, 1)?, 0),
            false => (previous.op_seq, end(previous.first, u64::from(previous.elements))?),
        };
        let header = Header {
            op_seq,
            seq: end(previous.seq, 1)?,
            first,
            mark: end(previous.mark, u64::from(self.mark_step))?,
            ..*previous
        };
        end(header.first, u64::from(header.elements))?;
        Ok(header)
    }

    /// Writes it for `header`, which is the whole header that it stands for, sealed with `key`.
    pub fn seal(self, header: &Header, key: &FrameKey, bytes: &mut [u8; SHORT_LEN]) {
        self.emit(key.tag_of(header), bytes);
    }

    /// Writes it with this tag.
    pub fn emit(self, tag: u64, bytes: &mut [u8; SHORT_LEN]) {
        let mut w = Writer::new(bytes);
        w.u16(MAGIC_SHORT);
        w.u16(u16::from(self.next_operation));
        w.u32(self.mark_step);
        w.u64(tag);
    }

    /// Whether the bytes at a frame's beginning are a short header; two bytes are enough to tell.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC_SHORT.to_le_bytes())
    }

    /// Reads a short header and its tag, which the caller has to check against the expanded header.
    pub fn parse(bytes: &[u8]) -> Result<(ShortHeader, u64), ParseError> {
        let bytes = bytes.get(..SHORT_LEN).ok_or(ParseError::Truncated)?;
        let mut r = Reader::new(bytes);
        if r.u16()? != MAGIC_SHORT {
            return Err(ParseError::BadMagic);
        }
        let next_operation = match r.u16()? {
            0 => false,
            1 => true,
            _ => return Err(ParseError::BadField("short header")),
        };
        let short = ShortHeader { next_operation, mark_step: r.u32()? };
        Ok((short, r.u64()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{FLAG_REPLAYED, FLAG_STREAM, HEADER_LEN, Kind};
    use crate::ids::{ChildIndex, Epoch, JobId, NodeId};

    fn before() -> Header {
        let head = Header::new(Kind::Contribution, JobId(7), Epoch(1), NodeId(2), ChildIndex(3));
        Header { flags: FLAG_STREAM, op_seq: 4, seq: 10, first: 64, elements: 32, payload_len: 32, mark: 8, ..head }
    }

    fn second() -> Header {
        Header { seq: 11, first: 96, mark: 9, ..before() }
    }

    #[test]
    fn the_next_piece_and_the_next_operation_are_short_and_come_back_whole() {
        let key = FrameKey([5; 16]);
        for next in [second(), Header { op_seq: 5, first: 0, ..second() }] {
            let short = ShortHeader::between(&before(), &next).unwrap();
            let mut bytes = [0; SHORT_LEN];
            short.seal(&next, &key, &mut bytes);
            assert!(ShortHeader::begins(&bytes));
            let (parsed, tag) = ShortHeader::parse(&bytes).unwrap();
            assert_eq!(parsed.expand(&before()).unwrap(), next);
            let mut whole = [0; HEADER_LEN];
            key.seal(&next, &mut whole);
            assert_eq!(Header::parse(&whole).unwrap().1, tag, "the tag is that of the whole header");
        }
    }

    #[test]
    fn anything_else_that_differs_needs_the_whole_header() {
        let others = [
            Header { seq: 12, ..second() },
            Header { first: 97, ..second() },
            Header { mark: 7, ..second() },
            Header { mark: 8 + (1 << 32), ..second() },
            Header { op_seq: 5, ..second() },
            Header { op_seq: 6, first: 0, ..second() },
            Header { first: 0, ..second() },
            Header { elements: 16, payload_len: 16, ..second() },
            Header { payload_len: 0, ..second() },
            Header { kind: Kind::Result, ..second() },
            Header { flags: FLAG_STREAM | FLAG_REPLAYED, ..second() },
            Header { generation: crate::ids::Generation(1), ..second() },
        ];
        for other in others {
            assert_eq!(ShortHeader::between(&before(), &other), None, "{other}");
        }
    }

    #[test]
    fn nothing_follows_a_control_frame_or_the_last_number() {
        let short = ShortHeader { next_operation: false, mark_step: 1 };
        let over = Header { op_seq: u64::MAX, ..before() };
        assert!(ShortHeader { next_operation: true, ..short }.expand(&over).is_err());
        let ends = [
            Header { kind: Kind::Credit, ..before() },
            Header { seq: u64::MAX, ..before() },
            Header { mark: u64::MAX, ..before() },
            Header { first: u64::MAX - 40, ..before() },
            Header { first: u64::MAX - 20, ..before() },
        ];
        for end in ends {
            assert!(short.expand(&end).is_err(), "{end}");
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut bytes = [0; SHORT_LEN];
        ShortHeader { next_operation: false, mark_step: 3 }.seal(&second(), &FrameKey([0; 16]), &mut bytes);
        for len in 0..SHORT_LEN {
            assert_eq!(ShortHeader::parse(&bytes[..len]), Err(ParseError::Truncated));
        }
        for at in 0..4 {
            let mut damaged = bytes;
            damaged[at] ^= 2;
            assert!(ShortHeader::parse(&damaged).is_err(), "byte {at}");
        }
    }
}
