//! `trib lab fault`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use trib_lab::fault::{Blow, DaemonState, Fault};
use trib_lab::{Direction, Lab};

use super::counters::with_count;
use super::{Which, failure};
use crate::commands::units::some_seconds;
use crate::failure::Failure;
use crate::stdout;

/// Break a link or a process on purpose, and mend it
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Loss(Packets),
    /// Invert a byte of a link's datagrams at random, in a way that checksums below ours do not see
    ///
    /// The byte is the 41st of UDP's header and payload; shorter packets stay whole, and so do
    /// streams, whose damage TCP turns into loss on a real link.
    #[command(after_help = EXAMPLES)]
    Corrupt(Packets),
    Cut(Cut),
    Mend(Mend),
    Stop(Stop),
    Continue(Continue),
    Kill(Kill),
    Start(Start),
    IsolateHosts(IsolateHosts),
    List(List),
    Clear(Clear),
}

/// Drop packets of a link at random, behind the link's queue
///
/// What crosses the link in one piece is dropped as one: a datagram, or up to 64 KiB of a stream.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Packets {
    #[command(flatten)]
    which: Which,
    /// The link: h3 for a host's, leaf1 for the trunk above that leaf
    #[arg(long, value_name = "LINK")]
    link: String,
    /// One direction only: up is towards the spine
    #[arg(long, value_name = "WAY")]
    direction: Option<Way>,
    /// How many, of all packets that cross in one piece
    #[arg(long, value_name = "PERCENT")]
    percent: f64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    Up,
    Down,
}

/// Take a link down; both ends see it
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Cut {
    #[command(flatten)]
    at: At,
}

/// Take a link up again that was cut
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Mend {
    #[command(flatten)]
    at: At,
}

#[derive(Args, Debug)]
struct At {
    #[command(flatten)]
    which: Which,
    /// The link: h3 for a host's, leaf1 for the trunk above that leaf
    #[arg(long, value_name = "LINK")]
    link: String,
}

/// Freeze a daemon, as a machine would freeze
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Stop {
    #[command(flatten)]
    at: Daemon,
}

/// Let a frozen daemon go on
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Continue {
    #[command(flatten)]
    at: Daemon,
}

/// End a daemon without a warning
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Kill {
    #[command(flatten)]
    at: Daemon,
}

/// Start a daemon that has ended where it ran before
///
/// It has the address, the keys and the topology that it had; a manager knows the jobs that ran
/// when it ended. Returns when it is ready.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Start {
    #[command(flatten)]
    at: Daemon,
    /// How long it may take until it is ready, seconds
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = some_seconds)]
    timeout: Duration,
}

#[derive(Args, Debug)]
struct Daemon {
    #[command(flatten)]
    which: Which,
    /// The daemon: manager, spine, leaf0, ...
    #[arg(long, value_name = "NAME")]
    process: String,
}

/// Drop everything that goes from host to host; hosts and switches still reach each other
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct IsolateHosts {
    #[command(flatten)]
    which: Which,
}

/// List the faults in force, with what they have hit
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct List {
    #[command(flatten)]
    which: Which,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Take all faults back and let frozen daemons go on; a daemon that was killed takes a `start`
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Clear {
    #[command(flatten)]
    which: Which,
}

impl Arguments {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        match self.action {
            Action::Loss(packets) => {
                packets.inject(|link, direction, percent| Fault::Loss { link, direction, percent })
            }
            Action::Corrupt(packets) => {
                packets.inject(|link, direction, percent| Fault::Corrupt { link, direction, percent })
            }
            Action::Cut(Cut { at: At { which, link } }) => {
                which.attach()?.inject(&Fault::Cut { link }).map_err(failure)
            }
            Action::Mend(Mend { at: At { which, link } }) => which.attach()?.mend(&link).map_err(failure),
            Action::Stop(Stop { at }) => at.strike(Blow::Stop),
            Action::Continue(Continue { at }) => at.strike(Blow::Continue),
            Action::Kill(Kill { at }) => at.strike(Blow::Kill),
            Action::Start(Start { at, timeout }) => at.which.attach()?.start(&at.process, timeout).map_err(failure),
            Action::IsolateHosts(IsolateHosts { which }) => {
                which.attach()?.inject(&Fault::IsolateHosts).map_err(failure)
            }
            Action::List(List { which, json }) => list(&which.attach()?, json),
            Action::Clear(Clear { which }) => which.attach()?.clear_faults().map_err(failure),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Packets {
    fn inject(self, fault: impl Fn(String, Direction, f64) -> Fault) -> Result<(), Failure> {
        let lab = self.which.attach()?;
        let directions = match self.direction {
            None => Direction::ALL.to_vec(),
            Some(Way::Up) => vec![Direction::Up],
            Some(Way::Down) => vec![Direction::Down],
        };
        for direction in directions {
            lab.inject(&fault(self.link.clone(), direction, self.percent)).map_err(failure)?;
        }
        Ok(())
    }
}

impl Daemon {
    fn strike(self, blow: Blow) -> Result<(), Failure> {
        self.which.attach()?.strike(&self.process, blow).map_err(failure)
    }
}

fn list(lab: &Lab, as_json: bool) -> Result<(), Failure> {
    let mut faults = Vec::new();
    for fault in lab.faults().map_err(failure)? {
        let affected = lab.affected(&fault).map_err(failure)?;
        faults.push((fault, affected));
    }
    let states = lab.daemon_states().map_err(failure)?.into_iter();
    let daemons: Vec<_> = states.filter(|(_, state)| *state != DaemonState::Running).collect();
    let text = if as_json {
        let faults: Vec<_> = faults.iter().map(|(fault, affected)| with_count(fault, *affected)).collect();
        let daemons: Vec<_> =
            daemons.iter().map(|(name, state)| serde_json::json!({ "name": name, "state": state })).collect();
        format!("{:#}\n", serde_json::json!({ "faults": faults, "daemons": daemons }))
    } else {
        let faults = faults.iter().map(|(fault, affected)| match affected {
            Some(packets) => format!("{fault}: {packets} packets so far\n"),
            None => format!("{fault}\n"),
        });
        let daemons = daemons.iter().map(|(name, state)| format!("{name}: {}\n", format!("{state:?}").to_lowercase()));
        faults.chain(daemons).collect()
    };
    stdout::print(&text)
}

const EXAMPLES: &str = "\
Examples:
  trib lab fault loss --link h3 --direction up --percent 1
  trib lab fault corrupt --link leaf1 --percent 0.1
  trib lab fault cut --link h3; sleep 5; trib lab fault mend --link h3
  trib lab fault stop --process leaf0
  trib lab fault kill --process leaf1; sleep 5; trib lab fault start --process leaf1
  trib lab fault list; trib lab fault clear";
