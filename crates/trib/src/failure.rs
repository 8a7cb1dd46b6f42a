//! Failures of a command, and the exit codes that tell them to a script.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command did not do what it was asked to do.
#[derive(Debug)]
pub enum Failure {
    /// The operation itself failed.
    Operation(String),
    /// The command line asks for something that makes no sense. When clap itself finds an error, it
    /// exits with the same code.
    Usage(String),
    /// Something outside is missing or out of reach.
    Environment(String),
}

impl Failure {
    /// The code that `trib --help` promises.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Operation(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::Environment(_) => ExitCode::from(3),
        }
    }

    /// A failed operation with the text of an error; for `map_err`.
    pub fn operation(error: impl fmt::Display) -> Self {
        Self::Operation(error.to_string())
    }

    /// A missing environment with the text of an error; for `map_err`.
    pub fn environment(error: impl fmt::Display) -> Self {
        Self::Environment(error.to_string())
    }
}

/// Says what went wrong, with a single write: several ranks may write at once, and their lines must
/// not mix.
pub fn tell(text: impl fmt::Display) {
    let line = format!("{PREFIX}{text}\n");
    // If stderr is closed, there is nothing to do.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// What every line of the tool about itself begins with.
pub const PREFIX: &str = "trib: ";

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Operation(text) | Self::Usage(text) | Self::Environment(text)) = self;
        f.write_str(text)
    }
}

/// The failure for an error of a channel to the manager: a refusal is a failed operation, a wrong
/// address or name is wrong usage, and otherwise something outside is missing.
impl From<trib_control::Error> for Failure {
    fn from(error: trib_control::Error) -> Self {
        match error {
            trib_control::Error::Refused(_)
            | trib_control::Error::Exists { .. }
            | trib_control::Error::HolderExists { .. }
            | trib_control::Error::NotIssued { .. }
            | trib_control::Error::UnknownSerial { .. }
            | trib_control::Error::ManagerWithdrawn => Self::operation(error),
            trib_control::Error::NoManager
            | trib_control::Error::BadUrl { .. }
            | trib_control::Error::BadTenant(_)
            | trib_control::Error::BadNode(_) => Self::Usage(error.to_string()),
            _ => Self::environment(error),
        }
    }
}
