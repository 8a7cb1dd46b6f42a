//! The subcommands, one file each.
//!
//! A new one is a file with `Arguments` and `Arguments::run`, and a line in each of the two lists below.

mod am;
mod credentials;
mod fabric;
mod manager_option;
mod run;
mod status;

use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Failure;

/// What `trib` can do; each says so in its own file.
#[derive(Subcommand, Debug)]
pub enum Command {
    Am(am::Arguments),
    Credentials(credentials::Arguments),
    Fabric(fabric::Arguments),
    Run(run::Arguments),
    Status(status::Arguments),
}

impl Command {
    /// Does it.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Am(arguments) => arguments.run(),
            Self::Credentials(arguments) => arguments.run(),
            Self::Fabric(arguments) => arguments.run(),
            Self::Run(arguments) => arguments.run(),
            Self::Status(arguments) => arguments.run(),
        }
    }
}
