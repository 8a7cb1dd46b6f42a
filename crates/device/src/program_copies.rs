//! Copies and fills of the program's that name no stream (`cudaMemcpy`, `cudaMemset`). They may
//! return before their bytes are in the device's memory, unless the driver is told otherwise.

use std::ffi::{c_int, c_uint};

use crate::context::{Current, attribute};
use crate::error::{Error, INVALID_VALUE, NOT_SUPPORTED};

/// Makes such copies be over when they return, from now on, in the allocation to which this address
/// belongs, and waits for those that have returned before; it waits for nothing else. It returns
/// whether all of them are over: of memory out of a pool, or mapped piece by piece, only the
/// context can be told, which waits for none.
pub fn complete_program_copies(current: &Current, address: *const u8) -> Result<bool, Error> {
    let driver = current.driver();
    let mut is_told: c_uint = 0;
    if attribute(driver, ATTRIBUTE_SYNC_MEMOPS, address, &mut is_told).is_ok() && is_told != 0 {
        return Ok(true);
    }
    is_told = 1;
    let (value, address) = ((&raw const is_told).cast(), address.addr() as u64);
    // SAFETY: the value is an unsigned int, as this attribute is.
    match unsafe { driver.set_pointer_attribute(value, ATTRIBUTE_SYNC_MEMOPS, address) } {
        Ok(()) => Ok(true),
        Err(Error::Failed { code: INVALID_VALUE | NOT_SUPPORTED, .. }) => Ok(tell_context(current).unwrap_or(false)),
        Err(error) => Err(error),
    }
}

/// Tells the context, and returns whether it knew. Drivers before CUDA 12.3 take no such flag.
fn tell_context(current: &Current) -> Result<bool, Error> {
    let (driver, mut flags) = (current.driver(), 0);
    // SAFETY: the result is written where it belongs; a context is current.
    unsafe { driver.context_flags(&raw mut flags) }?;
    let knew = flags & CONTEXT_SYNC_MEMOPS != 0;
    if !knew {
        // SAFETY: as above; the other flags stay as they are.
        unsafe { driver.set_context_flags(flags | CONTEXT_SYNC_MEMOPS) }?;
    }
    Ok(knew)
}

/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
const ATTRIBUTE_SYNC_MEMOPS: c_int = 6;
/// `CU_CTX_SYNC_MEMOPS`.
const CONTEXT_SYNC_MEMOPS: c_uint = 0x80;
