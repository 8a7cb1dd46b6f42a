//! Memory that comes straight from the system and is given back as a whole.
//!
//! The allocator is not good enough for what a job reserves. Once it has freed a block of some
//! megabytes it keeps such blocks, and zeroes them by writing when they are asked for again. So a
//! node would touch all memory that a job may use as soon as the job comes, and would still hold it
//! when the job is gone.

use core::ptr::NonNull;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A mapping of zeros; a page is taken from the system when it is first written.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: nothing in a mapping belongs to a thread. Code that reads and writes the bytes through
// `at` has to order its accesses itself.
unsafe impl Send for Mapping {}
// SAFETY: as above; the mapping itself never changes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes; `None` when the system has not as much memory.
    pub(crate) fn new(len: usize) -> Option<Mapping> {
        if len == 0 {
            return Some(Mapping { start: NonNull::dangling(), len });
        }
        // SAFETY: a mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe {
            mmap_anonymous(core::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        Some(Mapping { start: NonNull::new(start.ok()?.cast())?, len })
    }

    /// Maps the first `len` bytes of a memory file, which other processes may have mapped, too.
    pub(crate) fn shared(file: BorrowedFd<'_>, len: usize) -> io::Result<Mapping> {
        // SAFETY: a mapping at an address of the kernel's choice touches no other memory.
        let start =
            unsafe { mmap(core::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }

    /// The address of byte `at`, or of the end.
    ///
    /// # Panics
    /// If `at` lies behind the end.
    #[inline]
    pub(crate) fn at(&self, at: usize) -> *mut u8 {
        assert!(at <= self.len);
        // SAFETY: the result lies inside the mapping or at its end.
        unsafe { self.start.as_ptr().add(at) }
    }

    /// The address of the `len` bytes from byte `at` on.
    ///
    /// # Panics
    /// If any of them lies behind the end.
    #[inline]
    pub(crate) fn run(&self, at: usize, len: usize) -> *mut u8 {
        assert!(at <= self.len && len <= self.len - at);
        // SAFETY: as above.
        unsafe { self.start.as_ptr().add(at) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: `new` made exactly this mapping, and everything that has a pointer into it
            // holds the mapping.
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
                // SAFETY: both are bytes of the mapping, which nothing else uses.
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
