//! Partial reduce-scatter and allgather: a call names a window of the whole vector, and the blocks
//! that it touches.
//!
//! ```text
//!   vector   | block 0 | block 1 | block 2 | block 3 |        N blocks of B bytes
//!   window          [============)                            o .. o + W
//!   pieces          0-^ ^^ 1 ^^^^^ 2                          each belongs to one rank
//! ```
//! All ranks cut the window alike, so each piece is a collective of its own: a reduce to the
//! block's rank, or a broadcast from it. A window that is the whole vector is one collective.

use crate::error::Failure;

/// A window of a vector of equal blocks. All lengths are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    from: usize,
    len: usize,
    block: usize,
    ranks: usize,
}

/// The part of one block that lies in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The rank to which the block belongs.
    pub rank: u32,
    /// Where it begins in the window, in bytes.
    pub at: usize,
    /// Its length, bytes.
    pub len: usize,
}

impl Window {
    /// The `len` bytes from `from` on, of `ranks` blocks of `block` bytes. `from`, `len` and
    /// `block` must be multiples of `unit` bytes, the size of an element.
    pub fn new(from: usize, len: usize, block: usize, ranks: u32, unit: usize) -> Result<Window, Failure> {
        let ranks = ranks as usize;
        let inside = block
            .checked_mul(ranks)
            .filter(|whole| *whole <= isize::MAX as usize)
            .zip(from.checked_add(len))
            .is_some_and(|(whole, end)| end <= whole);
        if !inside {
            return Err(Failure::invalid(format!(
                "a window of {len} bytes at {from} does not lie in a vector of {ranks} blocks of {block} bytes"
            )));
        }
        if [from, len, block].iter().any(|bytes| !bytes.is_multiple_of(unit)) {
            return Err(Failure::invalid(format!(
                "window ({len} bytes at {from}) and blocks ({block} bytes) are not whole elements of {unit} bytes"
            )));
        }
        Ok(Window { from, len, block, ranks })
    }

    /// Whether it is the whole vector.
    pub fn is_whole(&self) -> bool {
        self.from == 0 && self.len == self.block * self.ranks
    }

    /// The parts of all blocks that lie in the window, in the order of ranks.
    pub fn pieces(self) -> impl Iterator<Item = Piece> {
        let end = self.from + self.len;
        let block = self.block.max(1);
        let blocks = if self.len == 0 { 0..0 } else { self.from / block..end.div_ceil(block) };
        blocks.map(move |rank| {
            let (start, stop) = (self.from.max(rank * block), end.min((rank + 1) * block));
            Piece { rank: rank as u32, at: start - self.from, len: stop - start }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_window_once_and_stay_in_their_blocks() {
        for ranks in 1..5_u32 {
            for block in [0_usize, 1, 3, 8] {
                let whole = block * ranks as usize;
                for from in 0..=whole {
                    for len in 0..=whole - from {
                        let window = Window::new(from, len, block, ranks, 1).unwrap();
                        let mut at = 0;
                        for piece in window.pieces() {
                            assert_eq!(piece.at, at);
                            assert!(piece.len > 0);
                            let (start, stop) = (from + piece.at, from + piece.at + piece.len);
                            assert!(start / block == piece.rank as usize && (stop - 1) / block == piece.rank as usize);
                            at += piece.len;
                        }
                        assert_eq!(at, len);
                        assert_eq!(window.is_whole(), from == 0 && len == whole);
                    }
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(Window::new(0, 9, 4, 2, 1).is_err());
        assert!(Window::new(usize::MAX, 2, 4, 2, 1).is_err());
        assert!(Window::new(0, 0, usize::MAX, 2, 1).is_err());
        assert!(Window::new(2, 4, 8, 2, 4).is_err() && Window::new(0, 4, 6, 2, 4).is_err());
    }
}
