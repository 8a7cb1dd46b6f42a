//! Memory of GPUs, through the driver that is there at run time.
//!
//! Nothing links against it. Copies are made by the driver and are done when the call returns, so that a completed request's
//! bytes are where they belong.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::error::Failure;
use crate::{log, settings};

type CuInit = unsafe extern "C" fn(c_uint) -> c_int;
type PointerAttribute = unsafe extern "C" fn(*mut c_void, c_int, u64) -> c_int;
type Push = unsafe extern "C" fn(*mut c_void) -> c_int;
type Pop = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type ToHost = unsafe extern "C" fn(*mut c_void, u64, usize) -> c_int;
type ToGpu = unsafe extern "C" fn(u64, *const c_void, usize) -> c_int;

/// The few calls that are needed.
#[derive(Clone, Copy)]
struct Driver {
    attribute: PointerAttribute,
    push: Push,
    pop: Pop,
    to_host: ToHost,
    to_gpu: ToGpu,
}

/// Looked for at the first buffer that says CUDA.
static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();

/// Whether the driver says that this address is a GPU's. Fails where there is no driver.
pub fn is_on_gpu(address: *const u8) -> Result<bool, Failure> {
    let driver = driver()?;
    let mut kind: c_uint = 0;
    // SAFETY: the attribute is an unsigned int; the driver takes any address.
    let code = unsafe { (driver.attribute)((&raw mut kind).cast(), ATTRIBUTE_MEMORY_TYPE, address.addr() as u64) };
    // An address that the driver does not know is the host's.
    Ok(code == 0 && kind == MEMORY_DEVICE)
}

/// Copies from a GPU to the host.
pub fn from_gpu(from: *const u8, to: *mut u8, len: usize) -> Result<(), Failure> {
    let driver = driver()?;
    // SAFETY: the caller of the collective vouches for both ends.
    driver.within(from, || unsafe { (driver.to_host)(to.cast(), from.addr() as u64, len) })
}

/// Copies from the host to a GPU.
pub fn to_gpu(from: *const u8, to: *mut u8, len: usize) -> Result<(), Failure> {
    let driver = driver()?;
    // SAFETY: as above.
    driver.within(to, || unsafe { (driver.to_gpu)(to.addr() as u64, from.cast(), len) })
}

impl Driver {
    /// Runs a copy inside the context that an address belongs to: the calling thread may have none.
    fn within(&self, address: *const u8, copy: impl FnOnce() -> c_int) -> Result<(), Failure> {
        let mut context: *mut c_void = core::ptr::null_mut();
        let target = (&raw mut context).cast();
        // SAFETY: the attribute is a context.
        let code = unsafe { (self.attribute)(target, ATTRIBUTE_CONTEXT, address.addr() as u64) };
        checked("cuPointerGetAttribute", code)?;
        // SAFETY: a live context of the application's, taken off again below.
        checked("cuCtxPushCurrent", unsafe { (self.push)(context) })?;
        let copied = copy();
        // SAFETY: as above.
        let popped = unsafe { (self.pop)(&raw mut context) };
        checked("cuMemcpy", copied)?;
        checked("cuCtxPopCurrent", popped)
    }
}

fn driver() -> Result<Driver, Failure> {
    let found = DRIVER.get_or_init(|| {
        if settings::number("SHARP_COLL_ENABLE_CUDA") == Some(0) {
            return None;
        }
        let found = load();
        log::debug(format_args!("CUDA driver: {}", if found.is_some() { "there" } else { "not there" }));
        found
    });
    found.ok_or_else(|| {
        Failure::unsupported("a buffer in the memory of a GPU, and no CUDA driver (libcuda.so.1) on this host")
    })
}

fn load() -> Option<Driver> {
    // SAFETY: opens a library by name; it stays open, because its driver does not like to be unloaded.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    let symbol = |name: &CStr| {
        // SAFETY: an open library and a terminated name.
        let address = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    };
    let init = symbol(c"cuInit")?;
    // SAFETY: each of these symbols has this type in every edition of the driver's interface.
    unsafe {
        let init = core::mem::transmute::<*mut c_void, CuInit>(init);
        if init(0) != 0 {
            return None;
        }
        Some(Driver {
            attribute: core::mem::transmute::<*mut c_void, PointerAttribute>(symbol(c"cuPointerGetAttribute")?),
            push: core::mem::transmute::<*mut c_void, Push>(symbol(c"cuCtxPushCurrent_v2")?),
            pop: core::mem::transmute::<*mut c_void, Pop>(symbol(c"cuCtxPopCurrent_v2")?),
            to_host: core::mem::transmute::<*mut c_void, ToHost>(symbol(c"cuMemcpyDtoH_v2")?),
            to_gpu: core::mem::transmute::<*mut c_void, ToGpu>(symbol(c"cuMemcpyHtoD_v2")?),
        })
    }
}

fn checked(what: &str, code: c_int) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure::new(crate::error::ERROR, format!("{what} failed with {code}"))) }
}

/// `CU_POINTER_ATTRIBUTE_CONTEXT`.
const ATTRIBUTE_CONTEXT: c_int = 1;
/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`.
const ATTRIBUTE_MEMORY_TYPE: c_int = 2;
/// `CU_MEMORYTYPE_DEVICE`.
const MEMORY_DEVICE: c_uint = 2;
