//! NCCL's result codes, and which failure becomes which.

use std::ffi::c_int;
use std::io;

use trib_client::Error;

/// What a function of the plugin returns: a value of `ncclResult_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Code {
    Success = 0,
    /// The system or a library below failed.
    System = 2,
    /// A broken invariant, or NCCL used the plugin in a way it must not.
    Internal = 3,
    /// An argument is wrong.
    Argument = 4,
    /// The user's fault: a setting, or ranks that disagree.
    Usage = 5,
    /// Another rank, or the way to it, has failed.
    Remote = 6,
}

/// A failure of a call: its code, and the words for the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub code: Code,
    pub text: String,
}

impl Failure {
    pub fn new(code: Code, text: impl Into<String>) -> Failure {
        Failure { code, text: text.into() }
    }

    /// A call of the system failed.
    pub fn system(what: &str, error: &io::Error) -> Failure {
        Failure::new(Code::System, format!("{what}: {error}"))
    }

    /// An argument is wrong.
    pub fn argument(text: impl Into<String>) -> Failure {
        Failure::new(Code::Argument, text)
    }

    /// Another rank has failed.
    pub fn remote(text: impl Into<String>) -> Failure {
        Failure::new(Code::Remote, text)
    }

    /// The code that C gets.
    pub fn number(&self) -> c_int {
        self.code as c_int
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::Invalid(_) | Error::Unsupported(_) => Code::Argument,
            Error::Quota(_) | Error::Mismatch(_) | Error::Auth(_) | Error::Version(_) => Code::Usage,
            Error::Peer(_) => Code::Remote,
            Error::Internal(_) | Error::Forked(_) | Error::OutOfBand(_) => Code::Internal,
            Error::Manager(_) | Error::Node(_) | Error::Timeout(_) | Error::Memory(_) | Error::Device(_) => {
                Code::System
            }
        };
        Failure { code, text: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_nccl_h() {
        let all = [Code::Success, Code::System, Code::Internal, Code::Argument, Code::Usage, Code::Remote];
        assert_eq!(all.map(|code| code as c_int), [0, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn words_of_the_client_are_kept() {
        let failure = Failure::from(Error::Peer("rank 3 died".into()));
        assert_eq!(failure, Failure::remote("rank 3 died"));
    }
}
