//! `trib run`: the ranks of a program.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::manager_option::ManagerOption;
use super::units::seconds;
use crate::failure::Failure;
use crate::launch::{Job, RANKS_MAX, Verdict};
use crate::log;

/// Start the ranks of a program on this machine
///
/// On a cluster srun or mpirun start the ranks instead: programs and `trib bench` read these
/// launchers' variables, too. Each rank finds TRIB_RANK, TRIB_SIZE, TRIB_LOCAL_RANK,
/// TRIB_RENDEZVOUS and TRIB_MANAGER in its environment. The first rank that fails ends the others:
/// SIGTERM, and SIGKILL after the grace period. SIGINT, SIGTERM and SIGHUP are passed on. Rank 0
/// reads the launcher's stdin unless that is a terminal. If the launcher dies, so do the ranks.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How many ranks
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=RANKS_MAX))]
    ranks: u32,
    /// Host names that the ranks report as TRIB_HOST, in equal blocks; they choose where
    /// in the tree the ranks are attached. All ranks run on this machine nevertheless
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    hosts: Vec<String>,
    /// Put the rank in front of every line of output: [3] ...
    #[arg(short, long)]
    label: bool,
    /// Seconds from SIGTERM to SIGKILL, once the job is to end
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    grace: Duration,
    /// Seconds that the job may wait for quota that others have, at most 3600; else it is refused
    /// at once [default: what TRIB_WAIT_MS says]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    wait: Option<Duration>,
    #[command(flatten)]
    manager: ManagerOption,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl Arguments {
    /// Starts the ranks and waits for them.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_tool();
        let Self { ranks, hosts, label, grace, wait, manager, program } = self;
        let job = Job { ranks, hosts, label, grace, wait, manager: manager.manager, program };
        Ok(match job.run()? {
            Verdict::Succeeded => ExitCode::SUCCESS,
            Verdict::Failed(code) => ExitCode::from(code),
        })
    }
}

const EXAMPLES: &str = "\
Examples:
  trib run -n 8 -- ./program --its-own-option
  trib run -n 8 --wait 600 -- ./program
  trib run -n 8 --label --hosts h0,h1,h2,h3 -- python3 train.py";
