//! `trib lab`: hosts, switches and links as namespaces of this machine, with a fabric in them.
//! There is one file for each action.

mod counters;
mod down;
mod enter;
mod exec;
mod fault;
mod keep;
mod mpirun;
mod remote;
mod status;
mod up;

use std::ffi::OsString;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use clap::{Args, Subcommand};
use trib_lab::{Lab, LabError};

use crate::failure::{Failure, tell};
use crate::log;

pub(super) use enter::enter;

/// A fat tree of hosts, switches and shaped links on this machine, with a fabric in it
///
/// Hosts and switches are namespaces; root is not needed where users may have namespaces of their
/// own. When the process that holds them ends, so does everything inside.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Up(up::Arguments),
    Down(down::Arguments),
    Exec(exec::Arguments),
    Status(status::Arguments),
    Counters(counters::Arguments),
    Fault(fault::Arguments),
    Mpirun(mpirun::Arguments),
    Keep(keep::Arguments),
    Remote(remote::Arguments),
}

/// The option that says which laboratory.
#[derive(Args, Debug)]
struct Which {
    /// Which laboratory: its name
    #[arg(long, alias = "lab", value_name = "NAME", env = "TRIB_LAB", default_value = DEFAULT_NAME)]
    name: String,
}

impl Arguments {
    /// Carries out the action.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_tool();
        match self.action {
            Action::Up(up) => up.run(),
            Action::Down(down) => down.run(),
            Action::Exec(exec) => exec.run(),
            Action::Status(status) => status.run(),
            Action::Counters(counters) => counters.run(),
            Action::Fault(fault) => fault.run(),
            Action::Mpirun(mpirun) => mpirun.run(),
            Action::Keep(keep) => keep.run(),
            Action::Remote(remote) => remote.run(),
        }
    }
}

impl Which {
    fn attach(&self) -> Result<Lab, Failure> {
        Lab::attach(&self.name).map_err(failure)
    }
}

/// The failure, and with it the exit code, for a laboratory's error.
pub(super) fn failure(error: LabError) -> Failure {
    match error {
        LabError::Name(_)
        | LabError::Shape { .. }
        | LabError::Limit(_)
        | LabError::Parameter { .. }
        | LabError::Place { .. }
        | LabError::Link { .. }
        | LabError::Process { .. }
        | LabError::Runs(_)
        | LabError::Inside
        | LabError::Elsewhere(_)
        | LabError::Percent(_) => Failure::Usage(error.to_string()),
        LabError::Unavailable(_) | LabError::Unknown(_) | LabError::Unsafe { .. } | LabError::Io { .. } => {
            Failure::environment(error)
        }
        _ => Failure::operation(error),
    }
}

/// A command's own exit code, or 128 + the signal that ended it.
fn code_of(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Says that the time was up, as timeout(1) does.
fn timed_out(program: &OsString, limit: Option<Duration>) -> ExitCode {
    let (program, limit) = (program.display(), limit.unwrap_or_default());
    tell(format_args!("`{program}` did not end within {limit:?}; everything that it started was killed"));
    ExitCode::from(TIMED_OUT)
}

const DEFAULT_NAME: &str = "lab";
const TIMED_OUT: u8 = 124;
