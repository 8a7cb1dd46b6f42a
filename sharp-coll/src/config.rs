//! Section "Settings": the default configuration, and printing the table.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::fmt::Write;
use std::mem::MaybeUninit;

use crate::abi::{Config, PRINT_CONFIG, PRINT_DOC, PRINT_HEADER, PRINT_HIDDEN};
use crate::boundary::{guard, writable};
use crate::error::{ERROR, Failure};
use crate::settings::{SETTINGS, value};

/// The exported object. A client may have an object of the same name, which then takes its place,
/// so nothing in here reads it.
#[repr(transparent)]
pub struct Shared(Config);

// SAFETY: this is a constant without a pointer to anything that changes.
unsafe impl Sync for Shared {}

/// The configuration of a job that asks for nothing else.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static sharp_coll_default_config: Shared = Shared(Config {
    ib_dev_list: core::ptr::null(),
    user_progress_num_polls: 128,
    coll_timeout: -1,
    flags: 0,
    reserved: MaybeUninit::new([0; 3]),
});

/// Writes the settings to a stream of C's standard library.
///
/// # Safety
/// `stream` is an open `FILE`; `exec_name` is a terminated string, or null if a header is asked
/// for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharp_coll_print_config(
    stream: *mut libc::FILE,
    flags: c_uint,
    exec_name: *const c_char,
) -> c_int {
    guard("sharp_coll_print_config", || {
        writable(stream, "stream")?;
        let name = if flags & PRINT_HEADER != 0 && !exec_name.is_null() {
            // SAFETY: the caller's contract; the name is read only when a header is asked for.
            Some(unsafe { CStr::from_ptr(exec_name) }.to_string_lossy().into_owned())
        } else {
            None
        };
        let text =
            CString::new(page(flags, name.as_deref())).map_err(|_| Failure::new(ERROR, "a value holds a zero byte"))?;
        // SAFETY: the stream is open and the string is terminated.
        let code = unsafe { libc::fputs(text.as_ptr(), stream) };
        if code < 0 { Err(Failure::new(ERROR, "the stream cannot be written to")) } else { Ok(()) }
    })
}

fn page(flags: c_uint, exec_name: Option<&str>) -> String {
    let mut page = String::new();
    if flags & PRINT_HEADER != 0 {
        let _ = writeln!(
            page,
            "#\n# libsharp_coll configuration{}\n#",
            exec_name.map_or(String::new(), |name| format!(" of {name}"))
        );
    }
    if flags & (PRINT_CONFIG | PRINT_DOC) == 0 {
        return page;
    }
    for setting in SETTINGS.iter().filter(|setting| setting.has_effect || flags & PRINT_HIDDEN != 0) {
        if flags & PRINT_DOC != 0 {
            let effect = if setting.has_effect { "" } else { " (accepted; changes nothing here)" };
            let _ = writeln!(page, "\n# {}{effect}", setting.doc);
        }
        if flags & PRINT_CONFIG != 0 {
            let _ = writeln!(
                page,
                "{}={}",
                setting.name,
                value(setting.name).unwrap_or_else(|| setting.default.to_owned())
            );
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_choose_what_is_printed() {
        let plain = page(PRINT_CONFIG, None);
        assert!(
            plain.contains("SHARP_COLL_ON_ERROR=")
                && !plain.contains("SHARP_COLL_MAX_INLINE_SIZE")
                && !plain.contains('#')
        );
        let all = page(PRINT_CONFIG | PRINT_HIDDEN | PRINT_DOC | PRINT_HEADER, Some("me"));
        assert!(all.starts_with("#\n# libsharp_coll configuration of me\n"));
        assert!(SETTINGS.iter().all(|setting| all.contains(setting.name) && all.contains(setting.doc)));
        assert_eq!(page(0, None), "");
    }
}
