//! `trib bench compare`: Tributary and its peers, measured on laboratory fabrics.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use trib_compare::lab::LabNetwork;
use trib_compare::network::Network;
use trib_compare::report::{self, Comparison};
use trib_compare::study::Shape;
use trib_compare::system::{Programs, System};
use trib_compare::testbed::Limits;
use trib_compare::{Wishes, compare, scenario};
use trib_lab::BitRate;

use super::kernels;
use crate::failure::{Failure, tell};

/// Measure Tributary and its peers on laboratory fabrics
///
/// Builds one fabric after the other from network namespaces and runs scenarios on them, systems in
/// turn, round by round: the native interface, Open MPI as installed, tuned, under the interposer
/// and with each of its allreduce algorithms, MPICH, Gloo, and ping-pong. A peer that hangs, fails
/// or is not installed becomes a row that says so. Progress goes to stderr.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Fewer sizes and rounds, in some ten minutes on two cores
    #[arg(long)]
    quick: bool,
    /// Only these scenarios; --list shows them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Only these systems, by the names in the rows
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    systems: Vec<String>,
    /// These vector sizes instead of each scenario's own, bytes; K and M are 2^10 and 2^20
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = trib_compare::cell::bytes)]
    sizes: Vec<u64>,
    /// This many rounds instead of each scenario's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Time for the timed operations of a cell instead of each scenario's own, seconds
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds)]
    budget: Option<Duration>,
    /// One more system in every scenario: a program, started on every host as torch.distributed
    /// starts one (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), which reads the arguments and
    /// prints the lines of `trib bench worker`
    #[arg(long = "peer", value_name = "NAME=COMMAND", value_parser = System::other)]
    peers: Vec<System>,
    /// Hosts of the fabric, instead of each scenario's own fabric
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=128))]
    hosts: Option<u16>,
    /// With --hosts: hosts on one leaf
    #[arg(long, value_name = "N", default_value_t = 4, requires = "hosts")]
    leaf_ports: u16,
    /// With --hosts: rate of a host's link, as 500mbit or 1gbit
    #[arg(long, value_name = "RATE", default_value = "500mbit", requires = "hosts")]
    rate: BitRate,
    /// With --hosts: rate of a leaf's trunk, in host links [default: as many as it has hosts]
    #[arg(long, value_name = "N", requires = "hosts")]
    uplink: Option<u16>,
    /// With --hosts: each host and switch keeps to one core of this machine
    #[arg(long, requires = "hosts")]
    pin: bool,
    /// Ranks on each host instead of each scenario's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=192))]
    ranks_per_host: Option<u16>,
    /// Longest time from the start of a system to its first result, seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = super::seconds)]
    start_limit: Duration,
    /// Longest time from one result to the next, seconds
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = super::seconds)]
    cell_limit: Duration,
    /// Time to wait until other tenants of this machine leave its cores alone, and to measure again
    /// what they disturbed, seconds in all and for every scenario its share [default: 0 with
    /// --quick, else 1200]
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds)]
    patience: Option<Duration>,
    /// One JSON object with `fabric`, `results` and `targets` instead of the table of targets
    #[arg(long)]
    json: bool,
    /// Write performance.md into this folder, and CSV and plots into a folder `performance` there
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "docs")]
    write_docs: Option<PathBuf>,
    /// Build the peers' programs where they are missing, print their folder, and measure nothing
    #[arg(long)]
    peers_only: bool,
    /// Name the scenarios and do nothing
    #[arg(long)]
    list: bool,
}

