//! How members of a board sleep, each with a word of its wishes, and how others find them: by a
//! count of all that sleep first, so that nobody looks at each word while all are awake.

use crate::sync::Ordering::{Relaxed, SeqCst};
use crate::sync::{AtomicU64, fence};

/// A member is about to sleep, with these wishes. It has to look once more after this.
pub(super) fn fall_asleep(word: &AtomicU64, sleepers: &AtomicU64, wishes: u64) {
    match (word.swap(wishes, SeqCst), wishes) {
        (0, 0) => {}
        (0, _) => drop(sleepers.fetch_add(1, SeqCst)),
        (_, 0) => drop(sleepers.fetch_sub(1, SeqCst)),
        _ => {}
    }
    fence(SeqCst);
}

/// It looks for itself.
pub(super) fn wake_up(word: &AtomicU64, sleepers: &AtomicU64) {
    if word.swap(0, SeqCst) != 0 {
        sleepers.fetch_sub(1, SeqCst);
    }
}

/// Whether anybody sleeps, after the caller has changed something.
#[inline]
pub(super) fn has_sleepers(sleepers: &AtomicU64) -> bool {
    fence(SeqCst);
    sleepers.load(Relaxed) != 0
}

/// Whether the member sleeps with this wish and the caller has to wake it: one is told so once.
pub(super) fn is_to_wake(word: &AtomicU64, sleepers: &AtomicU64, wish: u64) -> bool {
    let wishes = word.load(SeqCst);
    let is_told = wishes & wish != 0 && word.compare_exchange(wishes, 0, SeqCst, SeqCst).is_ok();
    if is_told {
        sleepers.fetch_sub(1, SeqCst);
    }
    is_told
}
