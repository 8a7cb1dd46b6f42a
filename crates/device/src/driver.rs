//! The functions of the driver that are needed, and where they come from.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::error::Error;
use crate::ipc_handle::IpcHandle;

/// A context, a stream, an event, a module or a function, as the driver names it.
pub(crate) type Handle = *mut c_void;

/// Declares functions of the driver that are there together or not at all: a field for each, and a
/// method that calls it and turns its result into an error.
macro_rules! functions {
    ($table:ident, $found:ident: $($name:ident = $symbol:literal ($($argument:ident: $kind:ty),*);)*) => {
        struct $table {
            $($name: unsafe extern "C" fn($($kind),*) -> c_int,)*
        }

        impl $table {
            fn load(library: &Library) -> Result<$table, libloading::Error> {
                Ok($table {
                    // SAFETY: the symbol has this type in every version of the driver's interface
                    // that has it. The library is never closed.
                    $($name: *unsafe { library.get(concat!($symbol, "\0").as_bytes()) }?,)*
                })
            }
        }

        impl Driver {
            $(
                /// Calls the driver's function of this name.
                ///
                /// # Safety
                /// The arguments are as CUDA's driver API says.
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's function has")]
                pub(crate) unsafe fn $name(&self, $($argument: $kind),*) -> Result<(), Error> {
                    let function = self.$found()?.$name;
                    // SAFETY: the caller's contract.
                    self.checked($symbol, unsafe { function($($argument),*) })
                }
            )*
        }
    };
}

functions! { Table, table:
    init = "cuInit" (flags: c_uint);
    pointer_attribute = "cuPointerGetAttribute" (value: *mut c_void, attribute: c_int, address: u64);
    set_pointer_attribute = "cuPointerSetAttribute" (value: *const c_void, attribute: c_int, address: u64);
    device = "cuDeviceGet" (device: *mut c_int, ordinal: c_int);
    retain_context = "cuDevicePrimaryCtxRetain" (context: *mut Handle, device: c_int);
    push_context = "cuCtxPushCurrent_v2" (context: Handle);
    pop_context = "cuCtxPopCurrent_v2" (context: *mut Handle);
    allocate_pinned = "cuMemHostAlloc" (start: *mut *mut c_void, len: usize, flags: c_uint);
    free_pinned = "cuMemFreeHost" (start: *mut c_void);
    create_stream = "cuStreamCreate" (stream: *mut Handle, flags: c_uint);
    destroy_stream = "cuStreamDestroy_v2" (stream: Handle);
    stream_wait = "cuStreamWaitEvent" (stream: Handle, event: Handle, flags: c_uint);
    stream_capturing = "cuStreamIsCapturing" (stream: Handle, status: *mut c_int);
    exchange_capture_mode = "cuThreadExchangeStreamCaptureMode" (mode: *mut c_int);
    create_event = "cuEventCreate" (event: *mut Handle, flags: c_uint);
    destroy_event = "cuEventDestroy_v2" (event: Handle);
    record_event = "cuEventRecord" (event: Handle, stream: Handle);
    query_event = "cuEventQuery" (event: Handle);
    await_event = "cuEventSynchronize" (event: Handle);
    copy = "cuMemcpyAsync" (to: u64, from: u64, len: usize, stream: Handle);
}

// What several processes of a host need to combine what their devices have.
functions! { Combining, combining:
    allocate = "cuMemAlloc_v2" (start: *mut u64, len: usize);
    free = "cuMemFree_v2" (start: u64);
    export = "cuIpcGetMemHandle" (handle: *mut IpcHandle, start: u64);
    import = "cuIpcOpenMemHandle_v2" (start: *mut u64, handle: IpcHandle, flags: c_uint);
    close_import = "cuIpcCloseMemHandle" (start: u64);
    load_module = "cuModuleLoadData" (module: *mut Handle, image: *const c_void);
    module_function = "cuModuleGetFunction" (function: *mut Handle, module: Handle, name: *const c_char);
    unload_module = "cuModuleUnload" (module: Handle);
    launch = "cuLaunchKernel" (
        function: Handle, blocks_x: c_uint, blocks_y: c_uint, blocks_z: c_uint, threads_x: c_uint, threads_y: c_uint,
        threads_z: c_uint, shared: c_uint, stream: Handle, arguments: *mut *mut c_void, extra: *mut *mut c_void
    );
}

