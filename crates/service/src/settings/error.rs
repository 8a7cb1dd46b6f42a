//! What is wrong with a daemon's settings, where, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Settings that a daemon cannot be started with.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("configuration {}: {cause}; name a file that this user may read (--config)", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// Something in the file.
    #[error("configuration {}:{line}: {cause}; {remedy}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        cause: String,
        /// What to do.
        remedy: String,
    },
    /// A value of the command line or of the environment.
    #[error("{origin}: {cause}; expected {form}")]
    Value {
        /// Where the value comes from.
        origin: String,
        /// What is wrong with it.
        cause: String,
        /// What it should look like.
        form: String,
    },
    /// Two values that cannot both hold.
    #[error("{origin}: {cause}; {remedy}")]
    Contradiction {
        /// Where the second value comes from.
        origin: String,
        /// Both, and where the first comes from.
        cause: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Nobody gave a value that the daemon cannot do without.
    #[error(
        "no {name} is given: say --{option}, set {variable} in the environment, or write `{name} = ...` in the settings file that --config names. It is: {meaning}"
    )]
    Missing {
        /// The setting.
        name: &'static str,
        /// What it is for.
        meaning: &'static str,
        /// Its option.
        option: &'static str,
        /// Its variable.
        variable: &'static str,
    },
}

impl SettingsError {
    /// Whether what was asked for makes no sense, rather than that something is missing around the daemon.
    pub fn is_usage(&self) -> bool {
        !matches!(self, SettingsError::Unreadable { .. })
    }
}
