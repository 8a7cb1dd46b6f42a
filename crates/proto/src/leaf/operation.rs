//! How one operation's vector is cut into numbered pieces (fragments or segments).

use core::ops::Range;

use trib_wire::{Collective, Header, Layout, Signature, Way};

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
/// signature, the quota, and the call of which the operation is a stretch.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    /// The path on which the pieces travel.
    pub(super) path: Path,
    layout: Layout,
    /// The elements of the vector.
    total: u64,
    /// The elements of every piece but the last; where blocks take turns, but the last of a block.
    piece: u64,
    /// How many blocks take turns, and the elements of each; else there is one, the vector.
    blocks: u64,
    block: u64,
}

impl Cut {
    /// How a vector of `total` elements is cut under a quota; `None` if no piece has room for one.
    /// A stretch of a `whole` vector is streamed in segments of that one's length: what is posted
    /// behind it keeps all levels of the tree at work.
    pub(super) fn new(limits: &Limits, layout: Layout, (total, whole): (u64, u64)) -> Option<Cut> {
        let streamed = layout.most(&(0..total)) > limits.stream_threshold;
        let path = if streamed { Path::Stream } else { Path::Datagram };
        let piece = if streamed { limits.segment_for(whole, layout) } else { limits.fragment_for(layout) };
        (piece > 0).then_some(Cut { path, layout, total, piece: u64::from(piece), blocks: 1, block: total })
    }

    /// The same, but if it is the vector of a long allgather, blocks take turns: the first piece of
    /// each block, the second of each, and so on. A rank gets no result of its own turn. Were the
    /// pieces in the order of the vector, all its turns would follow each other, and nothing would
    /// come down to it meanwhile.
    pub(super) fn with_turns(self, signature: &Signature) -> Cut {
        let block = signature.count;
        if signature.collective != Collective::Allgather || self.path != Path::Stream || block < self.piece {
            return self;
        }
        let piece = block.div_ceil(block.div_ceil(self.piece));
        Cut { piece, blocks: self.total / block, block, ..self }
    }

    /// The number of pieces. It is at least one, because a vector of no bytes still synchronises.
    pub(super) fn pieces(&self) -> u64 {
        self.blocks * self.block.div_ceil(self.piece).max(1)
    }

    /// The elements of the piece with this number in the operation.
    fn piece(&self, number: u64) -> Range<u64> {
        let before = number % self.blocks * self.block;
        let Range { start, end } = self.of_turn(number);
        before + start..before + end
    }

    /// Where the piece with this number lies in its block.
    fn of_turn(&self, number: u64) -> Range<u64> {
        let start = (number / self.blocks * self.piece).min(self.block);
        start..(start + self.piece).min(self.block)
    }

    /// The elements of the pieces before this number.
    fn before(&self, number: u64) -> u64 {
        let Range { start, end } = self.of_turn(number);
        start * self.blocks + (number % self.blocks) * (end - start)
    }

    /// The elements of the pieces before this number that lie inside the block `own`.
    fn before_inside(&self, number: u64, own: &Range<u64>) -> u64 {
        if self.blocks > 1 {
            let Range { start, end } = self.of_turn(number);
            let had_turn = own.start / self.block < number % self.blocks;
            return if had_turn { end } else { start };
        }
        let first = own.start.div_ceil(self.piece);
        let end = if own.end == self.total { self.pieces() } else { own.end / self.piece };
        let end = end.min(number);
        if first < end { self.piece(end - 1).end - self.piece(first).start } else { 0 }
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
        let slice = self.slice(&self.gotten_in(&piece), Way::Down);
        header.signature == self.signature
            && header.op_seq == self.op_seq
            && header.piece() == piece
            && header.carries(&slice.range(), slice.bytes.into())
    }

    /// Where the payload of an accepted result belongs.
    pub(super) fn result_slice(&self, header: &Header) -> Option<Slice> {
        let gotten = self.gotten_in(&header.piece());
        (header.payload_len > 0 && self.accepts(header)).then(|| self.slice(&gotten, Way::Down))
    }

    /// The bytes of results that are still missing for the pieces before number `end`.
    pub(super) fn due(&self, end: u64) -> u64 {
        let end = end.clamp(self.base, self.end()) - self.base;
        let due = self.gotten_before(end.max(self.done)) - self.gotten_before(self.done);
        self.bytes(&(0..due), Way::Down)
    }

    /// How many elements this rank gets of the pieces before this one.
    fn gotten_before(&self, number: u64) -> u64 {
        if self.signature.collective == Collective::Allgather {
            return self.cut.before(number) - self.cut.before_inside(number, &self.given);
        }
        let Range { start, end } = overlap(&(0..self.cut.before(number)), &self.gotten);
        end - start
    }

    /// The elements of a piece that this rank gets; of an allgather not what it has given itself.
    fn gotten_in(&self, piece: &Range<u64>) -> Range<u64> {
        if window::has(&self.signature, &self.given, piece) {
            return piece.start..piece.start;
        }
        overlap(piece, &self.gotten)
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
        if self.cut.blocks == 1 {
            return overlap(&(self.cut.before(number)..self.cut.total), &self.given);
        }
        self.given.start + self.cut.before_inside(number, &self.given)..self.given.end
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
