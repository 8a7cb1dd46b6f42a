//! Memory straight from the system, given back whole.
//!
//! The allocator does not do for what a job reserves: once it has freed a block of some megabytes
//! it keeps such blocks, and zeroes them by writing when they are asked for again. A node would
//! touch all that a job may use when the job comes, and hold it when the job is gone.

use core::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Zeros; a page is taken from the system when it is first written.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: nothing in it belongs to a thread. Who reads and writes the bytes through `at` sees to
// the order of it.
unsafe impl Send for Mapping {}
// SAFETY: as above; the mapping itself never changes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len` bytes; `None` when there is no such amount of memory.
    pub(crate) fn new(len: usize) -> Option<Mapping> {
        if len == 0 {
            return Some(Mapping { start: NonNull::dangling(), len });
        }
        // SAFETY: a mapping at a place of the kernel's choice touches no memory of anybody.
        let start = unsafe {
            mmap_anonymous(core::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        Some(Mapping { start: NonNull::new(start.ok()?.cast())?, len })
    }

    /// The byte `at`, or the end.
    ///
    /// # Panics
    /// If it lies behind the end.
    pub(crate) fn at(&self, at: usize) -> *mut u8 {
        assert!(at <= self.len);
        // SAFETY: the result lies inside the mapping or at its end.
        unsafe { self.start.as_ptr().add(at) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: `new` made exactly this mapping, and who holds a pointer into it holds the
            // mapping.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zero_can_be_written_and_is_there_to_its_end() {
        for len in [0, 1, 4096, 1 << 20] {
            let mapping = Mapping::new(len).unwrap();
            if len > 0 {
                let last = mapping.at(len - 1);
                // SAFETY: a byte of the mapping, which nobody else uses.
                let (before, after) = unsafe {
                    (*last, {
                        last.write(7);
                        *last
                    })
                };
                assert_eq!((before, after), (0, 7));
            }
            assert_eq!(mapping.at(len) as usize - mapping.at(0) as usize, len);
        }
        assert!(Mapping::new(usize::MAX).is_none());
    }
}
