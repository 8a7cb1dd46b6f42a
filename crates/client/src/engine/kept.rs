//! Copies of what this rank has given to operations, for the case that it is needed again: of
//! operations that are over, and of pieces over which a result in place is about to come.

use std::collections::VecDeque;
use std::ops::Range;

use trib_proto::leaf::Slice;
use trib_transport::tcp::FORESEEN_MAX;

/// What is needed of the input of an operation that is over.
pub(super) enum Kept {
    /// A copy that takes no memory which has to be found, and given back: of a short operation.
    Short {
        elements: Range<u64>,
        len: u8,
        bytes: [u8; SHORT_MOST],
    },
    Long(Saved),
}

impl Kept {
    /// A copy of these elements, of which there is one or more.
    pub(super) fn copy(elements: Range<u64>, input: &[u8], spares: &mut Spares) -> Kept {
        let mut short = [0; SHORT_MOST];
        if let Some(bytes) = short.get_mut(..input.len()) {
            bytes.copy_from_slice(input);
            return Kept::Short { elements, len: input.len() as u8, bytes: short };
        }
        let mut bytes = spares.bytes();
        bytes.extend_from_slice(input);
        Kept::Long(Saved::one(elements, bytes, spares))
    }

    /// The bytes of a slice, if they are kept.
    pub(super) fn slice(&self, slice: Slice) -> Option<&[u8]> {
        match self {
            Kept::Short { elements, len, bytes } => part(elements, &bytes[..usize::from(*len)], slice),
            Kept::Long(saved) => saved.slice(slice),
        }
    }
}

/// Copies of ranges of elements of one operation's input: of what is needed of an operation that is
/// over, or of the pieces over which a result has come, or is coming.
#[derive(Default)]
pub(super) struct Saved {
    pieces: VecDeque<Piece>,
}

/// A copy of a range of elements. There is one or more.
struct Piece {
    elements: Range<u64>,
    bytes: Vec<u8>,
}

/// The bytes of a slice, if it lies inside these elements, of which there is one or more.
fn part<'a>(elements: &Range<u64>, bytes: &'a [u8], slice: Slice) -> Option<&'a [u8]> {
    let own = slice.range();
    let element = bytes.len() / (elements.end - elements.start) as usize;
    let from = own.start.checked_sub(elements.start)? as usize * element;
    bytes.get(from..from + slice.bytes as usize).filter(|_| own.end <= elements.end)
}

/// How many pieces of an operation's input are needed at most beside the results over them. A rank
/// that has the results below n is sure that the others have those below n - F, of fragments below
/// n - W where n - 1 is the highest that it has. Of a stream it has memory, moreover, for the
/// segment that is being read and for those behind it that are foreseen, and these bytes, too, may
/// lie over the input already.
pub(super) fn saves(flight: u32, window: u32) -> usize {
    (flight as usize + 1 + FORESEEN_MAX).max(window as usize)
}

impl Saved {
    /// The elements of `bytes`, which is memory of `spares`.
    pub(super) fn one(elements: Range<u64>, bytes: Vec<u8>, spares: &mut Spares) -> Saved {
        let mut saved = Saved { pieces: spares.pieces() };
        saved.pieces.push_back(Piece { elements, bytes });
        saved
    }

    /// Keeps the bytes of a piece, and those of at most `most - 1` others, in the order of the
    /// vector, in whatever order results come. The lowest goes first: all ranks have its result.
    pub(super) fn keep(&mut self, slice: Slice, bytes: &[u8], most: usize, spares: &mut Spares) {
        if self.slice(slice).is_some() {
            return;
        }
        if self.pieces.capacity() == 0 {
            self.pieces = spares.pieces();
        }
        let oldest = if self.pieces.len() < most { None } else { self.pieces.pop_front() };
        let mut memory = oldest.map_or_else(|| spares.bytes(), |oldest| oldest.bytes);
        memory.clear();
        memory.extend_from_slice(bytes);
        let piece = Piece { elements: slice.range(), bytes: memory };
        // Mostly it is the highest.
        let behind = self.pieces.iter().rev().take_while(|other| other.elements.start > piece.elements.start);
        self.pieces.insert(self.pieces.len() - behind.count(), piece);
    }

