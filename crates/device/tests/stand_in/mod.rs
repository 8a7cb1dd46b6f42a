//! The stand-in driver, as a program sees it.

use std::ffi::{CString, c_char, c_int, c_long, c_uint, c_void};
use std::ptr::null_mut;

use libloading::{Library, Symbol};
use trib_device::Driver;

/// A driver of a test's own, with the context of its first device.
pub struct StandIn {
    library: Library,
    pub driver: &'static Driver,
}

impl StandIn {
    pub fn new() -> StandIn {
        let path = trib_testkit::stand_in_driver();
        let driver = Driver::load(path.as_os_str()).expect("the stand-in is a driver");
        // SAFETY: the library is the one that has just been loaded.
        let library = unsafe { Library::new(&path) }.unwrap();
        // What is loaded needs its file no more.
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        let stand_in = StandIn { library, driver: Box::leak(Box::new(driver)) };
        let mut context = null_mut();
        stand_in.call::<unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int>("cuDevicePrimaryCtxRetain", |f| {
            // SAFETY: the result is written where it belongs.
            unsafe { f(&raw mut context, 0) }
        });
        // SAFETY: the context is the driver's.
        stand_in.call::<unsafe extern "C" fn(*mut c_void) -> c_int>("cuCtxSetCurrent", |f| unsafe { f(context) });
        stand_in
    }

    /// Calls a function that has to succeed.
    fn call<F>(&self, name: &str, with: impl FnOnce(&Symbol<'_, F>) -> c_int) {
        assert_eq!(with(&self.function(name)), 0, "{name}");
    }

    fn function<F>(&self, name: &str) -> Symbol<'_, F> {
        // SAFETY: each caller names the function's type.
        unsafe { self.library.get(name.as_bytes()) }.unwrap()
    }

    /// Memory of the device.
    pub fn allocate(&self, len: usize) -> *mut u8 {
        let mut address = 0u64;
        self.call::<unsafe extern "C" fn(*mut u64, usize) -> c_int>("cuMemAlloc_v2", |f| {
            // SAFETY: as above.
            unsafe { f(&raw mut address, len) }
        });
        std::ptr::without_provenance_mut(address as usize)
    }

    /// Writes to memory of the device at once.
    pub fn write(&self, to: *mut u8, bytes: &[u8]) {
        self.call::<unsafe extern "C" fn(u64, *const u8, usize) -> c_int>("cuMemcpyHtoD_v2", |f| {
            // SAFETY: both ends have the bytes.
            unsafe { f(to.addr() as u64, bytes.as_ptr(), bytes.len()) }
        });
    }

    /// Reads memory of the device at once.
    pub fn read(&self, from: *const u8, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.call::<unsafe extern "C" fn(*mut u8, u64, usize) -> c_int>("cuMemcpyDtoH_v2", |f| {
            // SAFETY: as above.
            unsafe { f(bytes.as_mut_ptr(), from.addr() as u64, len) }
        });
        bytes
    }

    /// A stream of the program's.
    pub fn stream(&self) -> *mut c_void {
        let mut stream = null_mut();
        self.call::<unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int>("cuStreamCreate", |f| {
            // SAFETY: as above.
            unsafe { f(&raw mut stream, 1) }
        });
        stream
    }

    /// Queues work that takes so long.
    pub fn sleep(&self, stream: *mut c_void, us: c_uint) {
        self.call::<unsafe extern "C" fn(*mut c_void, c_uint) -> c_int>("standInSleep", |f| {
            // SAFETY: the stream is alive.
            unsafe { f(stream, us) }
        });
    }

    /// Begins to capture a stream, in the mode in which other threads' calls spoil it.
    pub fn begin_capture(&self, stream: *mut c_void) {
        self.call::<unsafe extern "C" fn(*mut c_void, c_int) -> c_int>("cuStreamBeginCapture_v2", |f| {
            // SAFETY: as above.
            unsafe { f(stream, 0) }
        });
    }

    /// Ends the capture and returns whether it was spoilt.
    pub fn end_capture(&self, stream: *mut c_void) -> bool {
        let mut graph = null_mut();
        let end = self.function::<unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int>("cuStreamEndCapture");
        // SAFETY: as above.
        unsafe { end(stream, &raw mut graph) != 0 }
    }

    /// Sets one of the stand-in's variables.
    pub fn set(&self, name: &str, value: &str) {
        let (name, value) = (CString::new(name).unwrap(), CString::new(value).unwrap());
        let set = self.function::<unsafe extern "C" fn(*const c_char, *const c_char)>("standInSet");
        // SAFETY: both texts are terminated.
        unsafe { set(name.as_ptr(), value.as_ptr()) }
    }

    /// How often something was done.
    pub fn count(&self, what: &str) -> c_long {
        let what = CString::new(what).unwrap();
        let count = self.function::<unsafe extern "C" fn(*const c_char) -> c_long>("standInCount");
        // SAFETY: as above.
        unsafe { count(what.as_ptr()) }
    }
}
