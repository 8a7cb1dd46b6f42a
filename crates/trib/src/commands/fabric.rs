//! `trib fabric`: a whole fabric on this machine, for trying things out.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use tracing::info;
use trib_lab::{Lab, LabError, LabLaunch, LabName, Lifetime, Local, Topology, default_base};

use super::lab::failure;
use super::shell::quoted;
use super::units::some_seconds;
use crate::failure::Failure;
use crate::log;
use crate::stdout;

/// Start or stop a whole fabric on this machine
///
/// It consists of a manager, a root node and leaf nodes below it, each its own process.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Up(Up),
    Down(Down),
}

#[derive(Args, Debug)]
struct Which {
    /// On loopback, for programs of this machine: the only kind there is, and so what is meant
    /// without it
    #[arg(long)]
    local: bool,
    /// Which fabric, when there are several
    #[arg(long, default_value = "local", value_name = "NAME")]
    name: String,
}

/// Start the fabric, or find the one that runs, and print what a shell needs to use it
///
/// Prints nothing on stdout but lines for a shell to eval. Processes of it that have ended are
/// started again at their addresses, with the same keys, so that jobs go on and TRIB_MANAGER stays
/// right; nothing that runs is ended.
#[derive(Args, Debug)]
#[command(after_help = UP_EXAMPLES)]
struct Up {
    #[command(flatten)]
    which: Which,
    /// Leaf nodes below the root: 1 to 64 [default: 2, or as it runs]
    #[arg(long, value_name = "N")]
    leaves: Option<u16>,
    /// Worker threads of each node: 1 to 64 [default: 1, or as it runs]
    #[arg(long, value_name = "N")]
    workers: Option<u16>,
    /// Further nodes that may host each node of a job's tree, so that a job goes on when one dies:
    /// 0 to 11 [default: 0, or as it runs]
    #[arg(long, value_name = "N")]
    backups: Option<u16>,
    /// Let ranks share a node of the tree in one of their processes, as they do wherever several
    /// run on one host; else each counts as on a host of its own [default: no, or as it runs]
    #[arg(long)]
    shared_host: bool,
    /// How long it may take until all is ready, seconds
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = some_seconds)]
    timeout: Duration,
}

/// Stop the fabric and remove everything it left
///
/// Stopping a fabric that does not run is no error.
#[derive(Args, Debug)]
#[command(after_help = DOWN_EXAMPLES)]
struct Down {
    #[command(flatten)]
    which: Which,
}

impl Arguments {
    /// Starts or stops the fabric.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_tool();
        match self.action {
            Action::Up(up) => up.run(),
            Action::Down(down) => down.run(),
        }
    }
}

impl Which {
    fn name(&self) -> Result<LabName, Failure> {
        LabName::new(&self.name).map_err(failure)
    }
}

impl Up {
    fn run(self) -> Result<ExitCode, Failure> {
        let name = self.which.name()?;
        let base = default_base();
        // What the command line leaves open is taken from the fabric that runs, so that a bare `up`
        // always finds it.
        let running = match Lab::find(&base, &name) {
            // Whether something of it runs is for `up` to say.
            Err(LabError::Record(_)) => None,
            found => found.map_err(failure)?.map(|lab| lab.topology().clone()),
        };
        let usual = match running {
            Some(Topology::Local(local)) => local,
            _ => Local { leaves: 2, workers: 1, backups: 0, shared_host: false },
        };
        let local = Local {
            leaves: self.leaves.unwrap_or(usual.leaves),
            workers: self.workers.unwrap_or(usual.workers),
            backups: self.backups.unwrap_or(usual.backups),
            shared_host: self.shared_host || usual.shared_host,
        };
        let launch = LabLaunch {
            base: &base,
            name: &name,
            topology: &Topology::Local(local),
            program: &super::own_program()?,
            limit: self.timeout,
            lifetime: Lifetime::Detached,
        };
        let lab = Lab::up(&launch).map_err(failure)?;
        info!("fabric {:?} is up: {}", name.as_str(), lab.daemon_names().collect::<Vec<_>>().join(", "));
        let line = format!("export TRIB_MANAGER={}\n", quoted(lab.manager()));
        stdout::print(&line)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Down {
    fn run(self) -> Result<ExitCode, Failure> {
        let name = self.which.name()?;
        let something = Lab::down(&default_base(), &name).map_err(failure)?;
        let word = if something { "is down" } else { "was not up" };
        info!("fabric {:?} {word}", name.as_str());
        Ok(ExitCode::SUCCESS)
    }
}

const UP_EXAMPLES: &str = "\
Examples:
  eval \"$(trib fabric up --local)\"
  trib fabric up                           # the same: there is no other kind yet
  eval \"$(trib fabric up --local --leaves 4 --workers 2 --name wide)\"
  eval \"$(trib fabric up --local --backups 1)\"   # each node of a tree has a second process that may host it
  eval \"$(trib fabric up --local --shared-host)\"   # one node in a rank's process for all ranks";
const DOWN_EXAMPLES: &str = "\
Examples:
  trib fabric down --local
  trib fabric down --local --name wide";
