//! A kernel: what a device computes in the order of a stream.

use std::ffi::{CString, c_uint, c_void};

use crate::context::{Context, Current};
use crate::driver::Handle;
use crate::error::Error;
use crate::stream::Stream;

/// A kernel, compiled for the device of a context. It may be dropped only when no launch of it is
/// under way.
#[derive(Debug)]
pub struct Kernel {
    context: Context,
    module: Handle,
    function: Handle,
}

// SAFETY: the handles are names, with which any thread may call the driver.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Lets the driver compile the kernel of this name out of a text in PTX.
    ///
    /// # Panics
    /// If there is a zero in either.
    pub fn new(current: &Current, text: &str, name: &str) -> Result<Kernel, Error> {
        let [text, name] = [text, name].map(|text| CString::new(text).expect("a text without a zero"));
        let nothing = core::ptr::null_mut();
        let mut kernel = Kernel { context: current.context, module: nothing, function: nothing };
        // SAFETY: the text is terminated; the result is written where it belongs.
        unsafe { current.driver().load_module(&raw mut kernel.module, text.as_ptr().cast()) }?;
        // SAFETY: the module is alive, and the name is terminated.
        unsafe { current.driver().module_function(&raw mut kernel.function, kernel.module, name.as_ptr()) }?;
        Ok(kernel)
    }

    /// Queues it, with a thread for each of so many elements, or fewer where there are very many.
    ///
    /// # Safety
    /// The kernel takes such arguments, 64 bits each, and threads in one dimension. Nothing else
    /// touches what it touches until an event that is recorded afterwards has come.
    pub unsafe fn launch(
        &self,
        current: &Current,
        stream: &Stream,
        arguments: &mut [u64],
        elements: u64,
    ) -> Result<(), Error> {
        let mut arguments: Vec<*mut c_void> = arguments.iter_mut().map(|value| (&raw mut *value).cast()).collect();
        let blocks = elements.div_ceil(u64::from(THREADS)).clamp(1, BLOCKS_MAX) as c_uint;
        let (function, stream, arguments) = (self.function, stream.handle(), arguments.as_mut_ptr());
        // SAFETY: the driver copies the arguments; the rest is the caller's contract.
        unsafe {
            current.driver().launch(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, core::ptr::null_mut())
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if self.module.is_null() {
            return;
        }
        // Where the context is gone, its modules are gone with it.
        if let Ok(current) = self.context.enter() {
            // SAFETY: the module is ours and not used again, by no launch either.
            let _ = unsafe { current.driver().unload_module(self.module) };
        }
    }
}

/// The threads of a block.
const THREADS: c_uint = 256;
/// The most blocks: no device does more at once, and each thread goes on to other elements.
const BLOCKS_MAX: u64 = 1024;
