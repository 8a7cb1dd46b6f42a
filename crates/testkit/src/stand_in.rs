//! A CUDA driver for machines without a GPU, built from `tests/cuda/stand_in.c`, as a program uses
//! it.

use std::ffi::{CString, c_char, c_int, c_long, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use libloading::{Library, Symbol};

/// A driver of a test's own, which no other has lost or counts with, and the context of its first
/// device. A call that fails panics.
#[derive(Debug)]
pub struct StandIn {
    library: Library,
    path: PathBuf,
}

impl StandIn {
    /// Builds and loads one, whose context is current on this thread.
    ///
    /// # Panics
    /// If gcc cannot build it.
    #[expect(clippy::new_without_default, reason = "it builds a library")]
    pub fn new() -> StandIn {
        let path = build();
        // SAFETY: the library has just been built, and does nothing when it is loaded.
        let library = unsafe { Library::new(&path) }.expect("the stand-in can be loaded");
        let stand_in = StandIn { library, path };
        let mut context = null_mut();
        stand_in.call::<unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int>("cuDevicePrimaryCtxRetain", |f| {
            // SAFETY: the result is written where it belongs.
            unsafe { f(&raw mut context, 0) }
        });
        // SAFETY: the context is the driver's.
        stand_in.call::<unsafe extern "C" fn(*mut c_void) -> c_int>("cuCtxSetCurrent", |f| unsafe { f(context) });
        stand_in
    }

    /// The file of the library.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls a function that has to succeed.
    fn call<F>(&self, name: &str, with: impl FnOnce(&Symbol<'_, F>) -> c_int) {
        assert_eq!(with(&self.function(name)), 0, "{name}");
    }

    fn function<F>(&self, name: &str) -> Symbol<'_, F> {
        // SAFETY: each caller names the function's type.
        unsafe { self.library.get(name.as_bytes()) }.expect("a function of the stand-in")
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

    /// Gives it back.
    pub fn free(&self, address: *mut u8) {
        // SAFETY: as above.
        self.call::<unsafe extern "C" fn(u64) -> c_int>("cuMemFree_v2", |f| unsafe { f(address.addr() as u64) });
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
        let (name, value) = (c_text(name), c_text(value));
        let set = self.function::<unsafe extern "C" fn(*const c_char, *const c_char)>("standInSet");
        // SAFETY: both texts are terminated.
        unsafe { set(name.as_ptr(), value.as_ptr()) }
    }

    /// How often something was done.
    pub fn count(&self, what: &str) -> c_long {
        let what = c_text(what);
        let count = self.function::<unsafe extern "C" fn(*const c_char) -> c_long>("standInCount");
        // SAFETY: as above.
        unsafe { count(what.as_ptr()) }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if let Some(folder) = self.path.parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn c_text(text: &str) -> CString {
    CString::new(text).expect("a text without a zero")
}

/// Builds the stand-in and returns the library's path. Each call gives a file of its own.
fn build() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cuda/stand_in.c");
    let folder = std::env::temp_dir().join(format!("trib-stand-in-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the stand-in driver");
    let library = folder.join("libcuda.so.1");
    let flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"];
    let built = Command::new("gcc").args(flags).args([&library, &source]).status().expect("gcc");
    assert!(built.success(), "gcc cannot build {}", source.display());
    library
}
