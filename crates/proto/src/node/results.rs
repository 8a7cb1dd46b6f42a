//! How one result is handed to the children: all elements, some, or the header alone, as the
//! collective needs it.

use core::ops::Range;

use trib_wire::{ChildIndex, Header, Kind, Way};

use super::at::At;
use super::frame::about_piece;
use super::output::{NodeOutput, Part, Payload, Target};
use crate::Path;
use crate::window;

/// The result of one fragment or segment.
pub(super) struct Outcome<'a, B> {
    pub(super) path: Path,
    /// The header that says what the piece is.
    pub(super) head: &'a Header,
    /// Its elements, if there are any.
    pub(super) part: Option<&'a Part<B>>,
    /// All ranks of the group hold the results below this number.
    pub(super) stable: u64,
}

/// Sends a result to the children in `targets`. Children that get the same bytes share one frame.
pub(super) fn spread<B>(at: &mut At<'_, impl NodeOutput<Buffer = B>>, outcome: &Outcome<'_, B>, targets: u64) {
    let Outcome { path, head, part, stable } = *outcome;
    let (piece, layout) = (head.piece(), head.signature.layout());
    let (mut whole, mut bare) = (0u64, 0u64);
    let template = about_piece(head, stable, at.down(Kind::Result, ChildIndex::ALL));
    let mut send = |target: Target, elements: &Range<u64>| {
        let child = if let Target::Child(child) = target { child } else { ChildIndex::ALL };
        let header = Header { child, ..template }.carrying(elements, layout.bytes(elements, Way::Down) as u32);
        match part {
            Some(part) if !elements.is_empty() => {
                let before = part.elements.start..elements.start;
                let payload = Payload::Data { buffer: &part.buffer, from: layout.bytes(&before, Way::Down) as u32 };
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
        let gets = window::gotten_by(&head.signature, &member.ranks, &piece);
        if gets.is_empty() || part.is_none() {
            bare |= bit;
        } else if gets == piece {
            whole |= bit;
        } else {
            send(Target::Child(member.child), &gets);
        }
    }
    if whole != 0 {
        send(some_of(whole), &piece);
    }
    if bare != 0 {
        send(some_of(bare), &(piece.start..piece.start));
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
