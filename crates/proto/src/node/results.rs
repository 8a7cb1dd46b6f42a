//! Handing one result to the children: all bytes, a part, or the header alone, as the collective says.

use trib_wire::{ChildIndex, Header, Kind};

use super::group::{GroupInfo, fragment};
use super::output::{NodeOutput, Part, Payload, Target};
use super::place::Place;
use crate::Path;
use crate::window;

/// Sends the result of the fragment that `about` describes to the children in `targets`. Children that get the same
/// bytes share one frame.
pub(super) fn spread(
    place: &Place,
    info: &GroupInfo,
    about: &Header,
    result: Option<Part>,
    targets: u64,
    stable: u64,
    path: Path,
    out: &mut impl NodeOutput,
) {
    let fragment = fragment(about);
    let (mut whole, mut bare) = (0u64, 0u64);
    let template = Header {
        kind: Kind::Result,
        mark: stable,
        payload_crc: 0,
        ..Header { ..info.down(place, Kind::Result, ChildIndex::ALL) }
    };
    let template = Header {
        flags: about.flags,
        lane: about.lane,
        signature: about.signature,
        witness: about.witness,
        op_seq: about.op_seq,
        seq: about.seq,
        offset: about.offset,
        extent: about.extent,
        ..template
    };
    let mut send = |target: Target, window: u32, len: u32| {
        let child = if let Target::Child(child) = target { child } else { ChildIndex::ALL };
        let header = Header { child, window, payload_len: len, ..template };
        match result {
            Some(part) if len > 0 => {
                let payload = Payload::Data { token: part.token, from: window - part.window };
                out.transmit(target, path, &header, payload);
            }
            _ => out.transmit(target, path, &header, Payload::None),
        }
    };
    for member in &info.members {
        let bit = 1u64 << member.child.0;
        if targets & bit == 0 {
            continue;
        }
        let gets = window::gotten_by(&about.signature, &member.ranks, &fragment);
        if gets.is_empty() || result.is_none() {
            bare |= bit;
        } else if gets == fragment {
            whole |= bit;
        } else {
            let window = (gets.start - fragment.start) as u32;
            send(Target::Child(member.child), window, (gets.end - gets.start) as u32);
        }
    }
    if whole != 0 {
        send(some_of(whole), 0, about.extent);
    }
    if bare != 0 {
        send(some_of(bare), 0, 0);
    }
}

/// One child by name, several as a map.
fn some_of(bits: u64) -> Target {
    if bits.is_power_of_two() {
        Target::Child(ChildIndex(bits.trailing_zeros() as u16))
    } else {
        Target::Children(bits)
    }
}
