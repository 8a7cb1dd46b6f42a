//! How one operation's vector is cut into numbered pieces (fragments or segments).

use core::ops::Range;

use trib_wire::{Header, Signature};

use super::output::{OpId, Slice};
use crate::window;

/// A rank's position in a group.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    /// The number of ranks of the group.
    pub(super) size: u32,
    /// This rank's number in the group, from 0.
    pub(super) me: u32,
}

pub(super) struct Operation {
    pub(super) id: OpId,
    pub(super) signature: Signature,
    pub(super) op_seq: u64,
    /// 0, or one more than the lane for which this is a part of a larger operation.
    lane: u16,
    /// The number of its first piece in the group, which is set when it starts.
    pub(super) base: u64,
    /// The number of pieces. It is at least one, because a vector of no bytes still synchronises.
    pub(super) pieces: u64,
    /// The number of pieces whose results are here.
    pub(super) done: u64,
    /// The length of the vector in bytes.
    total: u64,
    /// The length of a piece in bytes.
    piece: u64,
    /// The bytes of the vector that this rank gives.
    given: Range<u64>,
    /// The bytes of the vector that this rank gets.
    gotten: Range<u64>,
}

impl Operation {
    pub(super) fn new(
        id: OpId,
        signature: Signature,
        seat: Seat,
        (op_seq, lane): (u64, u16),
        total: u64,
        piece: u32,
    ) -> Operation {
        let piece = u64::from(piece);
        Operation {
            id,
            signature,
            op_seq,
            lane,
            base: 0,
            pieces: total.div_ceil(piece).max(1),
            done: 0,
            total,
            piece,
            given: window::given(&signature, seat.size, seat.me),
            gotten: window::gotten(&signature, seat.size, seat.me),
        }
    }

    /// The same operation, with its pieces numbered from `base` on.
    pub(super) fn starting_at(self, base: u64) -> Operation {
        Operation { base, ..self }
    }

    /// The first number after its pieces.
    pub(super) fn end(&self) -> u64 {
        self.base + self.pieces
    }

    /// Fills in what a contribution to piece `seq` says. Returns the header, and the payload to
    /// send with it if this rank gives any byte of the piece.
    pub(super) fn describe(&self, seq: u64, header: Header) -> (Header, Option<Slice>) {
        let piece = self.range(seq);
        let given = overlap(&piece, &self.given);
        let len = (given.end - given.start) as u32;
        let header = Header {
            lane: self.lane,
            signature: self.signature,
            op_seq: self.op_seq,
            seq,
            offset: piece.start,
            extent: (piece.end - piece.start) as u32,
            window: if len > 0 { (given.start - piece.start) as u32 } else { 0 },
            payload_len: len,
            ..header
        };
        let slice = (len > 0).then_some(Slice { op: self.id, from: given.start, len });
        (header, slice)
    }

    /// Whether a result is of this operation and carries exactly the bytes that this rank gets of
    /// the piece.
    pub(super) fn accepts(&self, header: &Header) -> bool {
        let piece = self.range(header.seq);
        let gotten = overlap(&piece, &self.gotten);
        let len = gotten.end - gotten.start;
        header.signature == self.signature
            && header.op_seq == self.op_seq
            && header.offset == piece.start
            && u64::from(header.extent) == piece.end - piece.start
            && u64::from(header.payload_len) == len
            && (len == 0 || u64::from(header.window) == gotten.start - piece.start)
    }

    /// Where the payload of an accepted result belongs.
    pub(super) fn result_slice(&self, header: &Header) -> Option<Slice> {
        (header.payload_len > 0 && self.accepts(header)).then(|| Slice {
            op: self.id,
            from: header.offset + u64::from(header.window),
            len: header.payload_len,
        })
    }

    /// The bytes of results that are still missing for the pieces before number `end`.
    pub(super) fn due(&self, end: u64) -> u64 {
        let from = self.range(self.base + self.done).start;
        let to = self.range(end.clamp(self.base, self.end())).start;
        let gotten = overlap(&(from..to.max(from)), &self.gotten);
        gotten.end - gotten.start
    }

    /// The bytes of the vector from piece `seq` to the end.
    pub(super) fn tail(&self, seq: u64) -> Range<u64> {
        let from = (seq.saturating_sub(self.base) * self.piece).min(self.total);
        from..self.total
    }

    fn range(&self, seq: u64) -> Range<u64> {
        let start = ((seq - self.base) * self.piece).min(self.total);
        start..(start + self.piece).min(self.total)
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

#[cfg(test)]
mod tests;
