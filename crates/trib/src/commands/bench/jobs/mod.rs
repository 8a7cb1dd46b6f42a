//! `trib bench jobs`: many jobs, one after the other and at once, as a cluster runs them.
//!
//! Map: `program` (one job: its ranks are threads of this process), `outcome` (the results of all
//! jobs together). The daemons are the real ones: a job is admitted, its tree is installed and its
//! sums are checked.

mod outcome;
mod program;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use self::outcome::Outcome;
use self::program::Program;
use crate::commands::manager_option::ManagerOption;
use crate::failure::{Failure, tell};

/// Admit, run and end many jobs
///
/// Every job has --ranks ranks, which make --groups groups and reduce a short and a long vector in
/// each, all results checked. A job that the manager does not admit because it is away is tried
/// again for --patience seconds; what fails otherwise is counted and makes the exit code 1. Ranks
/// are threads, so a job costs no processes here.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Jobs altogether
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    jobs: u32,
    /// Jobs at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    at_once: u32,
    /// Ranks of each job
    #[arg(short = 'n', long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    ranks: u32,
    /// Host names that the ranks report, in turn [default: this host's]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    hosts: Vec<String>,
    /// Groups of all ranks that each job makes, all alive at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    groups: u32,
    /// How often every group reduces its two vectors
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    operations: u32,
    /// Keep every job alive this long after its operations, seconds
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = super::seconds)]
    hold: Duration,
    /// How long a job that cannot be admitted is tried again, seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = super::seconds)]
    patience: Duration,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    manager: ManagerOption,
}

impl Arguments {
    /// Runs all jobs.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        self.manager.url()?;
        let program = Program {
            manager: self.manager.manager.clone(),
            ranks: self.ranks,
            hosts: self.hosts.clone(),
            groups: self.groups,
            operations: self.operations,
            hold: self.hold,
            patience: self.patience,
        };
        let next = AtomicU32::new(0);
        let start = Instant::now();
        let slot = |_: u32| {
            let mut outcome = Outcome::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.jobs {
                    return outcome;
                }
                outcome.add(number, program.run());
                if (number + 1).is_multiple_of(PROGRESS) {
                    let (done, took) = (number + 1, start.elapsed().as_secs_f64());
                    tell(format_args!("jobs: {done} of {} after {took:.1} s", self.jobs));
                }
            }
        };
        let mut all = Outcome::default();
        std::thread::scope(|scope| {
            let slots: Vec<_> = (0..self.at_once.min(self.jobs)).map(|at| scope.spawn(move || slot(at))).collect();
            for slot in slots {
                all.join(slot.join().expect("a job's failure is an outcome, not a panic"));
            }
        });
        let took = start.elapsed();
        say!("{}", if self.json { all.json(took) } else { all.text(took) })?;
        for failure in all.failures() {
            tell(failure);
        }
        Ok(if all.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The number of jobs between two lines of progress.
const PROGRESS: u32 = 100;
const EXAMPLES: &str = "\
Examples:
  trib bench jobs --jobs 1000 --at-once 64
  trib bench jobs --jobs 1 --groups 10000 --operations 1 --json";
