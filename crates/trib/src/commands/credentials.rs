//! `trib credentials`: the keys of a fabric, of its tenants and of single nodes.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use trib_control::Credentials;

use crate::failure::Failure;
use crate::stdout;

/// Make the keys and certificates of a new fabric, of its users, of a tenant, or of one node
///
/// Writes an authority and one certificate with its key for each role: manager, node, user.
/// DIR/users has what users need and nothing else; its path is printed. Programs name it in
/// TRIB_MANAGER, and users who may read it may start jobs: the owner alone, or with --group a
/// group.
///
/// The holder of a role's file may act in that role; give nodes the node's, and users DIR/users. A
/// tenant's programs have a user's certificate of their own, by which the manager counts them; its
/// folder is printed. A node can have a certificate that names it: nobody else registers under
/// that name then, and its holder under no other. The manager believes both from its next start on.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The folder, which must not hold credentials yet; with --tenant, --node or --users: the
    /// fabric's
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Add a tenant to the fabric whose credentials are there: DIR/tenants/NAME for its hosts, its
    /// authority in DIR/ca.pem
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Add a certificate for one node of the topology: DIR/nodes/NAME for its host, its authority
    /// in DIR/ca.pem
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tenant", "users", "group"])]
    node: Option<String>,
    /// Make DIR/users of a fabric that has none yet, or give the one that is there to a group
    #[arg(long, conflicts_with = "tenant")]
    users: bool,
    /// The group whose members may use the folder that is printed, by its name or number
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
}

impl Arguments {
    /// Makes the credentials that were asked for.
    pub fn run(self) -> Result<ExitCode, Failure> {
        // The group is looked up before anything is made, because a group that does not exist is a
        // typing error.
        let group = self.group.as_deref().map(number_of).transpose()?;
        let own = match (&self.tenant, &self.node) {
            (Some(name), _) => Credentials::add_tenant(&self.folder, name)?,
            (None, Some(name)) => Credentials::add_node(&self.folder, name)?,
            (None, None) => {
                if !self.users {
                    Credentials::create(&self.folder)?;
                }
                Credentials::make_users_folder(&self.folder)?
            }
        };
        if let Some(group) = group {
            Credentials::give_to_group(&own, group)?;
        }
        stdout::print(&format!("{}\n", own.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A group's number. `getent` knows all groups of the machine, those of a directory service too.
fn number_of(group: &str) -> Result<u32, Failure> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let asked = Command::new("getent").args(["group", "--", group]).output();
    let answer =
        asked.map_err(|error| Failure::Environment(format!("cannot ask getent for group {group}: {error}")))?;
    let line = String::from_utf8_lossy(&answer.stdout).into_owned();
    let number = line.trim_end().split(':').nth(2).and_then(|number| number.parse().ok());
    number.ok_or_else(|| Failure::Usage(format!("--group: there is no group {group} on this machine")))
}

const EXAMPLES: &str = "\
Examples:
  trib credentials /etc/tributary --group users       # prints /etc/tributary/users
  trib credentials /etc/tributary --users --group hpc # later, or for another group
  trib credentials /etc/tributary --tenant astro --group astro
  trib credentials /etc/tributary --node leaf0        # prints /etc/tributary/nodes/leaf0";
