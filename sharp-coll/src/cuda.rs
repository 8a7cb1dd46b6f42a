//! Memory of GPUs, through the CUDA driver if there is one at run time.
//!
//! A copy is done when its call returns, so that the bytes of a completed request are where they
//! belong. It goes through a stream of ours: what the program has queued on its own ones is not
//! waited for, because the API wants buffers that are ready. What is queued on the default stream
//! is: a program that has filled a buffer by `cudaMemcpy` or `cudaMemset` takes it for ready, and
//! the bytes may be on their way when those return.

use std::sync::{Arc, Mutex, Once, PoisonError};

use trib_device::{Context, Current, Driver, Error, Relaxed, Stream, UserStream, driver, locate};

use crate::error::{ENOMEM, ERROR, Failure};
use crate::{log, settings};

/// Whether this address belongs to a GPU, as the driver says. It fails where there is no driver.
pub fn is_on_gpu(address: *const u8) -> Result<bool, Failure> {
    Ok(locate(enabled_driver()?, address)?.is_some())
}

/// Copies from a GPU to the host.
pub fn from_gpu(from: *const u8, to: *mut u8, len: usize) -> Result<(), Failure> {
    copy(from, (from, to), len)
}

/// Copies from the host to a GPU.
pub fn to_gpu(from: *const u8, to: *mut u8, len: usize) -> Result<(), Failure> {
    copy(to, (from, to), len)
}

/// Copies in the context of the address that is the device's, because the calling thread may have
/// no context, and waits for the copy.
fn copy(device: *const u8, (from, to): (*const u8, *mut u8), len: usize) -> Result<(), Failure> {
    let driver = enabled_driver()?;
    let _relaxed = Relaxed::enter(driver)?;
    let context =
        locate(driver, device)?.ok_or_else(|| Failure::invalid("a buffer was memory of a GPU and is none now"))?;
    let stream = stream_of(context)?;
    let current = context.enter()?;
    wait_for_default_stream(&current, &stream)?;
    // SAFETY: the caller of the collective vouches for both ends, which nothing else touches until
    // the event has come.
    unsafe { stream.copy(&current, from, to, len) }?;
    Ok(stream.record(&current)?.wait()?)
}

/// Lets a stream of ours wait for what is queued on the default one now.
fn wait_for_default_stream(current: &Current, stream: &Stream) -> Result<(), Error> {
    let default = UserStream::new(std::ptr::null_mut());
    match default.refuse_capture(current) {
        Ok(()) => stream.wait(current, &default.record(current)?),
        // While the program captures a graph nothing may touch that stream, ours and its own calls
        // alike.
        Err(Error::Capturing) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Our stream of a context, which is made once.
fn stream_of(context: Context) -> Result<Arc<Stream>, Failure> {
    static STREAMS: Mutex<Vec<(Context, Arc<Stream>)>> = Mutex::new(Vec::new());
    let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, stream)) = streams.iter().find(|(known, _)| *known == context) {
        return Ok(stream.clone());
    }
    let made = Arc::new(Stream::new(&context.enter()?)?);
    streams.push((context, made.clone()));
    Ok(made)
}

fn enabled_driver() -> Result<&'static Driver, Failure> {
    if settings::number("SHARP_COLL_ENABLE_CUDA") == Some(0) {
        return Err(Failure::unsupported(
            "memory of a GPU was given, and SHARP_COLL_ENABLE_CUDA=0 has switched it off",
        ));
    }
    static TOLD: Once = Once::new();
    let found = driver();
    TOLD.call_once(|| log::debug(format_args!("CUDA driver: {}", if found.is_ok() { "there" } else { "not there" })));
    Ok(found?)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match &error {
            Error::Absent(_) | Error::Capturing => Failure::unsupported(error.to_string()),
            failed if failed.is_out_of_memory() => Failure::new(ENOMEM, error.to_string()),
            Error::Failed { .. } => Failure::new(ERROR, error.to_string()),
        }
    }
}
