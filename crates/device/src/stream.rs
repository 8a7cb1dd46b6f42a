//! In which order copies are done: streams of ours, and those of the program.

use std::ffi::{c_int, c_uint, c_void};

use crate::context::{Context, Current};
use crate::driver::Handle;
use crate::error::{CAPTURE_IMPLICIT, Error};
use crate::event::Event;

/// A stream of ours, beside those of the program: neither waits for the other unless an event says
/// so.
#[derive(Debug)]
pub struct Stream {
    context: Context,
    handle: Handle,
}

// SAFETY: the handle is a name, with which any thread may call the driver.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// Makes a stream.
    pub fn new(current: &Current) -> Result<Stream, Error> {
        let mut handle = core::ptr::null_mut();
        // SAFETY: the result is written where it belongs.
        unsafe { current.driver().create_stream(&raw mut handle, NON_BLOCKING) }?;
        Ok(Stream { context: current.context, handle })
    }

    /// The context in which it was made.
    pub fn context(&self) -> Context {
        self.context
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// What is queued from now on waits for the event.
    pub fn wait(&self, current: &Current, event: &Event) -> Result<(), Error> {
        // SAFETY: both are alive.
        unsafe { current.driver().stream_wait(self.handle, event.handle(), 0) }
    }

    /// Queues a copy between a device and the host, in either direction, or between two devices.
    ///
    /// # Safety
    /// Both ends have `len` bytes, which nothing else touches until an event that is recorded
    /// afterwards has come.
    pub unsafe fn copy(&self, current: &Current, from: *const u8, to: *mut u8, len: usize) -> Result<(), Error> {
        // SAFETY: the caller's contract.
        unsafe { current.driver().copy(to.addr() as u64, from.addr() as u64, len, self.handle) }
    }

    /// An event that comes when all that has been queued is done.
    pub fn record(&self, current: &Current) -> Result<Event, Error> {
        let event = Event::new(current)?;
        // SAFETY: both are alive and belong to this context.
        unsafe { current.driver().record_event(event.handle(), self.handle) }?;
        Ok(event)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The driver lets what is queued go on, and destroys the stream when that is done.
        if let Ok(current) = self.context.enter() {
            // SAFETY: the stream is ours and not used again.
            let _ = unsafe { current.driver().destroy_stream(self.handle) };
        }
    }
}

/// A stream of the program: a `CUstream` or a `cudaStream_t`, with null and the two special values
/// for the default streams.
#[derive(Clone, Copy, Debug)]
pub struct UserStream(Handle);

impl UserStream {
    /// The stream with this handle.
    pub fn new(handle: *mut c_void) -> UserStream {
        UserStream(handle)
    }

    /// Fails if the stream is being captured into a graph. It has to be asked before anything else,
    /// because most calls would spoil the capture.
    pub fn refuse_capture(self, current: &Current) -> Result<(), Error> {
        let mut status: c_int = CAPTURE_NONE;
        // SAFETY: the status is an int; the caller of the collective vouches for the stream.
        match unsafe { current.driver().stream_capturing(self.0, &raw mut status) } {
            Err(Error::Failed { code: CAPTURE_IMPLICIT, .. }) => Err(Error::Capturing),
            Ok(()) if status != CAPTURE_NONE => Err(Error::Capturing),
            other => other,
        }
    }

    /// An event that comes when all that the program has queued so far is done.
    pub fn record(self, current: &Current) -> Result<Event, Error> {
        let event = Event::new(current)?;
        // SAFETY: the caller of the collective vouches for the stream.
        unsafe { current.driver().record_event(event.handle(), self.0) }?;
        Ok(event)
    }

    /// What the program queues from now on waits for the event.
    pub fn wait(self, current: &Current, event: &Event) -> Result<(), Error> {
        // SAFETY: the caller vouches for the stream; the event is alive.
        unsafe { current.driver().stream_wait(self.0, event.handle(), 0) }
    }
}

/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the default stream.
const NON_BLOCKING: c_uint = 1;
/// `CU_STREAM_CAPTURE_STATUS_NONE`.
const CAPTURE_NONE: c_int = 0;
