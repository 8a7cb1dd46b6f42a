//! The subcommands. Each has a file of its own.
//!
//! A new one is a file with `Arguments` and `Arguments::run`, and a line in each of the two lists
//! below.

mod am;
mod an;
mod bench;
mod credentials;
mod daemon_options;
mod doctor;
mod explain;
mod fabric;
mod jobs;
mod lab;
mod lanes;
mod manager_option;
mod metrics;
mod mpirun;
mod plan;
mod query;
mod run;
mod service;
mod shell;
mod sim;
mod status;
mod tenants;
mod topology;
mod units;
mod watching;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Failure;
use manager_option::ManagerOption;

/// What `trib` can do. Each subcommand's help is in its own file.
#[derive(Subcommand, Debug)]
pub enum Command {
    Am(am::Arguments),
    An(an::Arguments),
    Bench(bench::Arguments),
    Credentials(credentials::Arguments),
    Doctor(doctor::Arguments),
    Explain(explain::Arguments),
    Fabric(fabric::Arguments),
    Jobs(jobs::Arguments),
    Lab(lab::Arguments),
    Mpirun(mpirun::Arguments),
    Plan(plan::Arguments),
    Run(run::Arguments),
    Service(service::Arguments),
    Sim(sim::Arguments),
    Status(status::Arguments),
    Topology(topology::Arguments),
}

impl Command {
    /// Carries out the command, inside the laboratory if the manager can only be asked there.
    pub fn run(self) -> Result<ExitCode, Failure> {
        if let Some(manager) = self.asks()
            && let Some(code) = lab::enter(manager)?
        {
            return Ok(code);
        }
        match self {
            Self::Am(arguments) => arguments.run(),
            Self::An(arguments) => arguments.run(),
            Self::Bench(arguments) => arguments.run(),
            Self::Credentials(arguments) => arguments.run(),
            Self::Doctor(arguments) => arguments.run(),
            Self::Explain(arguments) => arguments.run(),
            Self::Fabric(arguments) => arguments.run(),
            Self::Jobs(arguments) => arguments.run(),
            Self::Lab(arguments) => arguments.run(),
            Self::Mpirun(arguments) => arguments.run(),
            Self::Plan(arguments) => arguments.run(),
            Self::Run(arguments) => arguments.run(),
            Self::Service(arguments) => arguments.run(),
            Self::Sim(arguments) => arguments.run(),
            Self::Status(arguments) => arguments.run(),
            Self::Topology(arguments) => arguments.run(),
        }
    }
}

impl Command {
    /// The manager that the command asks about its fabric. Its answer is the same for any host.
    fn asks(&self) -> Option<&ManagerOption> {
        match self {
            Self::Doctor(arguments) => Some(arguments.manager()),
            Self::Explain(arguments) => Some(arguments.manager()),
            Self::Jobs(arguments) => Some(arguments.manager()),
            Self::Status(arguments) => Some(arguments.manager()),
            _ => None,
        }
    }
}

/// The binary that runs now, for daemons that run it too.
fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::Environment(format!("cannot find the trib binary itself: {error}")))
}
