//! The daemons' settings: one table each, from which the option parser, the reader of files,
//! `--print-config` and `docs/configuration.md` are made.
//!
//! ```text
//!   --listen ADDR          TRIB_AM_LISTEN=ADDR       listen = "ADDR"        0.0.0.0:7070
//!   the command line  over the environment      over the file         over the default
//! ```
//!
//! Map: `am`, `an` (the tables and what they become), `common` (rows of both), `kind` (what a value
//! may be), `file` (TOML to values), `values` (which source wins), `origin` (where a value came
//! from), `contradiction` (values that cannot hold together), `document` (the tables in words),
//! `error`.

mod am;
mod an;
mod common;
mod contradiction;
mod document;
mod error;
mod file;
mod kind;
mod origin;
mod values;

pub use am::ManagerSettings;
pub use an::NodeSettings;
pub use error::SettingsError;
pub use kind::{Kind, Value};
pub use values::{Sources, Values};

use std::fmt;

/// One setting of one daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Its name in a file.
    pub name: &'static str,
    /// Its option on the command line, without the dashes.
    pub option: &'static str,
    /// Its variable in the environment.
    pub variable: &'static str,
    /// What its value may be.
    pub kind: Kind,
    /// What holds if no source gives a value.
    pub default: Default,
    /// The unit in which the value counts; empty if it counts nothing.
    pub unit: &'static str,
    /// What it means, in a sentence without its full stop.
    pub meaning: &'static str,
    /// A value as an administrator might choose it.
    pub example: &'static str,
}

/// What holds if no source gives a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Default {
    /// There is no default: the daemon does not start.
    Required,
    /// The setting is off.
    Off,
    /// The default is this value.
    Is(&'static str),
}

/// A daemon that has settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Daemon {
    /// `trib am`
    Manager,
    /// `trib an`
    Node,
}

impl Daemon {
    /// Both daemons.
    pub const ALL: [Daemon; 2] = [Daemon::Manager, Daemon::Node];

    /// Its subcommand.
    pub const fn word(self) -> &'static str {
        match self {
            Daemon::Manager => "am",
            Daemon::Node => "an",
        }
    }

    /// What it is called in a sentence.
    pub const fn title(self) -> &'static str {
        match self {
            Daemon::Manager => "aggregation manager",
            Daemon::Node => "aggregation node",
        }
    }

    /// Its table.
    pub const fn settings(self) -> &'static [Setting] {
        match self {
            Daemon::Manager => am::SETTINGS,
            Daemon::Node => an::SETTINGS,
        }
    }

    /// Its settings as a file with comments, ready to be edited.
    pub fn example_file(self) -> String {
        document::example_file(self)
    }
}

impl fmt::Display for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_table_names_nothing_twice_and_its_values_are_of_their_kind() {
        for daemon in Daemon::ALL {
            let mut names = BTreeSet::new();
            for setting in daemon.settings() {
                assert!(names.insert(setting.name) & names.insert(setting.variable), "{}", setting.name);
                assert_eq!(setting.option, setting.name.replace('_', "-"));
                setting.kind.parse(setting.example).unwrap();
                if let Default::Is(value) = setting.default {
                    setting.kind.parse(value).unwrap();
                }
                assert!(!setting.meaning.ends_with('.'), "{}", setting.meaning);
            }
        }
    }
}
