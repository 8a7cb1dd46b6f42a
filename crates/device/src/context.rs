//! Where an address lies, and what has to be current on a thread for a call of the driver.

use std::ffi::{c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use crate::driver::{Driver, Handle};
use crate::error::{Error, INVALID_VALUE};

/// A context of a device. It is the program's, which keeps it until it has left its jobs.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub(crate) driver: &'static Driver,
    handle: Handle,
}

// SAFETY: the handle is a name, with which any thread may call the driver.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl PartialEq for Context {
    fn eq(&self, other: &Context) -> bool {
        self.handle == other.handle
    }
}

impl Eq for Context {}

/// The context to which an address belongs; `None` if it is the host's.
pub fn locate(driver: &'static Driver, address: *const u8) -> Result<Option<Context>, Error> {
    let mut kind: c_uint = 0;
    match attribute(driver, ATTRIBUTE_MEMORY_TYPE, address, &mut kind) {
        Err(Error::Failed { code: INVALID_VALUE, .. }) => return Ok(None),
        other => other?,
    }
    if kind != MEMORY_DEVICE {
        return Ok(None);
    }
    let mut handle: Handle = core::ptr::null_mut();
    attribute(driver, ATTRIBUTE_CONTEXT, address, &mut handle)?;
    if handle.is_null() {
        // Memory out of a pool, or mapped piece by piece, is the device's and no context's.
        let mut ordinal: c_int = 0;
        attribute(driver, ATTRIBUTE_DEVICE_ORDINAL, address, &mut ordinal)?;
        handle = primary_context(driver, ordinal)?;
    }
    Ok(Some(Context { driver, handle }))
}

/// Asks for an attribute, which has the type `T`.
pub(crate) fn attribute<T>(driver: &Driver, number: c_int, address: *const u8, value: &mut T) -> Result<(), Error> {
    let value: *mut c_void = (&raw mut *value).cast();
    // SAFETY: the value has the attribute's type; the driver takes any address.
    unsafe { driver.pointer_attribute(value, number, address.addr() as u64) }
}

/// The context that a device has by itself, which CUDA's runtime uses. It is retained once, and as
/// long as the process lives.
fn primary_context(driver: &Driver, ordinal: c_int) -> Result<Handle, Error> {
    static RETAINED: Mutex<Vec<(c_int, usize)>> = Mutex::new(Vec::new());
    let mut retained = RETAINED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, handle)) = retained.iter().find(|(known, _)| *known == ordinal) {
        return Ok(core::ptr::without_provenance_mut(*handle));
    }
    let (mut device, mut handle) = (0, core::ptr::null_mut());
    // SAFETY: both results are written where they belong.
    unsafe {
        driver.device(&raw mut device, ordinal)?;
        driver.retain_context(&raw mut handle, device)?;
    }
    retained.push((ordinal, handle.addr()));
    Ok(handle)
}

impl Context {
    /// Makes the context current on this thread, until the value is dropped.
    pub fn enter(self) -> Result<Current, Error> {
        // SAFETY: the context is the program's, which keeps it.
        unsafe { self.driver.push_context(self.handle) }?;
        Ok(Current { context: self, thread: PhantomData })
    }
}

/// Shows that a context is current on this thread.
#[derive(Debug)]
pub struct Current {
    pub(crate) context: Context,
    thread: PhantomData<*mut ()>,
}

impl Current {
    /// The context.
    pub fn context(&self) -> Context {
        self.context
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.context.driver
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut popped = core::ptr::null_mut();
        // SAFETY: this thread pushed the context and has pushed none since that it has not popped.
        // There is nobody to tell of a failure, which the next call meets again.
        let _ = unsafe { self.context.driver.pop_context(&raw mut popped) };
    }
}

/// `CU_POINTER_ATTRIBUTE_CONTEXT`.
const ATTRIBUTE_CONTEXT: c_int = 1;
/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`.
const ATTRIBUTE_MEMORY_TYPE: c_int = 2;
/// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
const ATTRIBUTE_DEVICE_ORDINAL: c_int = 9;
/// `CU_MEMORYTYPE_DEVICE`.
const MEMORY_DEVICE: c_uint = 2;
