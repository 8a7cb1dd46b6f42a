//! An allocator that counts by the name of the thread that calls it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Passes everything on to the system's allocator, and counts between `begin` and `end`.
struct Counted;

impl Counted {
    fn note() {
        if !COUNTING.load(Ordering::Relaxed) {
            return;
        }
        let mut name = [0u8; 16];
        // SAFETY: the call writes at most 16 bytes, the terminator included, and allocates nothing.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr().cast::<c_char>()) };
        if name.starts_with(b"worker-") {
            BY_WORKERS.fetch_add(1, Ordering::Relaxed);
        } else if name.starts_with(b"rank-") || name.starts_with(b"tributary") {
            BY_RANKS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: the system's allocator does all the work, with the same arguments.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counted::note();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counted::note();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counted::note();
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Begins to count from zero.
pub fn begin() {
    BY_WORKERS.store(0, Ordering::Relaxed);
    BY_RANKS.store(0, Ordering::Relaxed);
    COUNTING.store(true, Ordering::Relaxed);
}

/// Ends counting. Returns how many pieces of memory the nodes' workers took, and how many the ranks
/// with their helper threads.
pub fn end() -> (u64, u64) {
    COUNTING.store(false, Ordering::Relaxed);
    (BY_WORKERS.load(Ordering::Relaxed), BY_RANKS.load(Ordering::Relaxed))
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;
static COUNTING: AtomicBool = AtomicBool::new(false);
static BY_WORKERS: AtomicU64 = AtomicU64::new(0);
static BY_RANKS: AtomicU64 = AtomicU64::new(0);
