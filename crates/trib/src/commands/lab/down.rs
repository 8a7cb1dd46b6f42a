//! `trib lab down`.

use std::process::ExitCode;

use clap::Args;
use tracing::info;
use trib_lab::{Lab, LabName, default_base};

use super::{Which, failure};
use crate::failure::Failure;

/// Take a laboratory down, with everything that runs in it
///
/// Taking down one that does not run is no error.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
}

impl Arguments {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let name = LabName::new(&self.which.name).map_err(failure)?;
        let something = Lab::down(&default_base(), &name).map_err(failure)?;
        let word = if something { "is down" } else { "was not up" };
        info!("laboratory {:?} {word}", name.as_str());
        Ok(ExitCode::SUCCESS)
    }
}

const EXAMPLES: &str = "\
Examples:
  trib lab down
  trib lab down --name blocking";
