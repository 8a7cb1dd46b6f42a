//! `trib credentials`: the keys of a fabric, of its nodes, users and tenants.
//!
//! Map: this file (what is made), `renew`, `withdraw`, `whose` (the options that name holders).

mod renew;
mod whose;
mod withdraw;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::{Args, Subcommand};
use trib_control::{Holder, KeyFolder};

use self::whose::nodes;
use crate::commands::units::some_seconds;
use crate::failure::Failure;
use crate::stdout;

/// Make the keys and certificates of a fabric: its manager's, its nodes', its users'
///
/// For a new fabric this writes an authority, and certificates with their keys for the manager and
/// for users. DIR/users has what users need and nothing else; its path is printed. Programs name it
/// in TRIB_MANAGER, and users who may read it may start jobs: the owner alone, or with --group a
/// group. Each node has a certificate that names it (--node), and registers under no other name. A
/// tenant's programs have a user's certificate of their own (--tenant), by which the manager counts
/// them. Their folders are printed; give each to its hosts, and nothing else.
///
/// DIR/authority-key.pem signs all of them. Who has it can become the manager: keep it where
/// the operator alone reads it, and off the machines of manager and nodes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// The folder, which must not hold credentials yet; with --node, --tenant or --users: the
    /// fabric's
    #[arg(value_name = "DIR", required = true)]
    folder: Option<PathBuf>,
    /// Add certificates for nodes of the topology: DIR/nodes/NAME for the host of each. A name, or
    /// a list like leaf[0-15],spine0; may be repeated
    #[arg(long, value_name = "NAMES", conflicts_with_all = ["tenant", "users", "group"])]
    node: Vec<String>,
    /// Add a tenant: DIR/tenants/NAME for its hosts
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Make DIR/users of a fabric that has none yet, or give the one that is there to a group
    #[arg(long, conflicts_with = "tenant")]
    users: bool,
    /// The group whose members may use the folder that is printed, by its name or number
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    #[command(flatten)]
    signing: Signing,
}

#[derive(Subcommand, Debug)]
enum Action {
    Renew(renew::Arguments),
    Withdraw(withdraw::Arguments),
}

/// How certificates are signed.
#[derive(Args, Debug)]
struct Signing {
    /// How long certificates are valid, days
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u64).range(1..=3650))]
    days: u64,
    /// The same in seconds, for tests of what happens afterwards
    #[arg(long, hide = true, conflicts_with = "days", value_name = "SECONDS", value_parser = some_seconds)]
    seconds: Option<Duration>,
    /// The file of the authority's key, if it is not DIR/authority-key.pem
    #[arg(long, value_name = "FILE")]
    authority_key: Option<PathBuf>,
}

impl Signing {
    fn validity(&self) -> Duration {
        self.seconds.unwrap_or(Duration::from_secs(self.days * trib_control::clock::DAY))
    }

    fn keys(&self, folder: PathBuf) -> KeyFolder {
        match &self.authority_key {
            Some(file) => KeyFolder::at(folder).with_authority_key(file),
            None => KeyFolder::at(folder),
        }
    }
}

impl Arguments {
    /// Makes the credentials that were asked for.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self.action {
            Some(Action::Renew(arguments)) => return arguments.run(),
            Some(Action::Withdraw(arguments)) => return arguments.run(),
            None => {}
        }
        // The group is looked up before anything is made, because a group that does not exist is a
        // typing error.
        let group = self.group.as_deref().map(number_of).transpose()?;
        let (folder, validity) = (self.folder.expect("clap demands it"), self.signing.validity());
        let keys = self.signing.keys(folder);
        let made = match (&self.tenant, nodes(&self.node)?) {
            (Some(name), _) => vec![keys.add(&Holder::tenant(name)?, validity)?],
            (None, nodes) if !nodes.is_empty() => keys.add_all(&nodes, validity)?,
            (None, _) => {
                if !self.users {
                    keys.create(validity)?;
                }
                vec![keys.make_users_folder()?]
            }
        };
        for folder in made {
            if let Some(group) = group {
                KeyFolder::give_to_group(&folder, group)?;
            }
            stdout::print(&format!("{}\n", folder.display()))?;
        }
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
  trib credentials /etc/tributary --node 'leaf[0-15],spine0'     # /etc/tributary/nodes/leaf0 and so on
  trib credentials /etc/tributary --users --group hpc # later, or for another group
  trib credentials /etc/tributary --tenant astro --group astro
  trib credentials renew /etc/tributary               # what ends within 60 days
  trib credentials withdraw /etc/tributary --node leaf3";
