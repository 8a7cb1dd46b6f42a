//! `trib`: every tool of Tributary in one binary, so that one file is all a switch or a host needs.
//!
//! `commands` has one file per subcommand, which reads arguments, calls a library and prints; `launch` starts the ranks of
//! `trib run`; `exchange` joins ranks that are threads of this process; `table` prints columns; `failure` maps what went
//! wrong to an exit code; `log` sends diagnostics to stderr, `stdout` is where answers go.

mod commands;
mod exchange;
mod failure;
mod launch;
mod log;
mod stdout;
mod table;

use std::process::ExitCode;

use clap::Parser;

use commands::Command;

/// Collective operations reduced inside the network: manager, aggregation nodes, and tools.
#[derive(Parser, Debug)]
#[command(name = "trib", version, max_term_width = 100, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    match command.run() {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("trib: {failure}");
            failure.exit_code()
        }
    }
}

const AFTER_HELP: &str = "\
Environment:
  TRIB_MANAGER      where the manager is: tls://HOST:PORT?credentials=DIR
  TRIB_CREDENTIALS  credentials folder, for a TRIB_MANAGER that names none
  TRIB_LOG          what is logged: error, warn, info, debug, trace, or `crate=level,...`

Exit codes:
  0  done
  1  the operation failed
  2  wrong usage
  3  something around it is missing: no manager, no permission, no such file
`trib run` exits with the code of the first rank that failed, 128 + N if signal N ended it.";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_subcommand_explains_itself_with_an_example() {
        let mut command = Arguments::command();
        command.clone().debug_assert();
        command.build();
        let mut open: Vec<clap::Command> = command.get_subcommands().cloned().collect();
        while let Some(mut command) = open.pop() {
            if command.get_name() == "help" {
                continue;
            }
            let below: Vec<clap::Command> = command.get_subcommands().cloned().collect();
            let help = command.render_long_help().to_string();
            assert!(!below.is_empty() || help.contains("\nExamples"), "{}: {help}", command.get_name());
            open.extend(below);
        }
    }
}
