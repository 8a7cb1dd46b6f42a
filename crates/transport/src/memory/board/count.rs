//! A count that belongs to one piece at a time.

use crate::sync::AtomicU64;
use crate::sync::Ordering::{AcqRel, Acquire};

/// Raises the count of `piece` by one, unless it is `most` already, and returns what it was. The
/// word still has the count of an earlier piece when the first comes. What was written before a
/// raise is seen by who raises it next, and by who reads it.
pub(super) fn raise(word: &AtomicU64, piece: u64, most: u64) -> Option<u64> {
    let raised = |old: u64| match of(old, piece) {
        Some(count) if count < most => Some(tagged(piece) | (count + 1)),
        _ => None,
    };
    word.fetch_update(AcqRel, Acquire, raised).ok().and_then(|old| of(old, piece))
}

/// The count of `piece`.
pub(super) fn read(word: &AtomicU64, piece: u64) -> u64 {
    of(word.load(Acquire), piece).unwrap_or(0)
}

/// What a word says of `piece`; `None` if a later piece has it already.
fn of(word: u64, piece: u64) -> Option<u64> {
    match (word & !COUNT).cmp(&tagged(piece)) {
        core::cmp::Ordering::Less => Some(0),
        core::cmp::Ordering::Equal => Some(word & COUNT),
        core::cmp::Ordering::Greater => None,
    }
}

/// Pieces are told apart by the upper bits. A zeroed word is before every piece.
const fn tagged(piece: u64) -> u64 {
    (piece + 1) << COUNT.count_ones()
}

const COUNT: u64 = 0xffff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_counted_from_nought() {
        let word = AtomicU64::new(0);
        for piece in [0, 4, 8, 1 << 40] {
            assert_eq!(read(&word, piece), 0);
            assert_eq!([0; 4].map(|_| raise(&word, piece, 3)), [Some(0), Some(1), Some(2), None]);
            assert_eq!(read(&word, piece), 3);
        }
        assert_eq!((raise(&word, 8, 3), read(&word, 8)), (None, 0), "the word is another piece's");
    }
}
