//! Notices that the process was forked, for the price of one load.
//!
//! A child inherits our sockets, our locks (perhaps held by a thread that does not exist in the
//! child) and our sequence numbers. Whatever it did with them would corrupt its parent's
//! operations. The kernel zeroes a `MADV_WIPEONFORK` page in the child, so a flag on such a page
//! tells parent and child apart without a system call. Where the kernel lacks this, the process id
//! tells them apart.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;

/// The guard is made in the process that owns a context.
pub(crate) struct ForkGuard {
    page: Option<NonNull<AtomicU32>>,
    process: u32,
}

// SAFETY: after construction the page is only read, through an atomic.
unsafe impl Send for ForkGuard {}
// SAFETY: as above.
unsafe impl Sync for ForkGuard {}

impl ForkGuard {
    /// Remembers this process.
    pub(crate) fn new() -> ForkGuard {
        ForkGuard { page: wiped_page(), process: std::process::id() }
    }

    /// Whether this is still the process that made the guard.
    pub(crate) fn is_home(&self) -> bool {
        match self.page {
            // SAFETY: the page stays mapped until drop.
            Some(page) => unsafe { page.as_ref() }.load(Ordering::Relaxed) == ALIVE,
            None => std::process::id() == self.process,
        }
    }

    /// Fails in a forked child.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_home() {
            return Ok(());
        }
        Err(Error::Forked(format!(
            "this context belongs to process {}, this is a child forked from it; a child must join a job of its own",
            self.process
        )))
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        if let Some(page) = self.page {
            // SAFETY: we mapped the page with this length, and nothing refers to it any more.
            unsafe { libc::munmap(page.as_ptr().cast(), PAGE_LEN) };
        }
    }
}

fn wiped_page() -> Option<NonNull<AtomicU32>> {
    // SAFETY: a fresh anonymous mapping of a page's length aliases nothing.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE_LEN,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: this is the whole mapping made above.
    if unsafe { libc::madvise(address, PAGE_LEN, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: as above.
        unsafe { libc::munmap(address, PAGE_LEN) };
        return None;
    }
    let page = NonNull::new(address.cast::<AtomicU32>())?;
    // SAFETY: the page is mapped, aligned and zeroed, which is a valid atomic.
    unsafe { page.as_ref() }.store(ALIVE, Ordering::Relaxed);
    Some(page)
}

/// The kernel rounds it up to its own page size.
const PAGE_LEN: usize = 4096;
const ALIVE: u32 = 0x7472_6962;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_told_apart_by_page_and_by_number() {
        let with_page = ForkGuard::new();
        let without = ForkGuard { page: None, process: with_page.process };
        assert!(with_page.is_home() && without.is_home());
        // SAFETY: the child only reads two words and leaves without running any destructor.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let away = !with_page.is_home() && !without.is_home();
            // SAFETY: the call ends the child at once.
            unsafe { libc::_exit(i32::from(!away)) };
        }
        assert!(child > 0);
        let mut status = 0;
        // SAFETY: the call waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
        assert_eq!(with_page.check(), Ok(()));
    }
}
