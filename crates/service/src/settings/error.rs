//! What is wrong with a daemon's settings, where, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Settings with which a daemon cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("configuration {}: {cause}; name a file that this user may read (--config)", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why it cannot be read.
        cause: io::Error,
    },
    /// A line of the file is wrong.
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
    /// A value of the command line or of the environment is wrong.
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
        /// Both values, and where the first comes from.
        cause: String,
        /// What to do.
        remedy: &'static str,
    },
    /// There is no value for a setting that the daemon needs.
    #[error(
        "no {name} is given: say --{option}, set {variable} in the environment, or write `{name} = ...` in the settings file that --config names. It is: {meaning}"
    )]
    Missing {
        /// The setting.
        name: &'static str,
        /// What the setting is for.
        meaning: &'static str,
        /// Its option.
        option: &'static str,
        /// Its variable.
        variable: &'static str,
    },
}

impl SettingsError {
    /// Whether the user's settings are wrong, and not something in the daemon's surroundings.
    pub fn is_usage(&self) -> bool {
        !matches!(self, SettingsError::Unreadable { .. })
    }
}
