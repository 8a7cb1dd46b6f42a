//! `trib`: every tool of Tributary in one binary, so that a switch or a host needs only this file.
//!
//! `commands` has one file per subcommand, which reads arguments, calls a library and prints;
//! `launch` starts the ranks of `trib run`; `exchange` joins ranks that are threads of this
//! process; `table` prints columns; `view` draws for people, once or again and again; `failure`
//! maps what went wrong to an exit code; `log` sends diagnostics to stderr, `stdout` is where
//! answers go.

mod bar;
mod commands;
mod exchange;
mod failure;
#[cfg(test)]
mod grammar;
mod launch;
mod log;
mod stdout;
mod table;
mod view;

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
    let Arguments { command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // The user has asked for this help or version.
        Err(answer) if !answer.use_stderr() || is_help(&answer) => answer.exit(),
        Err(mistake) => {
            failure::tell(words_of(&mistake));
            return ExitCode::from(u8::try_from(mistake.exit_code()).unwrap_or(2));
        }
    };
    match command.run() {
        Ok(code) => code,
        Err(failure) => {
            failure::tell(&failure);
            failure.exit_code()
        }
    }
}

/// Whether this is the help that is shown because a subcommand is missing. It is no sentence, and
/// gets no prefix.
fn is_help(answer: &clap::Error) -> bool {
    answer.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// The text of a mistake on the command line, in clap's words without clap's own prefix.
fn words_of(mistake: &clap::Error) -> String {
    let text = mistake.render().to_string();
    text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned()
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
    fn a_mistake_on_the_command_line_has_no_second_prefix() {
        for words in [&["trib", "status", "--nonsense"][..], &["trib", "run"], &["trib", "lab", "up", "--rate", "9"]] {
            let text = words_of(&Arguments::try_parse_from(words).unwrap_err());
            assert!(!text.starts_with("error") && !text.starts_with("trib") && !text.is_empty(), "{text}");
        }
    }

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
