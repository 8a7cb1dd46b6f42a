//! How one result is handed to the children: all bytes, a part, or the header alone, as the
//! collective needs it.

use trib_wire::{ChildIndex, Header, Kind};

use super::at::At;
use super::frame::about_piece;
use super::info::fragment;
use super::output::{NodeOutput, Part, Payload, Target};
use crate::Path;
use crate::window;

/// The result of one fragment or segment.
pub(super) struct Outcome<'a, B> {
    pub(super) path: Path,
    /// The header that says what the fragment is.
    pub(super) head: &'a Header,
    /// Its bytes, if there are any.
    pub(super) part: Option<&'a Part<B>>,
    /// All ranks of the group hold the results below this number.
    pub(super) stable: u64,
}

/// Sends a result to the children in `targets`. Children that get the same bytes share one frame.
pub(super) fn spread<B>(at: &mut At<'_, impl NodeOutput<Buffer = B>>, outcome: &Outcome<'_, B>, targets: u64) {
    let Outcome { path, head, part, stable } = *outcome;
    let fragment = fragment(head);
    let (mut whole, mut bare) = (0u64, 0u64);
    let template = about_piece(head, stable, at.down(Kind::Result, ChildIndex::ALL));
    let mut send = |target: Target, window: u32, len: u32| {
        let child = if let Target::Child(child) = target { child } else { ChildIndex::ALL };
        let header = Header { child, window, payload_len: len, ..template };
        match part {
            Some(part) if len > 0 => {
                let payload = Payload::Data { buffer: &part.buffer, from: window - part.window };
                at.out.transmit(target, path, &header, payload);
            }
            _ => at.out.transmit(target, path, &header, Payload::None),
        }
    };
    for member in &at.info.members {
        let bit = 1u64 << member.child.0;
        if targets & bit == 0 {
            continue;
        }
        let gets = window::gotten_by(&head.signature, &member.ranks, &fragment);
        if gets.is_empty() || part.is_none() {
            bare |= bit;
        } else if gets == fragment {
            whole |= bit;
        } else {
            let window = (gets.start - fragment.start) as u32;
            send(Target::Child(member.child), window, (gets.end - gets.start) as u32);
        }
    }
    if whole != 0 {
        send(some_of(whole), 0, head.extent);
    }
    if bare != 0 {
        send(some_of(bare), 0, 0);
    }
}

/// The target of these children: one child by its index, several as bits.
fn some_of(bits: u64) -> Target {
    if bits.is_power_of_two() {
        Target::Child(ChildIndex(bits.trailing_zeros() as u16))
    } else {
        Target::Children(bits)
    }
}
