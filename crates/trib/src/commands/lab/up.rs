//! `trib lab up`.

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Args;
use tracing::info;
use trib_lab::run::{End, supervise};
use trib_lab::{BitRate, FatTree, Lab, LabLaunch, LabName, Lifetime, Topology, default_base};
use trib_topology::BACKUPS_MAX;

use super::{code_of, failure};
use crate::commands::units::some_seconds;
use crate::commands::{own_program, shell};
use crate::failure::Failure;
use crate::stdout;

/// Build a fat tree of hosts and switches, start manager and nodes in it
///
/// Every switch has an aggregation node, the spine the manager too. With a COMMAND, runs it beside
/// the laboratory, takes the laboratory down and exits as the command did. Without one, the
/// laboratory stays, and stdout has lines for a shell to eval; repeated, it finds the one that
/// runs.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Hosts, h0 and on: 1 to 128
    #[arg(long, value_name = "N", default_value_t = 8)]
    hosts: u16,
    /// Hosts below one leaf switch
    #[arg(long, value_name = "N", default_value_t = 4)]
    leaf_ports: u16,
    /// Rate of a host's link each way, as 500mbit or 1gbit
    #[arg(long, value_name = "RATE", default_value = "500mbit")]
    rate: BitRate,
    /// Rate of the trunk above a leaf, in host links: 1 with four ports blocks 4:1 [default: as
    /// many as ports]
    #[arg(long, value_name = "N")]
    uplink: Option<u16>,
    /// 2, or 3 with pods between leaves and spine
    #[arg(long, value_name = "N", default_value_t = 2)]
    levels: u8,
    /// Leaves below one pod, with three levels
    #[arg(long, value_name = "N", default_value_t = 2)]
    pod_ports: u16,
    /// Rails of a host, each to switches of its own: 1 to 4. A job gets lanes over them with
    /// TRIB_QUOTA=lanes=N
    #[arg(long, value_name = "N", default_value_t = 1)]
    rails: u8,
    /// Links of a host to its leaf, on each rail: 1 to 4, with all rails together. The lanes of a
    /// tree go by them in turn
    #[arg(long, value_name = "N", default_value_t = 1)]
    ports: u8,
    /// Largest IP packet on the links, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 9000)]
    mtu: u16,
    /// Worker threads of each aggregation node
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: u16,
    /// Keep each host and each switch on one core of this machine, as on machines of their own
    #[arg(long)]
    pin: bool,
    /// Let all links go by UCX, over TCP alone (UCX_TLS=tcp,self) unless the environment says more
    #[arg(long)]
    ucx: bool,
    /// Further nodes that may host each node of a job's tree, so that a job goes on when one dies:
    /// 0 to 11; short for --limit backups=N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=BACKUPS_MAX as u64))]
    backups: Option<u64>,
    /// A limit of the topology file, default and maximum at once: groups=8, recovery=strict; may be
    /// repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = limit)]
    limit: Vec<(String, String)>,
    /// Name of the laboratory, when there are several
    #[arg(long, value_name = "NAME", default_value = super::DEFAULT_NAME)]
    name: String,
    /// How long it may take until all is ready, seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = some_seconds)]
    timeout: Duration,
    /// The command and its arguments; it finds TRIB_LAB and TRIB_MANAGER
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Arguments {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let name = LabName::new(&self.name).map_err(failure)?;
        let backups = self.backups.map(|backups| ("backups".to_owned(), backups.to_string()));
        let limits = self.limit.into_iter().chain(backups).collect();
        let topology = Topology::FatTree(FatTree {
            hosts: self.hosts,
            leaf_ports: self.leaf_ports,
            rate: self.rate,
            uplink: self.uplink.unwrap_or(self.leaf_ports),
            levels: self.levels,
            pod_ports: self.pod_ports,
            rails: self.rails,
            ports: self.ports,
            mtu: self.mtu,
            workers: self.workers,
            pinned: self.pin,
            ucx: self.ucx,
            limits,
        });
        let lifetime = if self.command.is_empty() { Lifetime::Detached } else { Lifetime::Owned };
        let (base, program) = (default_base(), own_program()?);
        let launch = LabLaunch {
            base: &base,
            name: &name,
            topology: &topology,
            program: &program,
            limit: self.timeout,
            lifetime,
        };
        let lab = Lab::up(&launch).map_err(failure)?;
        info!("laboratory {:?} is up: {topology}", name.as_str());
        match self.command.split_first() {
            None => print(&lab),
            Some((program, arguments)) => beside(&lab, program, arguments),
        }
    }
}

/// Prints what a shell needs to use the laboratory.
fn print(lab: &Lab) -> Result<ExitCode, Failure> {
    let (name, manager) = (shell::quoted(lab.name().as_str()), shell::quoted(lab.manager()));
    let lines = format!("export TRIB_LAB={name}\nexport TRIB_MANAGER={manager}\n");
    stdout::print(&lines)?;
    Ok(ExitCode::SUCCESS)
}

fn beside(lab: &Lab, program: &OsString, arguments: &[OsString]) -> Result<ExitCode, Failure> {
    let mut command = Command::new(program);
    command.args(arguments).env("TRIB_LAB", lab.name().as_str()).env("TRIB_MANAGER", lab.manager());
    match supervise(&mut command, None) {
        Ok(End::Own(status)) => Ok(code_of(status)),
        Ok(End::TimedOut) => unreachable!("there is no limit"),
        Err(error) => Err(Failure::Environment(format!("cannot run `{}`: {error}", program.display()))),
    }
}

fn limit(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a limit is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

const EXAMPLES: &str = "\
Examples:
  eval \"$(trib lab up --hosts 8 --leaf-ports 4 --rate 500mbit)\"
  trib lab up --hosts 16 --rate 200mbit --uplink 1 --name blocking
  trib lab up --hosts 4 --leaf-ports 2 --rails 2 --name rails
  trib lab up --hosts 4 --leaf-ports 2 --ports 2 --name ports
  trib lab up --hosts 8 --backups 1 --name rounds   # each node of a tree has a second process that may host it
  trib lab up --hosts 4 --leaf-ports 2 -- trib lab exec h0 -- trib status";
