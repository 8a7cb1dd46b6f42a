//! `trib lab`: hosts and a switch as network namespaces, with a fabric in the switch.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use clap::{Args, Subcommand};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::info;
use trib_lab::fabric::{Fabric, FabricName, Launch, Shape, default_base};
use trib_lab::namespace::{Lab, LabError, Star};
use trib_lab::process::ProcessId;
use trib_lab::supervise::Supervised;

use crate::failure::Failure;
use crate::log;
use crate::table::Table;

/// Hosts around a switch as network namespaces, for tests that need real links
///
/// Takes root, `ip` and `nft`. A laboratory lasts as long as the command that `trib lab star` runs, and what a killed one
/// left behind is removed by the next.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Star(StarArguments),
    Exec(Exec),
    Drop(Drop),
    Allow(Allow),
    Counters(Counters),
}

/// Build hosts and a switch, run a command beside them, and remove them
///
/// The command finds TRIB_LAB, which the other subcommands need, and with --leaves TRIB_MANAGER: manager and nodes then
/// run in the switch, and hosts reach them there. The exit code is the command's.
#[derive(Args, Debug)]
#[command(after_help = STAR_EXAMPLES)]
struct StarArguments {
    /// How many hosts: 1 to 1000, links of mtu 1500
    #[arg(long, value_name = "N")]
    hosts: u16,
    /// Start a fabric with this many leaf nodes in the switch
    #[arg(long, value_name = "N")]
    leaves: Option<u16>,
    /// Worker threads of each node
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: u16,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Run a command on one of the hosts, or in the switch
#[derive(Args, Debug)]
#[command(after_help = EXEC_EXAMPLES)]
struct Exec {
    #[command(flatten)]
    which: Which,
    /// Number of the host, from 0, or `switch`
    #[arg(value_name = "HOST")]
    place: String,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Drop everything that goes from host to host; hosts and nodes still reach each other
#[derive(Args, Debug)]
#[command(after_help = DROP_EXAMPLES)]
struct Drop {
    #[command(flatten)]
    which: Which,
}

/// Let hosts reach each other again
#[derive(Args, Debug)]
#[command(after_help = DROP_EXAMPLES)]
struct Allow {
    #[command(flatten)]
    which: Which,
}

/// Show what each host's link has carried
#[derive(Args, Debug)]
#[command(after_help = COUNTERS_EXAMPLES)]
struct Counters {
    #[command(flatten)]
    which: Which,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct Which {
    /// Which laboratory
    #[arg(long, value_name = "ID", env = "TRIB_LAB")]
    lab: String,
}

impl Arguments {
    /// Does it.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_tool();
        match self.action {
            Action::Star(star) => star.run(),
            Action::Exec(exec) => exec.run(),
            Action::Drop(Drop { which }) => which.attach()?.drop_between_hosts().map_err(failure).map(success),
            Action::Allow(Allow { which }) => which.attach()?.allow_between_hosts().map_err(failure).map(success),
            Action::Counters(counters) => counters.run(),
        }
    }
}

impl Which {
    fn attach(&self) -> Result<Lab, Failure> {
        Lab::attach(&self.lab).map_err(failure)
    }
}

impl StarArguments {
    fn run(self) -> Result<ExitCode, Failure> {
        Lab::available().map_err(failure)?;
        clear_orphans()?;
        // From here on a signal must not end us before the laboratory is removed.
        let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(Failure::environment)?;
        let lab = Star { hosts: self.hosts }.build().map_err(failure)?;
        let fabric = self.leaves.map(|leaves| LabFabric::up(&lab, leaves, self.workers)).transpose()?;
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).env("TRIB_LAB", lab.id());
        if let Some(fabric) = &fabric {
            command.env("TRIB_MANAGER", &fabric.manager);
        }
        let status = wait_for(&mut command, signals).map_err(|error| cannot_run(&self.command[0], &error))?;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
    }
}

/// Runs the command and passes signals on to it, but for SIGINT: a terminal sends that to both of us.
fn wait_for(command: &mut Command, mut signals: Signals) -> std::io::Result<ExitStatus> {
    let mut child = Supervised::start(command)?;
    loop {
        // A signal ends the wait early.
        if let Some(status) = child.wait(Duration::from_secs(1))? {
            return Ok(status);
        }
        for signal in signals.pending().filter(|&signal| signal != SIGINT) {
            if let Some(signal) = Signal::from_named_raw(signal) {
                child.signal(signal)?;
            }
        }
    }
}

/// Removes what killed laboratories left: their namespaces with all that runs in them, then their fabrics' folders.
fn clear_orphans() -> Result<(), Failure> {
    let swept = Lab::sweep().map_err(failure)?;
    if swept > 0 {
        info!("removed {swept} namespaces that killed laboratories left");
    }
    let base = default_base();
    for entry in std::fs::read_dir(&base).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(FABRIC_PREFIX).and_then(|pid| pid.parse().ok());
        if owner.is_some_and(|pid| ProcessId::running(pid).is_none()) {
            let name = FabricName::new(&name).map_err(Failure::operation)?;
            Fabric::down(&base, &name).map_err(Failure::operation)?;
        }
    }
    Ok(())
}

