//! Section "Results": codes, what they mean, and the last error of a thread.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};

use trib_client::Error;

/// What a code means.
#[unsafe(no_mangle)]
pub extern "C" fn trib_strerror(status: c_int) -> *const c_char {
    meaning(status).as_ptr()
}

/// The last error of this thread in words.
#[unsafe(no_mangle)]
pub extern "C" fn trib_last_error() -> *const c_char {
    // The text stays in its buffer until the thread's next error, as it does for `strerror`.
    LAST.with(|last| last.0.get().cast_const().cast())
}

/// Keeps the text of an error for `trib_last_error` and returns the error's code.
pub(crate) fn remember(error: &Error) -> c_int {
    LAST.with(|last| {
        // SAFETY: only this thread uses the buffer, and no reference into it is alive: C only holds
        // its address.
        copy_text(&error.to_string(), unsafe { &mut *last.0.get() });
    });
    error.code()
}

/// Copies a text into a buffer and terminates it. A text that is too long is cut between two
/// characters. An empty buffer stays as it is.
pub(crate) fn copy_text(text: &str, buffer: &mut [u8]) {
    let Some(room) = buffer.len().checked_sub(1) else { return };
    let fits = |len: &usize| text.is_char_boundary(*len);
    let len = (0..=text.len().min(room)).rev().find(fits).unwrap_or(0);
    buffer[..len].copy_from_slice(&text.as_bytes()[..len]);
    buffer[len] = 0;
}

fn meaning(status: c_int) -> &'static CStr {
    match status {
        0 => c"success",
        -1 => c"an argument is wrong",
        -2 => c"the aggregation manager cannot be reached or refused the job",
        -3 => c"an aggregation node cannot be reached or is gone",
        -4 => c"the other side speaks another protocol version",
        -5 => c"the job's quota does not allow it",
        -6 => c"ranks disagree about the operation",
        -7 => c"a member died or left",
        -8 => c"not done within the time limit",
        -9 => c"an out-of-band callback failed",
        -10 => c"no such datatype, operator or combination",
        -11 => c"out of memory",
        -12 => c"used in a child process after fork",
        -13 => c"broken invariant in Tributary",
        -14 => c"no key, a wrong key, or no right to do this",
        -15 => c"a GPU or its driver failed",
        _ => c"unknown status",
    }
}

/// A buffer of fixed size. A thread-local value that owned memory would have a destructor, which
/// must not run after the library has been unloaded.
struct LastError(UnsafeCell<[u8; TEXT_LEN]>);

thread_local! {
    static LAST: LastError = const { LastError(UnsafeCell::new([0; TEXT_LEN])) };
}

const TEXT_LEN: usize = 1024;
const _: () = assert!(!std::mem::needs_drop::<LastError>());

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the pointer is never null, and the text is terminated.
        unsafe { CStr::from_ptr(trib_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn every_thread_has_its_own_last_error() {
        assert_eq!(last(), "");
        assert_eq!(remember(&Error::Quota("too much".into())), -5);
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
        assert_eq!(last(), "too much");
        remember(&Error::Peer("ä".repeat(TEXT_LEN)));
        assert_eq!(last(), "ä".repeat((TEXT_LEN - 1) / 2));
    }

    #[test]
    fn every_code_has_words() {
        for code in -15..=0 {
            assert_ne!(meaning(code), meaning(1));
        }
    }
}