impl Arguments {
    /// Measures, and writes what came out.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        if self.list {
            scenario::names().iter().try_for_each(|name| say!("{name}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let start = Instant::now();
        let program = crate::commands::own_program()?;
        let programs = Programs::beside(&program);
        let built = programs.build_peers();
        if self.peers_only {
            built.map_err(Failure::Environment)?;
            say!("{}", programs.peers.display())?;
            return Ok(ExitCode::SUCCESS);
        }
        // The systems that need no peers can still be measured.
        built.unwrap_or_else(tell);
        let patience = self.patience.unwrap_or(if self.quick { Duration::ZERO } else { PATIENCE });
        let limits = Limits { start: self.start_limit, cell: self.cell_limit, patience };
        let mut up = |shape| {
            let network = LabNetwork::up(shape, &program).map_err(|error| error.to_string())?;
            Ok(Box::new(network) as Box<dyn Network>)
        };
        let mut progress = |text: &str| {
            // The reader of stderr may have gone; the figures are still wanted.
            let _ = writeln!(io::stderr(), "compare: {:>4} s  {text}", start.elapsed().as_secs());
        };
        let wishes = self.wishes()?;
        scenario::wanted(&wishes).map_err(Failure::Usage)?;
        let mut comparison =
            compare(&wishes, &programs, limits, &mut up, &mut progress).map_err(Failure::Environment)?;
        comparison.command = command_line();
        self.write(comparison)?;
        Ok(ExitCode::SUCCESS)
    }

    fn wishes(&self) -> Result<Wishes, Failure> {
        let Self { leaf_ports, uplink, pin: pinned, rate, .. } = *self;
        let rate_mbit = mbit(rate)?;
        let shape = |hosts| Shape { hosts, leaf_ports, rate_mbit, rails: 1, uplink, pinned, ucx: false };
        Ok(Wishes {
            quick: self.quick,
            only: self.only.clone(),
            systems: self.systems.clone(),
            sizes: self.sizes.clone(),
            rounds: self.rounds,
            peers: self.peers.clone(),
            shape: self.hosts.map(shape),
            ranks_per_host: self.ranks_per_host,
            budget: self.budget,
        })
    }

    fn write(&self, mut comparison: Comparison) -> Result<(), Failure> {
        if let Some(folder) = &self.write_docs {
            comparison.kernels = Some(kernels::measured(KERNEL_BUDGET));
            report::write(&comparison, folder)
                .map_err(|cause| Failure::Environment(format!("cannot write to {}: {cause}", folder.display())))?;
        }
        if self.json {
            return say!("{:#}", report::json(&comparison));
        }
        for target in &comparison.targets {
            if let Some(met) = target.met {
                let verdict = if met { "met   " } else { "MISSED" };
                say!("{verdict} {}: {} (required: {})", target.what, target.measured, target.required)?;
            }
        }
        // A trouble of all cells of a system is told once.
        let mut troubles = BTreeMap::<(&str, &str, &str), Vec<String>>::new();
        for row in comparison.rows.iter().filter(|row| row.status != "ok") {
            let cells = troubles.entry((&row.scenario, &row.system, &row.status)).or_default();
            cells.push(format!("{} {}", row.collective, row.bytes));
        }
        for ((scenario, system, status), cells) in troubles {
            let which = if cells.len() > 1 { format!("{} cells", cells.len()) } else { cells.concat() };
            say!("{scenario} {system} {which}: {status}")?;
        }
        Ok(())
    }
}

/// The rate in whole Mbit/s, as rows and figures give it.
fn mbit(rate: BitRate) -> Result<u32, Failure> {
    let whole = rate.bits().is_multiple_of(MBIT).then_some(rate.bits() / MBIT).and_then(|rate| rate.try_into().ok());
    whole.ok_or_else(|| Failure::Usage(format!("--rate {rate}: the comparison takes whole Mbit/s")))
}

/// The command line as a reader would type it again.
fn command_line() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    format!("trib {}", arguments.join(" "))
}

const MBIT: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(1200);
const KERNEL_BUDGET: Duration = Duration::from_secs(8);
const EXAMPLES: &str = "\
Examples:
  trib bench compare --quick
  trib bench compare --only small,jobs --json
  trib bench compare --only allreduce --systems tributary,openmpi-ring --sizes 64K,1M --hosts 4 --leaf-ports 2
  trib bench compare --only small --hosts 8 --rate 500mbit --uplink 1
  trib bench compare --only small,per-host --ranks-per-host 4
  trib bench compare --only allreduce --peer mine='./my-collectives --tcp'
  trib bench compare --write-docs docs";
