//! `trib doctor`: whether this host could run a job now, and if not, what to do.
//!
//! Map: `check` (one finding and the report), `fabric` (keys, manager, versions, clock, nodes),
//! `trial` (a job of one rank, through the whole software, over this host's own edge), `strain`
//! (what else kept this host busy meanwhile), `ucx` (what links over UCX would use here), `mpi`
//! (what would take the collectives of MPI programs).

mod check;
mod fabric;
mod mpi;
mod strain;
mod trial;
mod ucx;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use self::check::Report;
use super::manager_option::ManagerOption;
use super::units::some_seconds;
use crate::failure::Failure;
use crate::log;
use crate::stdout;

/// Check a set-up before a run
///
/// Looks at this host's credentials, the manager, the software versions, clocks and receive buffers
/// of all nodes, and runs a job of one rank from this host, with full datagrams and a stream. Every
/// finding says what to do about it. Run it on each host: what one host reaches says nothing about
/// another.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    manager: ManagerOption,
    /// This host's name in the topology [default: TRIB_HOST, else the system's host name]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// An MPI program, of which is told what would take its collectives
    #[arg(long, value_name = "PROGRAM")]
    program: Option<std::ffi::OsString>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// How long each step may take, seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = some_seconds)]
    timeout: Duration,
}

impl Arguments {
    /// The manager that it asks.
    pub(super) fn manager(&self) -> &ManagerOption {
        &self.manager
    }

    /// Makes the checks and prints the findings.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_tool();
        let url = self.manager.url()?;
        let limit = self.timeout;
        let mut report = Report::default();
        fabric::keys(&url, &mut report);
        ucx::examine(limit, &mut report);
        mpi::examine(self.program.as_deref(), limit, &mut report);
        if fabric::examine(&url, limit, &mut report) {
            let unread = || fabric::unread(&url, limit);
            trial::run(self.manager.manager, self.host, limit, unread, &mut report);
        }
        let text = if self.json { report.json() } else { report.to_string() };
        stdout::print(&text)?;
        Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

const EXAMPLES: &str = "\
Examples:
  trib doctor
  trib doctor --program ./a.out
  trib doctor --json | jq '.checks[] | select(.state != \"ok\")'
  srun --ntasks-per-node=1 trib doctor

Exit codes: 0 nothing stands in the way of a job (there may be warnings), 1 something does.";
