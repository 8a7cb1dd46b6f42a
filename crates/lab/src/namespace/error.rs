//! Why a laboratory could not be built or used.

use std::io;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// This machine or this user cannot have one.
    #[error("network namespaces cannot be used here: {0}")]
    Unavailable(String),
    /// More hosts than addresses, or none.
    #[error("a star has 1 to {max} hosts, not {0}", max = super::lab::HOSTS_MAX)]
    Hosts(u16),
    /// Nothing answers to this id.
    #[error("there is no laboratory {0:?}; TRIB_LAB holds the id of one that has ended, or none")]
    Unknown(String),
    /// A tool said no.
    #[error("`{command}` failed: {answer}")]
    Tool {
        /// The command line.
        command: String,
        /// What it printed.
        answer: String,
    },
    /// A tool's answer was not what we know how to read.
    #[error("cannot read the answer of `{command}`: {reason}")]
    Answer {
        /// The command line.
        command: String,
        /// What is missing in it.
        reason: String,
    },
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: String,
        /// The system's answer.
        source: io::Error,
    },
}
