//! How much the code under test takes from the allocator, so that a target can hold it to a bound.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// The system's allocator, which counts what it gives.
struct Counting;

/// The bytes that are out now, and the most that ever were since the last question.
static NOW: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn change(bytes: isize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(now, Relaxed);
}

// SAFETY: every call goes on to the system's allocator as it came, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        change(size as isize - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `realloc`, and `at` came from the same place.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        change(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`, and `at` came from the same place.
        unsafe { System.dealloc(at, layout) }
    }
}

/// The bytes that are out now.
pub fn now() -> isize {
    NOW.load(Relaxed)
}

/// Calls this, and asserts that it never had more than so many bytes at once, its result included.
pub fn within<T>(most: usize, call: impl FnOnce() -> T) -> T {
    let before = now();
    PEAK.store(before, Relaxed);
    let result = call();
    let taken = PEAK.load(Relaxed) - before;
    assert!(taken <= most as isize, "it took {taken} bytes at once, {most} are enough");
    result
}
