//! Copies of what this rank has given to operations, for the case that it is needed again: of
//! operations that are over, and of pieces over which a result in place is about to come.

use std::collections::VecDeque;
use std::ops::Range;

use trib_proto::leaf::Slice;

/// A copy of a range of elements of an operation's input.
pub(super) struct Given {
    elements: Range<u64>,
    bytes: Vec<u8>,
}

impl Given {
    /// The bytes of these elements. There is one or more.
    pub(super) fn new(elements: Range<u64>, bytes: Vec<u8>) -> Given {
        Given { elements, bytes }
    }

    /// The bytes of a slice, if it lies inside.
    pub(super) fn slice(&self, slice: Slice) -> Option<&[u8]> {
        let own = slice.range();
        let element = self.bytes.len() / (self.elements.end - self.elements.start) as usize;
        let from = own.start.checked_sub(self.elements.start)? as usize * element;
        self.bytes.get(from..from + slice.bytes as usize).filter(|_| own.end <= self.elements.end)
    }
}

/// Memory of copies that nobody needs any more. Operations of a program are often alike, so that a
/// copy mostly fits where an earlier one lay.
#[derive(Default)]
pub(super) struct Spares {
    all: Vec<Vec<u8>>,
    /// Of all of them.
    capacity: usize,
}

impl Spares {
    /// Empty memory for a copy.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let spare = self.all.pop().unwrap_or_default();
        self.capacity -= spare.capacity();
        spare
    }

    /// Takes back the memory of a copy.
    pub(super) fn give(&mut self, given: Given) {
        let mut bytes = given.bytes;
        bytes.clear();
        if self.capacity.saturating_add(bytes.capacity()) <= SPARE_MAX {
            self.capacity += bytes.capacity();
            self.all.push(bytes);
        }
    }
}

/// More bytes than this are not held back: a few copies of what may be under way in a long vector.
const SPARE_MAX: usize = 4 << 20;

/// The pieces of one operation's input over which its result has come, or is coming.
#[derive(Default)]
pub(super) struct Saved {
    pieces: VecDeque<Given>,
}

impl Saved {
    /// Keeps the bytes of a piece, and those of at most `most - 1` pieces before it. Beyond them
    /// all ranks have the results.
    pub(super) fn keep(&mut self, slice: Slice, bytes: &[u8], most: usize) {
        if self.piece(slice).is_some() {
            return;
        }
        let mut memory = match self.pieces.len() < most {
            true => Vec::with_capacity(bytes.len()),
            false => self.pieces.pop_front().map(|given| given.bytes).unwrap_or_default(),
        };
        memory.clear();
        memory.extend_from_slice(bytes);
        self.pieces.push_back(Given::new(slice.range(), memory));
    }

    /// The bytes of a piece, if they are kept.
    pub(super) fn piece(&self, slice: Slice) -> Option<&[u8]> {
        self.pieces.iter().rev().find_map(|given| given.slice(slice))
    }

    /// Lays what is kept over the bytes of a range of elements.
    pub(super) fn restore(&self, elements: &Range<u64>, bytes: &mut [u8]) {
        let element = bytes.len() / (elements.end - elements.start) as usize;
        for given in &self.pieces {
            let start = elements.start.max(given.elements.start);
            let end = elements.end.min(given.elements.end);
            if start < end {
                let len = (end - start) as usize * element;
                let from = (start - given.elements.start) as usize * element;
                let to = (start - elements.start) as usize * element;
                bytes[to..to + len].copy_from_slice(&given.bytes[from..from + len]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use trib_proto::leaf::OpId;

    use super::*;

    fn slice(first: u64, elements: u32) -> Slice {
        Slice { op: OpId(0), first, elements, bytes: 2 * elements }
    }

    #[test]
    fn a_slice_of_what_is_kept_is_found_by_its_elements() {
        let given = Given::new(10..13, vec![1, 1, 2, 2, 3, 3]);
        assert_eq!(given.slice(slice(11, 2)), Some(&[2, 2, 3, 3][..]));
        assert_eq!((given.slice(slice(9, 2)), given.slice(slice(12, 2))), (None, None));
    }

    #[test]
    fn memory_is_used_again_up_to_a_bound() {
        let mut spares = Spares::default();
        let given = |bytes: usize| Given::new(0..1, vec![7; bytes]);
        spares.give(given(SPARE_MAX));
        spares.give(given(1));
        let again = spares.take();
        assert_eq!((again.len(), again.capacity()), (0, SPARE_MAX));
        assert_eq!(spares.take().capacity(), 0, "there was no room for the second");
        spares.give(given(1));
        assert_eq!((spares.all.len(), spares.capacity), (1, 1));
    }

    #[test]
    fn the_last_pieces_are_saved_and_laid_over_what_has_become_of_them() {
        let mut saved = Saved::default();
        for piece in 0..4u8 {
            saved.keep(slice(2 * u64::from(piece), 2), &[piece; 4], 3);
        }
        saved.keep(slice(6, 2), &[99; 4], 3);
        assert_eq!(saved.piece(slice(0, 2)), None, "there is room for three");
        assert_eq!(saved.piece(slice(6, 2)), Some(&[3; 4][..]), "the first bytes count");
        let mut bytes = [77; 8];
        saved.restore(&(3..7), &mut bytes);
        assert_eq!(bytes, [1, 1, 2, 2, 2, 2, 3, 3]);
    }
}
