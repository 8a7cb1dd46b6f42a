//! `trib lab remote`: what the launcher of an MPI calls instead of ssh.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::Args;

use super::Which;
use super::exec::become_it;
use crate::failure::Failure;

/// Run a shell command on a host, called as the launcher of an MPI calls ssh
#[derive(Args, Debug)]
#[command(hide = true, after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: Which,
    /// The host
    host: String,
    /// What goes to the shell there, put together with blanks
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl Arguments {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let lab = self.which.attach()?;
        let script = self.command.join(&OsString::from(" "));
        become_it(&lab, &self.host, OsStr::new("/bin/sh"), &["-c".into(), script])
    }
}

const EXAMPLES: &str = "\
Examples:
  mpirun --mca plm_rsh_agent 'trib lab remote' --host h0,h1 ./program      # on h0 of a laboratory";
