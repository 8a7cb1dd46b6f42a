//! Memory of GPUs, through the CUDA driver if there is one at run time.
//!
//! The library does not link against the driver. A copy is done when its call returns, so that the
//! bytes of a completed request are where they belong.

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

/// The few functions of the driver that are needed.
#[derive(Clone, Copy)]
struct Driver {
    attribute: PointerAttribute,
    push: Push,
    pop: Pop,
    to_host: ToHost,
    to_gpu: ToGpu,
}

/// The driver, which is looked for at the first buffer that is marked as CUDA memory.
static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();

/// Whether this address belongs to a GPU, as the driver says. It fails where there is no driver.
pub fn is_on_gpu(address: *const u8) -> Result<bool, Failure> {
    let driver = driver()?;
    let mut kind: c_uint = 0;
    // SAFETY: the attribute is an unsigned int; the driver takes any address.
    let code = unsafe { (driver.attribute)((&raw mut kind).cast(), ATTRIBUTE_MEMORY_TYPE, address.addr() as u64) };
    // The driver reports an error for an address that it does not know; such an address is the
    // host's.
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
    /// Runs a copy in the context to which an address belongs, because the calling thread may have
    /// no context.
    fn within(&self, address: *const u8, copy: impl FnOnce() -> c_int) -> Result<(), Failure> {
        let mut context: *mut c_void = core::ptr::null_mut();
        let target = (&raw mut context).cast();
        // SAFETY: the attribute is a context.
        let code = unsafe { (self.attribute)(target, ATTRIBUTE_CONTEXT, address.addr() as u64) };
        checked("cuPointerGetAttribute", code)?;
        // SAFETY: this is a live context of the application's; it is popped below.
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
    // SAFETY: the call opens a library by its name. The library stays open, because the driver does
    // not bear being unloaded.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    let symbol = |name: &CStr| {
        // SAFETY: the library is open and the name is terminated.
        let address = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    };
    let init = symbol(c"cuInit")?;
    // SAFETY: each of these symbols has this type in every version of the driver's interface.
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
