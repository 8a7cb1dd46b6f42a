//! Whether this process has loaded CUDA's driver. One that has memory of a GPU has; in any other
//! nothing is loaded for a question about an address, because a driver takes memory and time, and a
//! process that has one must not fork.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether the driver is there. It is cheap: files are looked at only when this process has loaded
/// something since the last question.
pub fn has_cuda_driver() -> bool {
    static HAS: AtomicBool = AtomicBool::new(false);
    static LOOKED_AT: AtomicU64 = AtomicU64::new(0);
    if HAS.load(Ordering::Relaxed) {
        return true;
    }
    let loads = loads();
    if LOOKED_AT.load(Ordering::Relaxed) == loads {
        return false;
    }
    // SAFETY: the name is terminated, and with this flag nothing is loaded.
    let found = unsafe { libc::dlopen(trib_device::LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if found.is_null() {
        LOOKED_AT.store(loads, Ordering::Relaxed);
        return false;
    }
    // SAFETY: the handle is one more reference, which is given back.
    unsafe { libc::dlclose(found) };
    HAS.store(true, Ordering::Relaxed);
    true
}

/// How many objects this process has loaded so far.
fn loads() -> u64 {
    unsafe extern "C" fn first(object: *mut libc::dl_phdr_info, _len: usize, loads: *mut c_void) -> c_int {
        // SAFETY: the C library gives an object, and the pointer that it was given.
        unsafe { *loads.cast::<u64>() = (*object).dlpi_adds };
        // One object is enough.
        1
    }
    let mut loads = 0u64;
    // SAFETY: the function writes to the number, which lives across the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut loads).cast()) };
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_loaded_is_counted() {
        let before = loads();
        assert!(before > 0);
        // Nothing else in these tests loads this one, which the C library brings along.
        // SAFETY: the library does nothing when it is loaded.
        let library = unsafe { libc::dlopen(c"libBrokenLocale.so.1".as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null() && loads() > before);
    }
}
