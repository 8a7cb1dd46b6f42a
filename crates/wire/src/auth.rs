//! The keyed tag of a frame: SipHash-2-4 over the header, which itself covers the payload's CRC, or
//! over the header and what seals the payload.
//!
//! SipHash is the short-input MAC of Aumasson and Bernstein (Indocrypt 2012). An off-path attacker
//! can neither make a frame nor change one unseen. One on the path can change payloads of streams
//! in the mode `checked`, and nothing in the others (`docs/protocol.md#3`).

use siphasher::sip::SipHasher24;

use crate::error::ParseError;
use crate::header::{FLAG_CRC, HEADER_LEN, Header, TAG_OFFSET};
use crate::mode::SEAL_LEN;

/// A 128-bit key of one direction of one edge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FrameKey(pub [u8; 16]);

impl core::fmt::Debug for FrameKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FrameKey(..)")
    }
}

impl FrameKey {
    /// Most tags are of so many bytes, which is worth code of its own.
    fn tag(&self, covered: &[u8; TAG_OFFSET]) -> u64 {
        SipHasher24::new_with_key(&self.0).hash(covered)
    }

    /// Writes `header` with its tag.
    pub fn seal(&self, header: &Header, bytes: &mut [u8; HEADER_LEN]) {
        header.emit(0, bytes);
        let (covered, behind) = bytes.split_first_chunk_mut().expect("a header is longer than what its tag covers");
        behind.copy_from_slice(&self.tag(covered).to_le_bytes());
    }

    /// The tag of a header, wherever its bytes travel.
    pub fn tag_of(&self, header: &Header) -> u64 {
        let mut bytes = [0; HEADER_LEN];
        header.emit(0, &mut bytes);
        let (covered, _) = bytes.split_first_chunk().expect("a header is longer than what its tag covers");
        self.tag(covered)
    }

    /// The tag of a header in a mode that seals payloads. On a stream it covers the frame's number
    /// there, too, and on either path the seal, if the frame has a payload.
    pub fn tag_beside(&self, header: &Header, number: Option<u64>, seal: Option<&[u8; SEAL_LEN]>) -> u64 {
        let mut bytes = [0; HEADER_LEN];
        header.emit(0, &mut bytes);
        let mut covered = [0; TAG_OFFSET + 8 + SEAL_LEN];
        covered[..TAG_OFFSET].copy_from_slice(&bytes[..TAG_OFFSET]);
        let mut len = TAG_OFFSET;
        let mut add = |part: &[u8]| {
            covered[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        };
        if let Some(number) = number {
            add(&number.to_le_bytes());
        }
        if let Some(seal) = seal {
            add(seal);
        }
        SipHasher24::new_with_key(&self.0).hash(&covered[..len])
    }

    /// Checks the tag of header bytes that `Header::parse` accepted.
    pub fn verify(&self, bytes: &[u8], tag: u64) -> Result<(), ParseError> {
        let covered = bytes.first_chunk().ok_or(ParseError::Truncated)?;
        if self.tag(covered) == tag { Ok(()) } else { Err(ParseError::BadTag) }
    }
}

/// CRC-32C of a payload.
pub fn payload_crc(payload: &[u8]) -> u32 {
    crc32c::crc32c(payload)
}

/// Checks length and checksum of a whole datagram's payload against its header.
pub fn check_payload(header: &Header, payload: &[u8]) -> Result<(), ParseError> {
    if payload.len() < header.payload_len as usize {
        return Err(ParseError::Truncated);
    }
    if payload.len() > header.payload_len as usize {
        return Err(ParseError::TrailingBytes);
    }
    if header.flags & FLAG_CRC != 0 && payload_crc(payload) != header.payload_crc {
        return Err(ParseError::BadChecksum);
    }
    Ok(())
}
