//! What a member shows of what it gives to a piece, and the few bytes that lie beside that.

use core::cell::UnsafeCell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::layout::{CELL_HEAD, LINE, SHORT};

/// It lies in memory that others write: what they change is atomic, or in a cell.
#[repr(C)]
pub(super) struct Cell {
    /// One more than the piece to which the member has given. It is written last.
    number: AtomicU64,
    /// To which operation.
    signature: [AtomicU64; 2],
    /// The member needs nothing of the pieces below this one any more.
    taken: AtomicU64,
    bytes: [UnsafeCell<u8>; SHORT],
}

const _: () = assert!(size_of::<Cell>() == LINE && align_of::<Cell>() == 8);
const _: () = assert!(core::mem::offset_of!(Cell, bytes) == CELL_HEAD);

// SAFETY: the bytes are reached by pointers alone, and what does that orders it by the number.
unsafe impl Sync for Cell {}

impl Cell {
    /// Shows what lies beside, or in the room, to the others.
    #[inline]
    pub(super) fn show(&self, piece: u64, signature: [u64; 2], taken: u64) {
        self.signature[0].store(signature[0], Relaxed);
        self.signature[1].store(signature[1], Relaxed);
        self.taken.store(taken, Relaxed);
        self.number.store(piece + 1, Release);
    }

    /// Whether the member has given to `piece`. If so, all that it gives is there.
    #[inline]
    pub(super) fn has_given(&self, piece: u64) -> bool {
        self.number.load(Acquire) == piece + 1
    }

    /// To which operation the member has given.
    #[inline]
    pub(super) fn signature(&self) -> [u64; 2] {
        [self.signature[0].load(Relaxed), self.signature[1].load(Relaxed)]
    }

    /// How many pieces the member had taken when it gave.
    #[inline]
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }
}
