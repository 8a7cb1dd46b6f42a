//! `trib credentials`: the keys of a new fabric.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use trib_control::Credentials;

use crate::failure::Failure;

/// Make the keys and certificates of a new fabric
///
/// Writes an authority and one certificate with its key for each role: manager, node, user.
///
/// Who holds the file of a role may act in it; give hosts the user's, nodes the node's.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The folder, which must not hold credentials yet
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Arguments {
    /// Makes them.
    pub fn run(self) -> Result<ExitCode, Failure> {
        Credentials::create(&self.folder)?;
        Ok(ExitCode::SUCCESS)
    }
}

const EXAMPLES: &str = "\
Examples:
  trib credentials /etc/tributary";