    /// The bytes of a slice, if they are kept.
    pub(super) fn slice(&self, slice: Slice) -> Option<&[u8]> {
        self.pieces.iter().rev().find_map(|piece| part(&piece.elements, &piece.bytes, slice))
    }

    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether all of these elements are kept, each piece behind the one before it.
    pub(super) fn covers(&self, elements: &Range<u64>) -> bool {
        let mut known = elements.start;
        for piece in &self.pieces {
            if (piece.elements.start..piece.elements.end).contains(&known) {
                known = piece.elements.end;
            }
        }
        known >= elements.end
    }

    /// Lays what is kept over the bytes of a range of elements.
    pub(super) fn restore(&self, elements: &Range<u64>, bytes: &mut [u8]) {
        let element = bytes.len() / (elements.end - elements.start) as usize;
        for piece in &self.pieces {
            let start = elements.start.max(piece.elements.start);
            let end = elements.end.min(piece.elements.end);
            if start < end {
                let len = (end - start) as usize * element;
                let from = (start - piece.elements.start) as usize * element;
                let to = (start - elements.start) as usize * element;
                bytes[to..to + len].copy_from_slice(&piece.bytes[from..from + len]);
            }
        }
    }
}

/// Memory of copies that nobody needs any more. Operations of a program are often alike, so that a
/// copy mostly fits where an earlier one lay.
#[derive(Default)]
pub(super) struct Spares {
    bytes: Vec<Vec<u8>>,
    /// Of all of them.
    capacity: usize,
    /// Lists without pieces.
    lists: Vec<VecDeque<Piece>>,
}

impl Spares {
    /// Empty memory for a copy.
    pub(super) fn bytes(&mut self) -> Vec<u8> {
        let spare = self.bytes.pop().unwrap_or_default();
        self.capacity -= spare.capacity();
        spare
    }

    fn pieces(&mut self) -> VecDeque<Piece> {
        self.lists.pop().unwrap_or_default()
    }

    /// Takes back the memory of copies.
    pub(super) fn give(&mut self, saved: Saved) {
        let mut list = saved.pieces;
        for piece in list.drain(..) {
            let mut bytes = piece.bytes;
            bytes.clear();
            if self.capacity.saturating_add(bytes.capacity()) <= SPARE_BYTES {
                self.capacity += bytes.capacity();
                self.bytes.push(bytes);
            }
        }
        if list.capacity() > 0 && self.lists.len() < SPARE_LISTS {
            self.lists.push(list);
        }
    }
}

/// A copy of so many bytes takes no memory of its own: a vector of eight numbers.
const SHORT_MOST: usize = 64;
/// More bytes than this are not held back: a few copies of what may be under way in a long vector.
const SPARE_BYTES: usize = 4 << 20;
/// More lists than this are not held back: one for each operation that may be under way.
const SPARE_LISTS: usize = 64;

#[cfg(test)]
mod tests {
    use trib_proto::leaf::OpId;

    use super::*;

    fn slice(first: u64, elements: u32) -> Slice {
        Slice { op: OpId(0), first, elements, bytes: 2 * elements }
    }

    #[test]
    fn a_slice_of_what_is_kept_is_found_by_its_elements() {
        let saved = Saved::one(10..13, vec![1, 1, 2, 2, 3, 3], &mut Spares::default());
        assert_eq!(saved.slice(slice(11, 2)), Some(&[2, 2, 3, 3][..]));
        assert_eq!((saved.slice(slice(9, 2)), saved.slice(slice(12, 2))), (None, None));
        assert!(saved.covers(&(11..13)) && !saved.covers(&(9..11)) && !saved.covers(&(12..14)));
    }