// What memory needs that belongs to no context, so that copies of the program's are over when they
// return.
functions! { Flags, flags:
    context_flags = "cuCtxGetFlags" (flags: *mut c_uint);
    set_context_flags = "cuCtxSetFlags" (flags: c_uint);
}

/// The driver: its functions, which stay loaded for as long as the process lives.
pub struct Driver {
    table: Table,
    /// Drivers before CUDA 11.0 lack some of these.
    combining: Option<Combining>,
    /// Drivers before CUDA 12.1 lack one of these.
    flags: Option<Flags>,
    error_name: Option<unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>,
}

/// The machine's driver, which is looked for at the first call. It fails where there is none, or no
/// GPU, or where `TRIB_CUDA=off` says that there is none.
pub fn driver() -> Result<&'static Driver, Error> {
    static DRIVER: OnceLock<Result<Driver, Error>> = OnceLock::new();
    let found = DRIVER.get_or_init(|| match std::env::var_os(SWITCH) {
        Some(value) if value == "off" || value == "0" => Err(Error::Absent(format!("{SWITCH} has switched it off"))),
        _ => Driver::load(OsStr::from_bytes(LIBRARY.to_bytes())),
    });
    found.as_ref().map_err(Error::clone)
}

impl Driver {
    /// Loads a driver by its file's name, or by a path.
    pub fn load(name: &OsStr) -> Result<Driver, Error> {
        let told = name.to_string_lossy();
        // SAFETY: what the driver does when it is loaded is the machine's to vouch for. It stays
        // loaded, because it does not bear being unloaded.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|_| Error::Absent(format!("no CUDA driver ({told}) on this host")))?;
        let lacks = |cause: libloading::Error| {
            Error::Absent(format!("this host's CUDA driver ({told}) lacks calls that CUDA 10.1 has: {cause}"))
        };
        // SAFETY: as in `Table::load`. Drivers before CUDA 6 lack it.
        let error_name = unsafe { library.get(b"cuGetErrorName\0") }.ok().map(|symbol| *symbol);
        let (table, combining) = (Table::load(&library).map_err(lacks)?, Combining::load(&library).ok());
        let driver = Driver { table, combining, flags: Flags::load(&library).ok(), error_name };
        let _ = library.into_raw();
        // SAFETY: no flag is defined.
        unsafe { driver.init(0) }.map_err(|error| Error::Absent(format!("this host's CUDA driver says: {error}")))?;
        Ok(driver)
    }

    fn table(&self) -> Result<&Table, Error> {
        Ok(&self.table)
    }

    fn combining(&self) -> Result<&Combining, Error> {
        let lacks = || Error::Absent("this host's CUDA driver lacks calls that CUDA 11.0 has".into());
        self.combining.as_ref().ok_or_else(lacks)
    }

    fn flags(&self) -> Result<&Flags, Error> {
        let lacks = || Error::Absent("this host's CUDA driver lacks calls that CUDA 12.1 has".into());
        self.flags.as_ref().ok_or_else(lacks)
    }

    pub(crate) fn checked(&self, call: &'static str, code: c_int) -> Result<(), Error> {
        if code == 0 { Ok(()) } else { Err(Error::Failed { call, code, name: self.name_of(code) }) }
    }

    fn name_of(&self, code: c_int) -> String {
        let mut name = core::ptr::null();
        // SAFETY: the function writes a pointer to a text that lives as long as the driver, or
        // null.
        let known = self.error_name.is_some_and(|function| unsafe { function(code, &raw mut name) } == 0);
        match known && !name.is_null() {
            // SAFETY: as above.
            true => unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned(),
            false => "a code without a name".to_owned(),
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}

/// The driver's file, by the name by which every program loads it.
pub const LIBRARY: &CStr = c"libcuda.so.1";
/// Switches devices off, if it is `off` or `0`.
pub const SWITCH: &str = "TRIB_CUDA";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_not_there_and_one_that_is_none_are_told_apart() {
        let Err(Error::Absent(absent)) = Driver::load(OsStr::new("libno-such-driver.so.1")) else { panic!() };
        assert_eq!(absent, "no CUDA driver (libno-such-driver.so.1) on this host");
        let Err(Error::Absent(other)) = Driver::load(OsStr::new("libc.so.6")) else { panic!() };
        assert!(other.contains("lacks calls") && other.contains("cuInit"), "{other}");
    }
}
