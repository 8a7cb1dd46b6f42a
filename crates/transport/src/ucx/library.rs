//! UCX's library, if this machine has one.
//!
//! It is looked for when the first link wants it. Linked, it would have to be on every machine on
//! which any program of ours runs, and would be loaded, with its handlers of signals, into every
//! rank of every program.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use super::abi::{
    Address, Config, Context, Endpoint, EndpointParams, HandlerParam, Params, Request, RequestParam, Status, Worker,
    WorkerParams,
};

/// Why there is no UCX here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoUcx {
    /// The library is not there.
    #[error(
        "a link says `via = \"ucx\"`, and UCX is not installed here ({0}): install libucx0 (Debian, Ubuntu) or ucx \
         (Red Hat), or take `via` out of the topology"
    )]
    Missing(String),
    /// It is too old.
    #[error("the UCX that is installed here has no {0}: 1.13 or newer is needed")]
    TooOld(String),
    /// It does not do what it is asked for.
    #[error("UCX cannot {what}: {why} (UCX_LOG_LEVEL=info tells more)")]
    Unable {
        /// What it was to do.
        what: &'static str,
        /// What it says.
        why: String,
    },
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Its functions, by their names without `ucp_`.
        pub(super) struct Library {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            status_string: unsafe extern "C" fn(Status) -> *const c_char,
        }

        impl Library {
            fn find(file: &'static libloading::Library) -> Result<Library, NoUcx> {
                Ok(Library {
                    // SAFETY: the types are those of UCX's headers, and the library is never
                    // closed.
                    $($name: unsafe { symbol(file, concat!("ucp_", stringify!($name)))? },)*
                    // SAFETY: as above.
                    status_string: unsafe { symbol(file, "ucs_status_string")? },
                })
            }
        }
    };
}

functions! {
    get_version_string: fn() -> *const c_char;
    config_read: fn(*const c_char, *const c_char, *mut *mut Config) -> Status;
    config_modify: fn(*mut Config, *const c_char, *const c_char) -> Status;
    config_release: fn(*mut Config);
    init_version: fn(c_uint, c_uint, *const Params, *const Config, *mut *mut Context) -> Status;
    cleanup: fn(*mut Context);
    context_print_info: fn(*mut Context, *mut libc::FILE);
    worker_create: fn(*mut Context, *const WorkerParams, *mut *mut Worker) -> Status;
    worker_destroy: fn(*mut Worker);
    worker_get_address: fn(*mut Worker, *mut *mut Address, *mut usize) -> Status;
    worker_release_address: fn(*mut Worker, *mut Address);
    worker_get_efd: fn(*mut Worker, *mut c_int) -> Status;
    worker_arm: fn(*mut Worker) -> Status;
    worker_signal: fn(*mut Worker) -> Status;
    worker_progress: fn(*mut Worker) -> c_uint;
    worker_set_am_recv_handler: fn(*mut Worker, *const HandlerParam) -> Status;
    ep_create: fn(*mut Worker, *const EndpointParams, *mut *mut Endpoint) -> Status;
    ep_flush_nbx: fn(*mut Endpoint, *const RequestParam) -> Request;
    ep_close_nbx: fn(*mut Endpoint, *const RequestParam) -> Request;
    am_send_nbx: fn(*mut Endpoint, c_uint, *const c_void, usize, *const c_void, usize, *const RequestParam) -> Request;
    am_recv_data_nbx: fn(*mut Worker, *mut c_void, *mut c_void, usize, *const RequestParam) -> Request;
    request_free: fn(*mut c_void);
}

/// # Safety
/// `T` is the type of the function with this name.
unsafe fn symbol<T: Copy>(file: &'static libloading::Library, name: &str) -> Result<T, NoUcx> {
    // SAFETY: the caller's promise.
    let found = unsafe { file.get::<T>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|_| NoUcx::TooOld(name.to_owned()))
}

impl Library {
    /// The library. It is loaded once and never unloaded, because threads of its own may run.
    pub(super) fn get() -> Result<&'static Library, NoUcx> {
        static LOADED: OnceLock<Result<Library, NoUcx>> = OnceLock::new();
        LOADED.get_or_init(load).as_ref().map_err(NoUcx::clone)
    }

    /// `Ok` if a call has succeeded that was to do `what`.
    pub(super) fn check(&self, what: &'static str, status: Status) -> Result<(), NoUcx> {
        if status == super::abi::OK { Ok(()) } else { Err(NoUcx::Unable { what, why: self.words(status) }) }
    }

    /// What a status means.
    pub(super) fn words(&self, status: Status) -> String {
        // SAFETY: the function returns a string that lasts.
        unsafe { text((self.status_string)(status)) }
    }

    /// Its release.
    pub(super) fn version(&self) -> String {
        // SAFETY: as above.
        unsafe { text((self.get_version_string)()) }
    }
}

/// # Safety
/// It is a string of C.
unsafe fn text(string: *const c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

fn load() -> Result<Library, NoUcx> {
    // SAFETY: UCX's constructors may run in any thread.
    let file = unsafe { libloading::Library::new(FILE) }.map_err(|error| NoUcx::Missing(error.to_string()))?;
    Library::find(Box::leak(Box::new(file)))
}

/// The name under which every release of UCX 1 is found.
const FILE: &str = "libucp.so.0";
