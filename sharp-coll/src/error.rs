//! The codes of the header, and which error of the client library becomes which.

use std::ffi::{CStr, c_char, c_int};

use trib_client::Error;

/// A failure of a call: its code, and the full text for the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub code: c_int,
    pub text: String,
}

impl Failure {
    pub fn new(code: c_int, text: impl Into<String>) -> Failure {
        Failure { code, text: text.into() }
    }

    /// An argument is wrong.
    pub fn invalid(text: impl Into<String>) -> Failure {
        Failure::new(EINVAL, text)
    }

    /// The tree, or this library, cannot do this.
    pub fn unsupported(text: impl Into<String>) -> Failure {
        Failure::new(ENOT_SUPP, text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::Invalid(_) | Error::Forked(_) => EINVAL,
            Error::Manager(_) => EJOB_CREATE,
            Error::Node(_) => ECONN_TREE,
            Error::Version(_) | Error::Auth(_) => ESESS_INIT,
            Error::Quota(_) => EQUOTA,
            Error::Peer(_) => EGROUP_JOIN,
            Error::OutOfBand(_) => EOOB,
            Error::Unsupported(_) => ENOT_SUPP,
            Error::Memory(_) => ENOMEM,
            Error::Mismatch(_) | Error::Timeout(_) | Error::Internal(_) | Error::Device(_) => ERROR,
        };
        Failure { code, text: error.to_string() }
    }
}

/// What a code means.
#[unsafe(no_mangle)]
pub extern "C" fn sharp_coll_strerror(error: c_int) -> *const c_char {
    meaning(error).as_ptr()
}

/// Words for a code.
pub fn meaning(code: c_int) -> &'static CStr {
    match code {
        0 => c"Success",
        ERROR => c"Error",
        ENOT_SUPP => c"Operation not supported",
        ENOMEM => c"Out of memory",
        -4 => c"Cannot allocate group",
        ECONN_TREE => c"Cannot connect to aggregation tree",
        EGROUP_JOIN => c"Cannot join group, or a member is gone",
        EQUOTA => c"Quota exceeded",
        ESESS_INIT => c"Cannot open a session with the aggregation manager",
        -9 => c"Device error",
        EINVAL => c"Invalid argument",
        EJOB_CREATE => c"Cannot create SHARP job",
        -12 => c"No information about the tree",
        -13 => c"No aggregation tree available",
        -14 => c"Invalid group",
        EOOB => c"Out-of-band callback failed",
        -16 => c"Multicast target error",
        -17 => c"Cannot trim group",
        -18 => c"Streaming lock not obtained, try again",
        -19 => c"Streaming lock not permitted",
        -20 => c"Resource not available",
        _ => c"Unknown error",
    }
}

pub const ERROR: c_int = -1;
pub const ENOT_SUPP: c_int = -2;
pub const ENOMEM: c_int = -3;
pub const ECONN_TREE: c_int = -5;
pub const EGROUP_JOIN: c_int = -6;
pub const EQUOTA: c_int = -7;
pub const ESESS_INIT: c_int = -8;
pub const EINVAL: c_int = -10;
pub const EJOB_CREATE: c_int = -11;
pub const EOOB: c_int = -15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_words_and_others_have_some() {
        let words: std::collections::BTreeSet<&CStr> = (-20..=0).map(meaning).collect();
        assert_eq!(words.len(), 21);
        for code in [1, -21, c_int::MIN, c_int::MAX] {
            assert_eq!(meaning(code), c"Unknown error");
        }
    }

    #[test]
    fn errors_of_the_client_become_negative_codes() {
        for code in -15..=-1 {
            let failure = Failure::from(Error::from_code(code, "story".into()));
            assert!(failure.code < 0 && failure.text == "story");
        }
    }
}