    #[test]
    fn a_short_copy_takes_no_memory_and_a_long_one_some() {
        let mut spares = Spares::default();
        for len in [2, SHORT_MOST, SHORT_MOST + 2] {
            let input: Vec<u8> = (0..len as u8).collect();
            let kept = Kept::copy(10..10 + len as u64 / 2, &input, &mut spares);
            assert_eq!(matches!(kept, Kept::Short { .. }), len <= SHORT_MOST);
            assert_eq!(kept.slice(slice(10, 1)), Some(&input[..2]));
            assert_eq!(kept.slice(slice(9 + len as u64 / 2, 1)), Some(&input[len - 2..]));
            assert_eq!((kept.slice(slice(9, 1)), kept.slice(slice(10 + len as u64 / 2, 1))), (None, None));
        }
    }

    #[test]
    fn memory_is_used_again_up_to_a_bound() {
        let mut spares = Spares::default();
        for bytes in [SPARE_BYTES, 1] {
            let saved = Saved::one(0..1, vec![7; bytes], &mut spares);
            spares.give(saved);
        }
        let again = spares.bytes();
        assert_eq!((again.len(), again.capacity()), (0, SPARE_BYTES));
        assert_eq!(spares.bytes().capacity(), 0, "there was no room for the second");
        assert_eq!(spares.lists.len(), 1, "the second had the list of the first");
        let many: Vec<Saved> = (0..=SPARE_LISTS).map(|_| Saved::one(0..1, vec![7], &mut spares)).collect();
        many.into_iter().for_each(|saved| spares.give(saved));
        assert_eq!((spares.lists.len(), spares.bytes.len()), (SPARE_LISTS, SPARE_LISTS + 1));
        assert_eq!(spares.capacity, SPARE_LISTS + 1);
    }

    #[test]
    fn the_last_pieces_are_saved_and_laid_over_what_has_become_of_them() {
        let (mut saved, mut spares) = (Saved::default(), Spares::default());
        for piece in 0..4u8 {
            saved.keep(slice(2 * u64::from(piece), 2), &[piece; 4], 3, &mut spares);
        }
        saved.keep(slice(6, 2), &[99; 4], 3, &mut spares);
        assert_eq!(saved.slice(slice(0, 2)), None, "there is room for three");
        assert_eq!(saved.slice(slice(6, 2)), Some(&[3; 4][..]), "the first bytes count");
        assert!(saved.covers(&(3..8)) && !saved.covers(&(1..8)));
        let mut bytes = [77; 8];
        saved.restore(&(3..7), &mut bytes);
        assert_eq!(bytes, [1, 1, 2, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn pieces_that_came_out_of_order_lie_in_order_and_the_lowest_goes_first() {
        let (mut saved, mut spares) = (Saved::default(), Spares::default());
        for piece in [1, 2, 3, 0, 4, 5] {
            saved.keep(slice(2 * piece, 2), &[piece as u8; 4], 4, &mut spares);
        }
        assert_eq!(saved.slice(slice(2, 2)), None, "there is room for four");
        for piece in 2..6 {
            assert_eq!(saved.slice(slice(2 * piece, 2)), Some(&[piece as u8; 4][..]));
        }
        assert!(saved.covers(&(4..12)) && !saved.covers(&(3..12)));
    }

    #[test]
    fn what_a_result_under_way_overwrites_drives_out_nothing_that_another_rank_may_lack() {
        for (flight, window) in [(12, 16), (1, 1), (4, 64)] {
            let most = saves(flight, window);
            let (mut saved, mut spares) = (Saved::default(), Spares::default());
            let ahead = u64::from(flight) + 1 + FORESEEN_MAX as u64;
            // Results that are here, one that is being read, and those that are foreseen.
            for piece in 0..ahead {
                saved.keep(slice(2 * piece, 2), &[piece as u8; 4], most, &mut spares);
            }
            let lost: Vec<u64> = (0..ahead).filter(|piece| saved.slice(slice(2 * piece, 2)).is_none()).collect();
            assert_eq!(lost, Vec::<u64>::new(), "flight {flight}, window {window}");
        }
    }
}
