//! Memory of the host that a device reads and writes by itself.

use std::ffi::c_uint;
use std::ptr::NonNull;

use crate::context::{Context, Current};
use crate::error::Error;
use crate::relaxed::Relaxed;

/// A buffer of pinned memory. It may be dropped only when no copy from or to it is under way.
#[derive(Debug)]
pub struct Pinned {
    context: Context,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer is memory of the process, of which this is the one owner.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Takes a buffer that the devices of all contexts may use.
    pub fn new(current: &Current, len: usize) -> Result<Pinned, Error> {
        let mut start = core::ptr::null_mut();
        // SAFETY: the result is written where it belongs.
        unsafe { current.driver().allocate_pinned(&raw mut start, len, PORTABLE) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| Error::Failed {
            call: "cuMemHostAlloc",
            code: 0,
            name: "success, and a null pointer".into(),
        })?;
        Ok(Pinned { context: current.context, start, len })
    }

    /// Where the buffer begins.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // A graph that the program captures meanwhile is not spoilt, whichever thread frees this.
        let _relaxed = Relaxed::enter(self.context.driver);
        // Where the context is gone, its memory is gone with it.
        if let Ok(current) = self.context.enter() {
            // SAFETY: the buffer is ours and not used again, by no copy either.
            let _ = unsafe { current.driver().free_pinned(self.start.as_ptr().cast()) };
        }
    }
}

/// `CU_MEMHOSTALLOC_PORTABLE`.
const PORTABLE: c_uint = 1;
