//! Where a value came from, for the person who has to change it.

use std::fmt;
use std::path::PathBuf;

use super::Value;

/// A value and where it came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Given {
    pub value: Value,
    pub origin: Origin,
}

/// The source of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// An option of the command line.
    Option(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// A line of the file, counted from 1.
    File(PathBuf, usize),
    /// The table of defaults: no other source gave a value.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Option(option) => write!(f, "--{option}"),
            Origin::Variable(variable) => write!(f, "environment variable {variable}"),
            Origin::File(file, line) => write!(f, "configuration {}:{line}", file.display()),
            Origin::Default => f.write_str("the default"),
        }
    }
}
