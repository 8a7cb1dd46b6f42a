//! Members claim the portions of a piece, fold them, and count what is folded.

use loom::cell::UnsafeCell;
use loom::thread;

use crate::count;
use crate::sync::{Arc, AtomicU64, Ordering};

const PORTIONS: u64 = 2;
const PIECE: u64 = 5;

struct Board {
    claimed: AtomicU64,
    folded: AtomicU64,
    portions: [UnsafeCell<u64>; PORTIONS as usize],
}

impl Board {
    fn new() -> Arc<Board> {
        let portions = std::array::from_fn(|_| UnsafeCell::new(0));
        Arc::new(Board { claimed: AtomicU64::new(0), folded: AtomicU64::new(0), portions })
    }

    /// Folds what it can claim; whether the piece is complete then, in which case it is read.
    fn help(&self, claim: impl Fn(&AtomicU64) -> Option<u64>) -> bool {
        let mut is_last = false;
        while let Some(portion) = claim(&self.claimed) {
            // SAFETY: loom has checked that no other access is under way, here and below.
            self.portions[portion as usize].with_mut(|cell| unsafe { *cell += portion + 1 });
            is_last = count::raise(&self.folded, PIECE, PORTIONS) == Some(PORTIONS - 1);
        }
        if is_last || count::read(&self.folded, PIECE) == PORTIONS {
            // SAFETY: as above.
            let total: u64 = self.portions.iter().map(|cell| cell.with(|cell| unsafe { *cell })).sum();
            assert_eq!(total, 3, "a portion was folded twice, or not at all");
            return true;
        }
        false
    }
}

fn members(claim: fn(&AtomicU64) -> Option<u64>) {
    let board = Board::new();
    let helper = board.clone();
    let thread = thread::spawn(move || helper.help(claim));
    let here = board.help(claim);
    let there = thread.join().unwrap();
    assert!(here || there, "nobody has seen the whole piece");
}

pub(crate) fn right() {
    members(|word| count::raise(word, PIECE, PORTIONS));
}

/// Who claims looks first and writes then.
pub(crate) fn wrong() {
    members(|word| {
        let claimed = count::read(word, PIECE);
        word.store(((PIECE + 1) << 16) | (claimed + 1), Ordering::Release);
        (claimed < PORTIONS).then_some(claimed)
    });
}