impl Exec {
    /// Becomes the command, so that signals and the exit code are its own.
    fn run(self) -> Result<ExitCode, Failure> {
        let lab = self.which.attach()?;
        let namespace = match self.place.parse::<u16>() {
            _ if self.place == "switch" => lab.switch(),
            Ok(host) if host < lab.hosts() => lab.host(host),
            _ => return Err(Failure::Usage(format!("no host {:?}: 0 to {}, or switch", self.place, lab.hosts() - 1))),
        };
        let error = namespace.command(&self.command[0]).args(&self.command[1..]).exec();
        Err(cannot_run(&self.command[0], &error))
    }
}

impl Counters {
    fn run(self) -> Result<ExitCode, Failure> {
        let lab = self.which.attach()?;
        let counters =
            (0..lab.hosts()).map(|host| lab.counters(host)).collect::<Result<Vec<_>, _>>().map_err(failure)?;
        let dropped = lab.dropped_between_hosts().map_err(failure)?;
        let text = if self.json {
            let report = serde_json::json!({ "hosts": counters, "dropped_between_hosts": dropped });
            format!("{report:#}\n")
        } else {
            let mut table = Table::new(["HOST", "RX BYTES", "RX PACKETS", "TX BYTES", "TX PACKETS"]);
            for (host, counters) in counters.iter().enumerate() {
                let numbers = [counters.rx_bytes, counters.rx_packets, counters.tx_bytes, counters.tx_packets];
                table.row(std::iter::once(host.to_string()).chain(numbers.map(|number| number.to_string())));
            }
            let mut text = table.to_string();
            writeln!(text, "dropped between hosts: {dropped} packets").expect("writing to memory cannot fail");
            text
        };
        std::io::stdout().write_all(text.as_bytes()).map_err(Failure::environment)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The laboratory's own fabric, taken down with it.
struct LabFabric {
    base: PathBuf,
    name: FabricName,
    manager: String,
}

impl LabFabric {
    fn up(lab: &Lab, leaves: u16, workers: u16) -> Result<Self, Failure> {
        let name = FabricName::new(&format!("{FABRIC_PREFIX}{}", std::process::id())).map_err(Failure::operation)?;
        // Exists before the daemons do, so that those of a fabric that comes up only in part are ended too.
        let mut fabric = Self { base: default_base(), name, manager: String::new() };
        let shape = Shape { leaves, workers, mtu: LINK_MTU, listen: IpAddr::V4(lab.nodes_address()) };
        let launch = Launch {
            base: &fabric.base,
            name: &fabric.name,
            shape: &shape,
            program: &super::own_program()?,
            namespace: Some(lab.switch()),
            limit: START_LIMIT,
        };
        let up = Fabric::up(&launch).map_err(Failure::operation)?;
        fabric.manager = up.manager().to_owned();
        Ok(fabric)
    }
}

impl std::ops::Drop for LabFabric {
    fn drop(&mut self) {
        if let Err(error) = Fabric::down(&self.base, &self.name) {
            tracing::warn!("{error}");
        }
    }
}

fn cannot_run(program: &OsString, error: &std::io::Error) -> Failure {
    Failure::Environment(format!("cannot run `{}`: {error}", program.display()))
}

fn failure(error: LabError) -> Failure {
    match error {
        LabError::Hosts(_) => Failure::Usage(error.to_string()),
        LabError::Unavailable(_) | LabError::Unknown(_) => Failure::environment(error),
        _ => Failure::operation(error),
    }
}

fn success(_: ()) -> ExitCode {
    ExitCode::SUCCESS
}

/// The mtu of the laboratory's links.
const LINK_MTU: u16 = 1500;
/// Names of the laboratories' fabrics: this, and the process id of `trib lab star`.
const FABRIC_PREFIX: &str = "lab-";
const START_LIMIT: Duration = Duration::from_secs(20);
const STAR_EXAMPLES: &str = "\
Examples:
  trib lab star --hosts 4 --leaves 2 -- trib lab exec 0 -- trib status
  trib lab star --hosts 4 --leaves 2 -- trib run -n 4 -- sh -c 'exec trib lab exec $TRIB_RANK -- ./program'";
const EXEC_EXAMPLES: &str = "\
Examples (inside `trib lab star`):
  trib lab exec 0 -- ip address
  trib lab exec switch -- nft list ruleset";
const DROP_EXAMPLES: &str = "\
Examples (inside `trib lab star`):
  trib lab drop
  trib lab allow";
const COUNTERS_EXAMPLES: &str = "\
Examples (inside `trib lab star`):
  trib lab counters --json";
