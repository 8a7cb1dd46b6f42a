//! Memory of GPUs, through the CUDA driver if there is one at run time.
//!
//! A copy is done when its call returns, so that the bytes of a completed request are where they
//! belong. It goes through a stream of ours: what the program has queued on its own ones is not
//! waited for, because the API wants buffers that are ready, and because a kernel there may itself
//! wait for an operation of ours. A program that has filled a buffer by `cudaMemcpy` or
//! `cudaMemset` takes it for ready, though the bytes may be on their way when those return: the
//! driver is told to let them return later, and asked to wait for those that have returned.

use std::sync::{Arc, Mutex, Once, PoisonError};

use trib_device::{
    Context, Current, Driver, Error, Relaxed, Stream, UserStream, complete_program_copies, driver, locate,
};

use crate::error::{ENOMEM, ERROR, Failure};
use crate::{loaded, log};

/// Whether this address belongs to a GPU, as its owner says and the driver knows. It fails where
/// there is no driver, or `SHARP_COLL_ENABLE_CUDA` has switched GPUs off.
pub fn is_on_gpu(address: *const u8, takes_gpu_memory: bool) -> Result<bool, Failure> {
    if !takes_gpu_memory {
        return Err(switched_off());
    }
    Ok(locate(found_driver()?, address)?.is_some())
}

/// Whether this address belongs to a GPU, of which its owner says nothing. It does not where the
/// process has no driver.
pub fn turns_out_on_gpu(address: *const u8, takes_gpu_memory: bool) -> Result<bool, Failure> {
    let Some(driver) = used_driver() else { return Ok(false) };
    let is_on_gpu = locate(driver, address)?.is_some();
    if is_on_gpu && !takes_gpu_memory { Err(switched_off()) } else { Ok(is_on_gpu) }
}

/// Gets memory ready that is named for later operations, if it is a GPU's. The address may be
/// anything.
pub fn prepare(address: *const u8) {
    let Some(driver) = used_driver() else { return };
    let prepared = || -> Result<(), Error> {
        let _relaxed = Relaxed::enter(driver)?;
        match locate(driver, address)? {
            Some(context) => make_ready(&context.enter()?, address),
            None => Ok(()),
        }
    };
    // What is wrong with it an operation meets again.
    if let Err(error) = prepared() {
        log::debug(format_args!("memory of a GPU was registered, and {error}"));
    }
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
    let driver = found_driver()?;
    let _relaxed = Relaxed::enter(driver)?;
    let context =
        locate(driver, device)?.ok_or_else(|| Failure::invalid("a buffer was memory of a GPU and is none now"))?;
    let stream = stream_of(context)?;
    let current = context.enter()?;
    make_ready(&current, device)?;
    // SAFETY: the caller of the collective vouches for both ends, which nothing else touches until
    // the event has come.
    unsafe { stream.copy(&current, from, to, len) }?;
    Ok(stream.record(&current)?.wait()?)
}

/// Makes bytes be there that copies and fills of the program's have brought, now and later.
fn make_ready(current: &Current, address: *const u8) -> Result<(), Error> {
    if complete_program_copies(current, address)? {
        return Ok(());
    }
    // The driver waits for none of them in such memory. They are on the default stream.
    let default = UserStream::new(std::ptr::null_mut());
    match default.refuse_capture(current) {
        Ok(()) => default.record(current)?.wait(),
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

/// The driver that this process uses already, if it does and is allowed to.
fn used_driver() -> Option<&'static Driver> {
    if loaded::has_cuda_driver() { driver().ok() } else { None }
}

fn switched_off() -> Failure {
    Failure::unsupported("memory of a GPU was given, and SHARP_COLL_ENABLE_CUDA=0 has switched it off")
}

fn found_driver() -> Result<&'static Driver, Failure> {
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
