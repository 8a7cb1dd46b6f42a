//! A member of a board sleeps until two others have given.

use loom::thread;

use crate::bell::Bell;
use crate::sleep;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{Arc, AtomicU64};

const WISH: u64 = 1;

struct Board {
    given: [AtomicU64; 2],
    sleepers: AtomicU64,
    word: AtomicU64,
    bell: Bell,
}

impl Board {
    fn new() -> Arc<Board> {
        let zero = || AtomicU64::new(0);
        Arc::new(Board { given: [zero(), zero()], sleepers: zero(), word: zero(), bell: Bell::new() })
    }

    fn is_complete(&self) -> bool {
        self.given.iter().all(|word| word.load(Acquire) != 0)
    }

    fn give(&self, member: usize, has_sleepers: fn(&AtomicU64) -> bool) {
        self.given[member].store(1, Release);
        if has_sleepers(&self.sleepers) && sleep::is_to_wake(&self.word, &self.sleepers, WISH) {
            self.bell.ring();
        }
    }
}

fn members(has_sleepers: fn(&AtomicU64) -> bool) {
    let board = Board::new();
    let threads = [0, 1].map(|member| {
        let board = board.clone();
        thread::spawn(move || board.give(member, has_sleepers))
    });
    while !board.is_complete() {
        sleep::fall_asleep(&board.word, &board.sleepers, WISH);
        if !board.is_complete() {
            board.bell.wait();
        }
        sleep::wake_up(&board.word, &board.sleepers);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(board.sleepers.load(Relaxed), 0, "the count of sleepers is wrong for ever");
    assert!(board.bell.rung() <= 1, "a member is woken twice for one sleep");
}

pub(crate) fn right() {
    members(sleep::has_sleepers);
}

/// Who has given looks for sleepers without a fence in between.
pub(crate) fn wrong() {
    members(|sleepers| sleepers.load(Relaxed) != 0);
}
