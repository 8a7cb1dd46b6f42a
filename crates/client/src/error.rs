//! Errors, sorted by whose fault they are.
//!
//! Every variant holds the full text, with the remedy, because errors travel: rank 0's verdict on
//! joining is the verdict of all ranks, word for word.

use trib_wire::Directory;
use trib_wire::body::{Fault, Reason};

/// A failure of a call or of one operation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The caller's fault: an argument is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The manager's, or that of the way to it: it was not reached, or it refused the job.
    #[error("{0}")]
    Manager(String),
    /// An aggregation node's, or that of the way to it: it was not reached, or it has ended.
    #[error("{0}")]
    Node(String),
    /// The installation's: two sides speak different protocol versions.
    #[error("{0}")]
    Version(String),
    /// The caller's or its administrator's: the quota does not allow it.
    #[error("{0}")]
    Quota(String),
    /// The program's: its ranks disagree about the operation.
    #[error("{0}")]
    Mismatch(String),
    /// Another member died or left.
    #[error("{0}")]
    Peer(String),
    /// The operation was not done within the caller's time limit.
    #[error("{0}")]
    Timeout(String),
    /// The caller's out-of-band exchange failed.
    #[error("{0}")]
    OutOfBand(String),
    /// The tree cannot do this.
    #[error("{0}")]
    Unsupported(String),
    /// This host has no memory left.
    #[error("{0}")]
    Memory(String),
    /// The caller's: a child process after fork used the library.
    #[error("{0}")]
    Forked(String),
    /// Tributary's own: a broken invariant.
    #[error("{0}")]
    Internal(String),
    /// The caller's or its administrator's: no key, a wrong key, or no right to do this.
    #[error("{0}")]
    Auth(String),
    /// A GPU's, or its driver's: a call of the driver failed.
    #[error("{0}")]
    Device(String),
}

impl Error {
    /// The same kind of error with this text.
    pub fn with_text(&self, text: String) -> Error {
        match self {
            Error::Invalid(_) => Error::Invalid(text),
            Error::Manager(_) => Error::Manager(text),
            Error::Node(_) => Error::Node(text),
            Error::Version(_) => Error::Version(text),
            Error::Quota(_) => Error::Quota(text),
            Error::Mismatch(_) => Error::Mismatch(text),
            Error::Peer(_) => Error::Peer(text),
            Error::Timeout(_) => Error::Timeout(text),
            Error::OutOfBand(_) => Error::OutOfBand(text),
            Error::Unsupported(_) => Error::Unsupported(text),
            Error::Memory(_) => Error::Memory(text),
            Error::Forked(_) => Error::Forked(text),
            Error::Internal(_) => Error::Internal(text),
            Error::Auth(_) => Error::Auth(text),
            Error::Device(_) => Error::Device(text),
        }
    }

    /// The code of `enum trib_status` in `tributary.h`. It is negative, and codes are never reused.
    pub const fn code(&self) -> i32 {
        match self {
            Error::Invalid(_) => -1,
            Error::Manager(_) => -2,
            Error::Node(_) => -3,
            Error::Version(_) => -4,
            Error::Quota(_) => -5,
            Error::Mismatch(_) => -6,
            Error::Peer(_) => -7,
            Error::Timeout(_) => -8,
            Error::OutOfBand(_) => -9,
            Error::Unsupported(_) => -10,
            Error::Memory(_) => -11,
            Error::Forked(_) => -12,
            Error::Internal(_) => -13,
            Error::Auth(_) => -14,
            Error::Device(_) => -15,
        }
    }

    /// The error with this code. An unknown code gives an internal error.
    pub fn from_code(code: i32, text: String) -> Error {
        match code {
            -1 => Error::Invalid(text),
            -2 => Error::Manager(text),
            -3 => Error::Node(text),
            -4 => Error::Version(text),
            -5 => Error::Quota(text),
            -6 => Error::Mismatch(text),
            -7 => Error::Peer(text),
            -8 => Error::Timeout(text),
            -9 => Error::OutOfBand(text),
            -10 => Error::Unsupported(text),
            -11 => Error::Memory(text),
            -12 => Error::Forked(text),
            -14 => Error::Auth(text),
            -15 => Error::Device(text),
            _ => Error::Internal(text),
        }
    }

    /// What a fault that the tree found means to a member.
    pub(crate) fn from_fault(fault: &Fault, directory: &dyn Directory) -> Error {
        let text = fault.told(directory);
        match fault.reason {
            Reason::GroupQuota | Reason::OstQuota | Reason::GroupMemory => Error::Quota(text),
            Reason::BadMembers => Error::Invalid(text),
            Reason::MemberDead | Reason::MemberLeft => Error::Peer(text),
            Reason::Mismatch => Error::Mismatch(text),
            Reason::NodeDead
            | Reason::NodeFailed
            | Reason::Unknown
            | Reason::DatagramTooLong
            | Reason::DatagramsBlocked
            | Reason::ResultLost => Error::Node(text),
            Reason::JobEnded => Error::Manager(text),
            Reason::Protocol => Error::Internal(text),
        }
    }

    /// The error for a state that correct code never reaches.
    pub(crate) fn broken(what: &str) -> Error {
        Error::Internal(format!("broken invariant in the client library: {what}; please report it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_errors_are_the_same_thing() {
        for code in -15..=-1 {
            let error = Error::from_code(code, "story".into());
            assert_eq!(error.code(), code);
            assert_eq!(error.to_string(), "story");
            assert_eq!(error.with_text("other".into()).code(), code);
        }
        assert_eq!(Error::from_code(-99, String::new()).code(), -13);
    }
}
