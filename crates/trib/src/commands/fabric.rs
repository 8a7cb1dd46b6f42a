//! `trib fabric`: a whole fabric on this machine, for trying things out.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use tracing::info;
use trib_lab::fabric::{Fabric, FabricError, FabricName, Launch, Shape, default_base};

use crate::failure::Failure;
use crate::log;

/// Start or stop a whole fabric on this machine
///
/// It consists of a manager, a root node and leaf nodes below it, each its own process.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Up(Up),
    Down(Down),
}

#[derive(Args, Debug)]
struct Which {
    /// On loopback, for programs of this machine; so far the only kind
    #[arg(long)]
    local: bool,
    /// Which fabric, when there are several
    #[arg(long, default_value = "local", value_name = "NAME")]
    name: String,
}

/// Start the fabric, or find the one that runs, and print what a shell needs to use it
///
/// Prints nothing on stdout but lines for a shell to eval. What a crashed fabric left is removed first.
#[derive(Args, Debug)]
#[command(after_help = UP_EXAMPLES)]
struct Up {
    #[command(flatten)]
    which: Which,
    /// Leaf nodes below the root: 1 to 64 [default: 2, or as it runs]
    #[arg(long, value_name = "N")]
    leaves: Option<u16>,
    /// Worker threads of each node: 1 to 64 [default: 1, or as it runs]
    #[arg(long, value_name = "N")]
    workers: Option<u16>,
    /// How long it may take until all is ready, seconds
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    timeout: u64,
}

/// Stop the fabric and remove everything it left
///
/// Stopping a fabric that does not run is no error.
#[derive(Args, Debug)]
#[command(after_help = DOWN_EXAMPLES)]
struct Down {
    #[command(flatten)]
    which: Which,
}

impl Arguments {
    /// Does it.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_tool();
        match self.action {
            Action::Up(up) => up.run(),
            Action::Down(down) => down.run(),
        }
    }
}

impl Which {
    fn name(&self) -> Result<FabricName, Failure> {
        if !self.local {
            let text = "say --local: a fabric on this machine is the only kind that this command can start or stop";
            return Err(Failure::Usage(text.to_owned()));
        }
        FabricName::new(&self.name).map_err(failure)
    }
}

impl Up {
    fn run(self) -> Result<ExitCode, Failure> {
        let name = self.which.name()?;
        let base = default_base();
        // What the command line leaves open is as it runs, so that a bare `up` always finds the fabric.
        let running = Fabric::find(&base, &name).map_err(failure)?.map(|fabric| fabric.shape().clone());
        let usual = running.unwrap_or(Shape::local(2, 1));
        let shape = Shape::local(self.leaves.unwrap_or(usual.leaves), self.workers.unwrap_or(usual.workers));
        let program = super::own_program()?;
        let limit = Duration::from_secs(self.timeout);
        let launch = Launch { base: &base, name: &name, shape: &shape, program: &program, namespace: None, limit };
        let fabric = Fabric::up(&launch).map_err(failure)?;
        info!("fabric {:?} is up: {}", name.as_str(), fabric.daemons().collect::<Vec<_>>().join(", "));
        let line = format!("export TRIB_MANAGER={}\n", quoted(fabric.manager()));
        std::io::stdout().write_all(line.as_bytes()).map_err(Failure::environment)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Down {
    fn run(self) -> Result<ExitCode, Failure> {
        let name = self.which.name()?;
        let something = Fabric::down(&default_base(), &name).map_err(failure)?;
        let word = if something { "is down" } else { "was not up" };
        info!("fabric {:?} {word}", name.as_str());
        Ok(ExitCode::SUCCESS)
    }
}

fn failure(error: FabricError) -> Failure {
    match error {
        FabricError::Name(_) | FabricError::Shape { .. } => Failure::Usage(error.to_string()),
        FabricError::Unsafe { .. } | FabricError::Io { .. } => Failure::environment(error),
        _ => Failure::operation(error),
    }
}

/// One word for any POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

const UP_EXAMPLES: &str = "\
Examples:
  eval \"$(trib fabric up --local)\"
  eval \"$(trib fabric up --local --leaves 4 --workers 2 --name wide)\"";
const DOWN_EXAMPLES: &str = "\
Examples:
  trib fabric down --local
  trib fabric down --local --name wide";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for text in ["tls://127.0.0.1:1?credentials=/run/a", "it's", "a b;c$d`e\"f\\"] {
            let script = format!("printf %s {}", quoted(text));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
