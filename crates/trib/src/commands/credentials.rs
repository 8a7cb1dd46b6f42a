//! `trib credentials`: the keys of a fabric and of its tenants.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use trib_control::Credentials;

use crate::failure::Failure;
use crate::stdout;

/// Make the keys and certificates of a new fabric, or of a tenant
///
/// Writes an authority and one certificate with its key for each role: manager, node, user.
///
/// Who holds the file of a role may act in it; give hosts the user's, nodes the node's. A tenant's programs have a user's
/// certificate of their own, by which the manager counts them; its folder is printed. The manager believes it from its next
/// start on.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The folder, which must not hold credentials yet; with --tenant: the fabric's
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Add a tenant to the fabric whose credentials are there: DIR/tenants/NAME for its hosts, its authority in DIR/ca.pem
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

impl Arguments {
    /// Makes them.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match &self.tenant {
            None => Credentials::create(&self.folder)?,
            Some(name) => {
                let own = Credentials::add_tenant(&self.folder, name)?;
                stdout::print(&format!("{}\n", own.display()))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

const EXAMPLES: &str = "\
Examples:
  trib credentials /etc/tributary
  trib credentials /etc/tributary --tenant astro";
