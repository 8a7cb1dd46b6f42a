//! What is sealed opens with its key, number and tag, and with nothing else; phases follow each
//! other without a gap.

use std::collections::BTreeSet;

use proptest::prelude::*;
use trib_keys::PayloadKey;
use trib_wire::{Mode, ParseError, Seal};

use crate::{Opener, PHASE_NANOS, PHASE_SEALS, Sealer, phases};

const SEALING: [Mode; 2] = [Mode::Signed, Mode::Encrypted];

fn ends(mode: Mode) -> (Sealer, Opener) {
    (Sealer::new(mode, PayloadKey([3; 32])), Opener::new(mode, PayloadKey([3; 32])))
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7) as u8).collect()
}

#[test]
fn what_is_sealed_in_place_or_beside_it_opens_again() {
    for mode in SEALING {
        let (mut sealer, mut opener) = ends(mode);
        for len in [0, 1, 15, 16, 31, 32, 33, 63, 64, 1000, 16 << 10, (48 << 10) + 5] {
            let clear = payload(len);
            let mut placed = clear.clone();
            let seal = sealer.seal(&mut placed);
            let mut beside = vec![0; len];
            let other = sealer.seal_into(&clear, &mut beside);
            assert_eq!(other.number, seal.number + 1);
            if len >= 16 {
                assert_eq!(placed != clear, mode == Mode::Encrypted, "{mode} {len}");
                assert_eq!(placed != beside, mode == Mode::Encrypted, "a number gives other bytes");
            }
            for (seal, mut sealed) in [(seal, placed), (other, beside)] {
                opener.open(&seal, &mut sealed).unwrap();
                assert_eq!(sealed, clear);
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_payload_tag_and_number_is_refused() {
    for mode in SEALING {
        let (mut sealer, mut opener) = ends(mode);
        let mut sealed = payload(70);
        let seal = sealer.seal(&mut sealed);
        for bit in 0..8 * sealed.len() {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opener.open(&seal, &mut changed), Err(ParseError::BadTag));
        }
        for bit in 0..128 {
            let mut tag = seal.tag;
            tag[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opener.open(&Seal { tag, ..seal }, &mut sealed.clone()), Err(ParseError::BadTag));
        }
        for bit in 0..62 {
            let number = seal.number ^ (1 << bit);
            assert_eq!(opener.open(&Seal { number, ..seal }, &mut sealed.clone()), Err(ParseError::BadTag));
        }
        for len in [0, 69] {
            assert_eq!(opener.open(&seal, &mut sealed[..len].to_vec()), Err(ParseError::BadTag));
        }
        let mut other = Opener::new(mode, PayloadKey([4; 32]));
        assert_eq!(other.open(&seal, &mut sealed.clone()), Err(ParseError::BadTag));
        opener.open(&seal, &mut sealed).unwrap();
    }
}

#[test]
fn a_phase_that_is_used_up_is_followed_by_the_next_one() {
    for mode in SEALING {
        let (mut sealer, mut opener) = ends(mode);
        sealer.next = PHASE_SEALS - 2;
        let frames: Vec<(Seal, Vec<u8>)> = (0..4)
            .map(|_| {
                let mut bytes = payload(100);
                (sealer.seal(&mut bytes), bytes)
            })
            .collect();
        assert_eq!(frames.iter().map(|(seal, _)| seal.number / PHASE_SEALS).collect::<Vec<_>>(), [0, 0, 1, 1]);
        // As they come, and in another order.
        for at in [0, 1, 2, 3, 1, 3, 0, 2] {
            let (seal, mut bytes) = frames[at].clone();
            opener.open(&seal, &mut bytes).unwrap();
            assert_eq!(bytes, payload(100));
        }
    }
}

#[test]
fn a_phase_ends_when_it_has_lasted_for_long_and_something_was_sealed() {
    let (mut sealer, mut opener) = ends(Mode::Encrypted);
    let mut number = |sealer: &mut Sealer, now: u64| {
        sealer.tick(now);
        let mut bytes = payload(40);
        let seal = sealer.seal(&mut bytes);
        opener.open(&seal, &mut bytes).unwrap();
        seal.number
    };
    assert_eq!(number(&mut sealer, 5), 0);
    assert_eq!(number(&mut sealer, PHASE_NANOS + 4), 1);
    assert_eq!(number(&mut sealer, PHASE_NANOS + 5), PHASE_SEALS);
    assert_eq!(number(&mut sealer, PHASE_NANOS + 6), PHASE_SEALS + 1);
    // Nothing is sealed for a long time: one phase is enough.
    sealer.tick(3 * PHASE_NANOS);
    sealer.tick(5 * PHASE_NANOS);
    assert_eq!(number(&mut sealer, 9 * PHASE_NANOS), 2 * PHASE_SEALS);
    assert_eq!(number(&mut sealer, u64::MAX), 3 * PHASE_SEALS);
}

#[test]
fn a_number_is_given_once_whatever_comes_between() {
    let (mut sealer, _) = ends(Mode::Signed);
    let mut seen = BTreeSet::new();
    let mut now = 0;
    for step in 0..2000_u64 {
        if step % 7 == 0 {
            now += PHASE_NANOS / 3;
            sealer.tick(now);
        }
        assert!(seen.insert(sealer.sign(&[1]).number));
    }
    assert!(seen.last().is_some_and(|last| *last > 50 * PHASE_SEALS));
    assert!(phases::is_first(phases::after(5)) && phases::after(PHASE_SEALS) == 2 * PHASE_SEALS);
}

#[test]
fn modes_do_not_open_for_each_other() {
    let (mut signer, mut verifier) = ends(Mode::Signed);
    let (mut encryptor, mut decryptor) = ends(Mode::Encrypted);
    let mut bytes = payload(64);
    let seal = signer.seal(&mut bytes);
    assert!(decryptor.open(&seal, &mut bytes.clone()).is_err());
    let seal = encryptor.seal(&mut bytes);
    assert!(verifier.open(&seal, &mut bytes).is_err());
}

/// A vector of the draft that defines AEGIS (draft-irtf-cfrg-aegis-aead, AEGIS-128X2, an empty
/// message), so that what travels does not change with a library.
#[test]
fn the_primitive_is_that_of_the_draft() {
    let key: [u8; 16] = core::array::from_fn(|i| i as u8);
    let nonce: [u8; 16] = core::array::from_fn(|i| 16 + i as u8);
    let tag = aegis::aegis128x2::Aegis128X2::<16>::new(&key, &nonce).encrypt_in_place(&mut [], &[]);
    let expected = "63117dc57756e402819a82e13eca8379";
    assert_eq!(tag.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), expected);
}

proptest! {
    #[test]
    fn any_payload_and_any_damage(len in 0usize..3000, at in any::<prop::sample::Index>(), bit in 0u8..8, signs in any::<bool>()) {
        let (mut sealer, mut opener) = ends(if signs { Mode::Signed } else { Mode::Encrypted });
        let mut sealed = payload(len);
        let seal = sealer.seal(&mut sealed);
        let mut whole = sealed.clone();
        prop_assert!(opener.open(&seal, &mut whole).is_ok() && whole == payload(len));
        if len > 0 {
            sealed[at.index(len)] ^= 1 << bit;
            prop_assert!(opener.open(&seal, &mut sealed).is_err());
        }
    }
}
