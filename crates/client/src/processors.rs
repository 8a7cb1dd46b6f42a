//! The processors of this machine that a process may use.

use libc::{c_int, c_ulong};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors on which this thread may run.
pub(crate) fn own() -> Option<Vec<u32>> {
    let mut words: Vec<c_ulong> = vec![0; WORDS];
    while !affinity(&mut words) {
        let is_short = std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
        if !is_short || words.len() >= WORDS_MAX {
            return None;
        }
        words = vec![0; 2 * words.len()];
    }
    let has = |processor: &u32| words[(processor / c_ulong::BITS) as usize] >> (processor % c_ulong::BITS) & 1 == 1;
    Some((0..words.len() as u32 * c_ulong::BITS).filter(has).collect())
}

/// The processor on which this thread runs now.
///
/// The C library is asked: where the kernel keeps the number in the thread's own memory it reads it
/// there, and it also finds the kernel's page with such functions under valgrind.
pub(crate) fn current() -> u32 {
    // SAFETY: it has no preconditions. Every kernel that has futexes answers it.
    unsafe { libc::sched_getcpu() as u32 }
}

/// Moves this thread to another of its processors, if it has one. Its set stays as it is.
pub(crate) fn leave_current() {
    // Where the kernel's sets are longer than this one, threads stay where they are.
    let Ok(all) = sched_getaffinity(None) else { return };
    let mut others = all;
    let own = current() as usize;
    if own < CpuSet::MAX_CPU {
        others.unset(own);
    }
    // The kernel refuses an empty set.
    let _ = sched_setaffinity(None, &others).and_then(|()| sched_setaffinity(None, &all));
}

/// Fills in a bit for each processor. The kernel refuses a mask that is too short for the machine.
fn affinity(words: &mut [c_ulong]) -> bool {
    // SAFETY: the call writes no more than the given length, which is that of the slice, and the
    // kernel's mask consists of such words.
    let done: c_int = unsafe { libc::sched_getaffinity(0, size_of_val(words), words.as_mut_ptr().cast()) };
    done == 0
}

/// A mask for 1,024 processors, which most kernels take, and the longest that is tried.
const WORDS: usize = 1024 / c_ulong::BITS as usize;
const WORDS_MAX: usize = 64 * WORDS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_may_run_where_it_was_bound_to() {
        let all = own().unwrap();
        assert!(!all.is_empty());
        std::thread::spawn(move || {
            let last = *all.last().unwrap();
            let mut words: Vec<c_ulong> = vec![0; WORDS_MAX];
            words[(last / c_ulong::BITS) as usize] = 1 << (last % c_ulong::BITS);
            // SAFETY: the call reads as many bytes as the vector has.
            let done = unsafe { libc::sched_setaffinity(0, size_of_val(&words[..]), words.as_ptr().cast()) };
            assert_eq!((done, own(), current()), (0, Some(vec![last]), last));
            leave_current();
            assert_eq!(current(), last, "there is no other");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_moves_and_may_come_back() {
        let all = own().unwrap();
        let moved = |_| {
            let before = current();
            leave_current();
            (current() != before) == (all.len() > 1)
        };
        // Something else may have moved the thread back.
        assert!((0..100).any(moved));
        assert_eq!(own(), Some(all));
    }
}
