//! Calls beside a graph that the program captures.

use std::ffi::c_int;
use std::marker::PhantomData;

use crate::driver::Driver;
use crate::error::Error;

/// While it lives, calls of this thread do not spoil a capture on another stream: none of them
/// belongs to what is captured.
#[derive(Debug)]
pub struct Relaxed {
    driver: &'static Driver,
    before: c_int,
    thread: PhantomData<*mut ()>,
}

impl Relaxed {
    /// Begins it, for this thread.
    pub fn enter(driver: &'static Driver) -> Result<Relaxed, Error> {
        let mut mode = RELAXED;
        // SAFETY: the mode is an int, which the call exchanges with the one before.
        unsafe { driver.exchange_capture_mode(&raw mut mode) }?;
        Ok(Relaxed { driver, before: mode, thread: PhantomData })
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: as above. The mode was the thread's, so it is a valid one.
        let _ = unsafe { self.driver.exchange_capture_mode(&raw mut self.before) };
    }
}

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_int = 2;
