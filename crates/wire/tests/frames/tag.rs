//! The keyed tag: no bit of a sealed header can change unseen, and another key gives another tag.

use proptest::prelude::*;
use trib_wire::auth::FrameKey;
use trib_wire::header::{HEADER_LEN, TAG_OFFSET};
use trib_wire::mode::SEAL_LEN;
use trib_wire::{ChildIndex, Epoch, Header, JobId, Kind, NodeId, ParseError};

use crate::generate::header;

/// What a receiver does with the header of a frame.
fn accept(bytes: &[u8], key: &FrameKey) -> Result<Header, ParseError> {
    let (header, tag) = Header::parse(bytes)?;
    key.verify(bytes, tag)?;
    Ok(header)
}

#[test]
fn the_tag_is_siphash_2_4_over_all_that_stands_before_it() {
    let key = FrameKey(core::array::from_fn(|i| i as u8));
    let header = Header::new(Kind::Heartbeat, JobId(1), Epoch(1), NodeId(2), ChildIndex(3));
    let mut bytes = [0; HEADER_LEN];
    key.seal(&header, &mut bytes);
    let tag = u64::from_le_bytes(bytes[TAG_OFFSET..].try_into().unwrap());
    assert_eq!(tag, siphash_2_4(&key.0, &bytes[..TAG_OFFSET]));
    // The published vector of the paper's reference implementation: 15 bytes 0, 1, .. 14 under this
    // key.
    let counted: Vec<u8> = (0..15).collect();
    assert_eq!(siphash_2_4(&key.0, &counted), 0xa129_ca61_49be_45e5);
}

#[test]
fn every_flipped_bit_is_detected() {
    let key = FrameKey([0x5c; 16]);
    let header = Header {
        elements: 4096,
        payload_len: 4096,
        ..Header::new(Kind::Contribution, JobId(7), Epoch(1), NodeId(2), ChildIndex(3))
    };
    let mut bytes = [0; HEADER_LEN];
    key.seal(&header, &mut bytes);
    assert_eq!(accept(&bytes, &key), Ok(header));
    for bit in 0..8 * HEADER_LEN {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(accept(&bytes, &key).is_err(), "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

proptest! {
    #[test]
    fn a_tag_beside_covers_header_number_and_seal(
        header in header(), number in any::<u64>(), seal in any::<[u8; SEAL_LEN]>(), bit in 0usize..8 * SEAL_LEN,
    ) {
        let key = FrameKey([3; 16]);
        let tag = key.tag_beside(&header, Some(number), Some(&seal));
        let mut other = seal;
        other[bit / 8] ^= 1 << (bit % 8);
        let another = Header { seq: header.seq ^ 1, ..header };
        for wrong in [
            key.tag_beside(&header, Some(number), Some(&other)),
            key.tag_beside(&header, Some(number ^ 1 << (bit % 64)), Some(&seal)),
            key.tag_beside(&another, Some(number), Some(&seal)),
            key.tag_beside(&header, None, Some(&seal)),
            key.tag_beside(&header, Some(number), None),
            key.tag_beside(&header, None, None),
        ] {
            prop_assert_ne!(wrong, tag);
        }
        prop_assert_eq!(key.tag_beside(&header, None, None), key.tag_of(&header));
    }

    #[test]
    fn another_key_is_a_bad_tag(header in header(), right in any::<[u8; 16]>(), bit in 0usize..128) {
        let mut wrong = right;
        wrong[bit / 8] ^= 1 << (bit % 8);
        let mut bytes = [0; HEADER_LEN];
        FrameKey(right).seal(&header, &mut bytes);
        prop_assert_eq!(accept(&bytes, &FrameKey(right)), Ok(header));
        prop_assert_eq!(accept(&bytes, &FrameKey(wrong)), Err(ParseError::BadTag));
    }
}

/// The function once more, written from its paper, so that a change of the library is seen.
fn siphash_2_4(key: &[u8; 16], bytes: &[u8]) -> u64 {
    let word = |b: &[u8]| u64::from_le_bytes(b.try_into().unwrap());
    let (k0, k1) = (word(&key[..8]), word(&key[8..]));
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let chunks = bytes.chunks_exact(8);
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    last[7] = bytes.len() as u8;
    for m in chunks.map(word).chain([u64::from_le_bytes(last)]) {
        v[3] ^= m;
        (0..2).for_each(|_| round(&mut v));
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}
