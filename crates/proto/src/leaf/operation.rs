//! How one operation's vector is cut into numbered pieces (fragments or segments).

use core::ops::Range;

use trib_wire::{Header, Layout, Signature, Way};

use super::output::{OpId, Slice};
use crate::limits::Limits;
use crate::{Path, window};

/// A rank's position in a group.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    /// The number of ranks of the group.
    pub(super) size: u32,
    /// This rank's number in the group, from 0.
    pub(super) me: u32,
}

/// How a vector is cut. All ranks and limits of a group agree on it, because it follows from the
/// signature and the quota.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    /// The path on which the pieces travel.
    pub(super) path: Path,
    layout: Layout,
    /// The elements of the vector.
    total: u64,
    /// The elements of every piece but the last.
    piece: u64,
}

impl Cut {
    /// How a vector of `total` elements is cut under a quota; `None` if no piece has room for one.
    pub(super) fn new(limits: &Limits, layout: Layout, total: u64) -> Option<Cut> {
        let streamed = layout.most(&(0..total)) > limits.stream_threshold;
        let path = if streamed { Path::Stream } else { Path::Datagram };
        let piece = if streamed { limits.segment_for(total, layout) } else { limits.fragment_for(layout) };
        (piece > 0).then_some(Cut { path, layout, total, piece: u64::from(piece) })
    }

    /// The number of pieces. It is at least one, because a vector of no bytes still synchronises.
    pub(super) fn pieces(&self) -> u64 {
        self.total.div_ceil(self.piece).max(1)
    }

    /// The elements of the piece with this number in the operation.
    fn piece(&self, number: u64) -> Range<u64> {
        let start = (number * self.piece).min(self.total);
        start..(start + self.piece).min(self.total)
    }
}

pub(super) struct Operation {
    pub(super) id: OpId,
    pub(super) signature: Signature,
    pub(super) op_seq: u64,
    /// 0, or one more than the lane for which this is a part of a larger operation.
    lane: u16,
    /// The number of its first piece in the group, which is set when it starts.
    pub(super) base: u64,
    pub(super) pieces: u64,
    /// The number of pieces whose results are here; after a change of the epoch, of those that have
    /// come in this epoch or need not come any more.
    pub(super) done: u64,
    /// Whether it is over for the program.
    pub(super) over: bool,
    /// If it is, the bytes of this rank's contribution that the driver has copied.
    pub(super) copied: u64,
    cut: Cut,
    /// The elements of the vector that this rank gives.
    given: Range<u64>,
    /// The elements of the vector that this rank gets.
    gotten: Range<u64>,
}

impl Operation {
    pub(super) fn new(id: OpId, signature: Signature, seat: Seat, (op_seq, lane): (u64, u16), cut: Cut) -> Operation {
        Operation {
            id,
            signature,
            op_seq,
            lane,
            base: 0,
            pieces: cut.pieces(),
            done: 0,
            over: false,
            copied: 0,
            cut,
            given: window::given(&signature, seat.size, seat.me),
            gotten: window::gotten(&signature, seat.size, seat.me),
        }
    }

    /// The same operation, with its pieces numbered from `base` on.
    pub(super) fn starting_at(self, base: u64) -> Operation {
        Operation { base, ..self }
    }

    /// The same operation in an epoch that begins with piece `start`.
    pub(super) fn resuming_at(self, start: u64) -> Operation {
        Operation { done: start.saturating_sub(self.base).min(self.pieces), ..self }
    }

    /// The first number after its pieces.
    pub(super) fn end(&self) -> u64 {
        self.base + self.pieces
    }

    /// Fills in what a contribution to piece `seq` says. Returns the header, and the payload to
    /// send with it if this rank gives any element of the piece.
    pub(super) fn describe(&self, seq: u64, header: Header) -> (Header, Option<Slice>) {
        let piece = self.range(seq);
        let slice = self.slice(&overlap(&piece, &self.given), Way::FromRank);
        let header = Header {
            lane: self.lane,
            signature: self.signature,
            op_seq: self.op_seq,
            seq,
            first: piece.start,
            elements: (piece.end - piece.start) as u32,
            ..header
        };
        (header.carrying(&slice.range(), slice.bytes), (slice.elements > 0).then_some(slice))
    }

    /// Whether a result is of this operation and carries exactly the elements that this rank gets
    /// of the piece.
    pub(super) fn accepts(&self, header: &Header) -> bool {
        let piece = self.range(header.seq);
        let slice = self.slice(&overlap(&piece, &self.gotten), Way::Down);
        header.signature == self.signature
            && header.op_seq == self.op_seq
            && header.piece() == piece
            && header.carries(&slice.range(), slice.bytes.into())
    }

    /// Where the payload of an accepted result belongs.
    pub(super) fn result_slice(&self, header: &Header) -> Option<Slice> {
        let gotten = overlap(&header.piece(), &self.gotten);
        (header.payload_len > 0 && self.accepts(header)).then(|| self.slice(&gotten, Way::Down))
    }

    /// The bytes of results that are still missing for the pieces before number `end`.
    pub(super) fn due(&self, end: u64) -> u64 {
        let from = self.range(self.base + self.done).start;
        let to = self.range(end.clamp(self.base, self.end())).start;
        self.bytes(&overlap(&(from..to.max(from)), &self.gotten), Way::Down)
    }

    /// The bytes of elements of its vector.
    pub(super) fn bytes(&self, elements: &Range<u64>, way: Way) -> u64 {
        self.cut.layout.bytes(elements, way)
    }

    /// The elements that this rank gives of the pieces from number `seq` to the end, which may lie
    /// before that.
    pub(super) fn given_from(&self, seq: u64) -> Range<u64> {
        if seq <= self.base {
            return self.given.clone();
        }
        let number = (seq - self.base).min(self.pieces);
        overlap(&(self.cut.piece(number).start..self.cut.total), &self.given)
    }

    /// The elements of piece `seq`.
    fn range(&self, seq: u64) -> Range<u64> {
        self.cut.piece(seq - self.base)
    }

    /// Elements of one piece, which a frame carries.
    fn slice(&self, elements: &Range<u64>, way: Way) -> Slice {
        let bytes = self.bytes(elements, way) as u32;
        Slice { op: self.id, first: elements.start, elements: (elements.end - elements.start) as u32, bytes }
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

#[cfg(test)]
mod tests;
