//! A point in a stream, which comes when all that was queued before it is done.

use std::ffi::c_uint;

use crate::context::{Context, Current};
use crate::driver::Handle;
use crate::error::{Error, NOT_READY};
use crate::relaxed::Relaxed;

/// An event, recorded once.
#[derive(Debug)]
pub struct Event {
    context: Context,
    handle: Handle,
}

// SAFETY: the handle is a name, with which any thread may call the driver.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    pub(crate) fn new(current: &Current) -> Result<Event, Error> {
        let mut handle = core::ptr::null_mut();
        // SAFETY: the result is written where it belongs.
        unsafe { current.driver().create_event(&raw mut handle, BLOCKING_SYNC | DISABLE_TIMING) }?;
        Ok(Event { context: current.context, handle })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// The context in which it was recorded.
    pub fn context(&self) -> Context {
        self.context
    }

    /// Whether it has come. It fails if something that was queued before it has failed. A capture
    /// of the program's is not spoilt.
    pub fn has_come(&self) -> Result<bool, Error> {
        let _relaxed = Relaxed::enter(self.context.driver)?;
        let current = self.context.enter()?;
        // SAFETY: the event is alive.
        match unsafe { current.driver().query_event(self.handle) } {
            Ok(()) => Ok(true),
            Err(Error::Failed { code: NOT_READY, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sleeps until it has come. It waits for nothing that is queued behind it or elsewhere, and
    /// spoils no capture of the program's.
    pub fn wait(&self) -> Result<(), Error> {
        let _relaxed = Relaxed::enter(self.context.driver)?;
        let current = self.context.enter()?;
        // SAFETY: the event is alive.
        unsafe { current.driver().await_event(self.handle) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // The driver keeps what it needs of an event that has yet to come.
        if let Ok(current) = self.context.enter() {
            // SAFETY: the event is ours and not used again.
            let _ = unsafe { current.driver().destroy_event(self.handle) };
        }
    }
}

/// `CU_EVENT_BLOCKING_SYNC`: a thread that waits sleeps.
const BLOCKING_SYNC: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: c_uint = 2;
