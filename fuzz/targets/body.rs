//! Bodies of control frames: the first byte is the kind.
//!
//! Asserted: parsing takes memory in proportion to the bytes; what is accepted comes back the same
//! from its own bytes; lists of ranks answer every question that a node asks before and after it
//! has checked them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trib_fuzz::memory;
use trib_wire::body::LATE_MAX;
use trib_wire::{Body, Kind, Rank, RankList};

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let Some(kind) = Kind::from_code(*kind) else { return };
    // Runs of ranks take as much in memory as in the frame; a list may have grown to twice that.
    let Ok(body) = memory::within(256 + 4 * bytes.len(), || Body::parse(kind, bytes)) else { return };
    let written = body.to_bytes();
    assert_eq!(Body::parse(kind, &written), Ok(body.clone()));
    match body {
        Body::Join { key, nodes, .. } => {
            interrogate(&key.members);
            interrogate(&nodes);
        }
        Body::Ready(key, _) | Body::Refused(key, _) | Body::Ask(key) => interrogate(&key.members),
        Body::Lost(ranks) => interrogate(&ranks),
        Body::Late(late) => {
            assert!(late.ranks.len() <= LATE_MAX);
            interrogate(&late.ranks);
        }
        Body::GroupError(fault) => drop(fault.to_string()),
        Body::Move(placement) => {
            assert!(placement.covers(&placement) && placement.with(&placement) == placement);
        }
        _ => {}
    }
});

fn interrogate(list: &RankList) {
    let _ = (list.nth(0), list.nth(u32::MAX), list.to_string(), list.contains(Rank(7)));
    if list.is_valid(WORLD) {
        assert!(list.len() <= WORLD);
        assert_eq!(list.iter().count(), list.len() as usize);
        for (position, rank) in list.iter().enumerate() {
            assert!(rank.0 < WORLD);
            assert_eq!(list.position(rank), Some(position as u32));
        }
    }
}

const WORLD: u32 = 100;
