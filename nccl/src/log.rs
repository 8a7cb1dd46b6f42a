//! Lines through the logger that NCCL gives: they go where `NCCL_DEBUG` and `NCCL_DEBUG_FILE` say.

use std::ffi::{CString, c_char, c_int, c_ulong};
use std::sync::Mutex;
use std::sync::PoisonError;

/// `ncclDebugLogger_t`: a level, the parts of NCCL that a line is about, where it comes from, and a
/// format as `printf` has it.
pub type Logger = unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, ...);

/// The logger that NCCL gave last. Every communicator gives the same.
static LOGGER: Mutex<Option<Logger>> = Mutex::new(None);

/// Keeps NCCL's logger.
pub fn keep(logger: Option<Logger>) {
    if logger.is_some() {
        *LOGGER.lock().unwrap_or_else(PoisonError::into_inner) = logger;
    }
}

/// A line that `NCCL_DEBUG=WARN` shows.
pub fn warn(text: &str) {
    line(WARN, ALL, text);
}

/// A line that `NCCL_DEBUG=INFO` shows.
pub fn info(text: &str) {
    line(INFO, INIT | NET, text);
}

fn line(level: c_int, parts: c_ulong, text: &str) {
    let logger = *LOGGER.lock().unwrap_or_else(PoisonError::into_inner);
    let text = format!("NET/Tributary : {}", text.replace(['\n', '\0'], " "));
    let (Some(logger), Ok(text)) = (logger, CString::new(text)) else { return };
    // SAFETY: the logger is NCCL's function; the format takes one string, and all strings end.
    unsafe { logger(level, parts, c"tributary".as_ptr(), 0, c"%s".as_ptr(), text.as_ptr()) };
}

/// Levels of `ncclDebugLogLevel`.
const WARN: c_int = 2;
const INFO: c_int = 3;
/// Parts of `ncclDebugLogSubSys`.
const INIT: c_ulong = 0x1;
const NET: c_ulong = 0x10;
const ALL: c_ulong = !0;
