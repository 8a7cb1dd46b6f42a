//! `trib lab keep`: the process that holds a laboratory's namespaces. `trib lab up` starts it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;

/// Hold the namespaces of a laboratory; started by `trib lab up` and by nobody else
#[derive(Args, Debug)]
#[command(hide = true, after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The laboratory's state folder
    folder: PathBuf,
    /// A file or folder that all places see, even if it is below /tmp
    #[arg(long, value_name = "PATH")]
    share: Vec<PathBuf>,
}

impl Arguments {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        trib_lab::namespace::keeper::run(&self.folder, &self.share).map_err(Failure::Environment)?;
        Ok(ExitCode::SUCCESS)
    }
}

const EXAMPLES: &str = "\
Examples:
  trib lab up          # starts it";
