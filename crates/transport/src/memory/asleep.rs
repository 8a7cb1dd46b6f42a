//! How one end of an edge sleeps and the other wakes it, by a word that says why it sleeps.
//!
//! ```text
//!   sleeper   word = reason, fence, looks whether something is there
//!   far end   puts something there,  fence, looks at the word
//! ```
//! One of the two sees what the other has done, because each writes, passes a fence, and then
//! reads.

use crate::sync::Ordering::{Relaxed, SeqCst};
use crate::sync::{AtomicU64, fence};

/// Says why this end is about to sleep; a reason is not zero. Returns false if it should not,
/// because something is there.
pub(super) fn fall_asleep(word: &AtomicU64, reason: u64, is_there: impl FnOnce() -> bool) -> bool {
    word.store(reason, Relaxed);
    fence(SeqCst);
    let stays = is_there();
    if stays {
        wake_up(word);
    }
    !stays
}

/// This end looks for itself.
pub(super) fn wake_up(word: &AtomicU64) {
    word.store(0, Relaxed);
}

/// Whether the caller, who has changed something, has to wake the far end: if that sleeps for a
/// reason that `wakes` it. Who is told so once has to do it.
pub(super) fn is_to_wake(word: &AtomicU64, wakes: impl FnOnce(u64) -> bool) -> bool {
    fence(SeqCst);
    let reason = word.load(Relaxed);
    reason != 0 && wakes(reason) && word.swap(0, SeqCst) != 0
}
