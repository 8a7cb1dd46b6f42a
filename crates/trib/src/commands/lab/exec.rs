//! `trib lab exec`.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use clap::Args;
use trib_lab::Lab;
use trib_lab::run::{End, run};
use trib_lab::visit::visit;

use super::{Which, code_of, failure, timed_out};
use crate::commands::units::some_seconds;
use crate::failure::Failure;

/// Run a command on a host or in a switch
///
/// Passes signals on and ends as the command does. The command finds the place's network, host
/// name, processes, /dev/shm and /tmp, and the machine's other files.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Kill the command, and everything that it started, after so many seconds; the exit code is
    /// 124 then
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds)]
    timeout: Option<Duration>,
    /// The host or switch: h0, leaf0, pod0, spine, ...
    #[arg(value_name = "PLACE")]
    place: String,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Arguments {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let Self { which, timeout, place, command } = self;
        let lab = which.attach()?;
        let (program, arguments) = command.split_first().expect("clap wants one");
        if timeout.is_none() {
            return become_it(&lab, &place, program, arguments);
        }
        lab.place_kind(&place).map_err(failure)?;
        match run(lab.command(&place, program).args(arguments), timeout).map_err(Failure::environment)? {
            End::Own(status) => Ok(code_of(status)),
            End::TimedOut => Ok(timed_out(program, timeout)),
        }
    }
}

/// Runs the program in a place and ends in the same way as the program.
pub(super) fn become_it(lab: &Lab, place: &str, program: &OsStr, arguments: &[OsString]) -> Result<ExitCode, Failure> {
    let status = visit(lab, place, Command::new(program).args(arguments)).map_err(failure)?;
    end_as(status);
    Ok(code_of(status))
}

/// Ends this process by the signal that ended the other process, if one did.
fn end_as(status: ExitStatus) {
    if let Some(signal) = status.signal() {
        // The other process has left its core file already, if one was wanted.
        let _ = rustix::process::setrlimit(
            rustix::process::Resource::Core,
            rustix::process::Rlimit { current: Some(0), maximum: Some(0) },
        );
        // If this is refused, the exit code says it.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

const EXAMPLES: &str = "\
Examples:
  trib lab exec h3 -- ping -c 1 h7
  trib lab exec leaf0 -- tc -s qdisc
  trib lab exec --timeout 10 h0 -- ./program";
