//! Running `ip` and `nft`.

use std::process::{Command, Stdio};

use super::error::LabError;

/// Runs `command` to its end; its standard output, or an error with what it printed.
pub(super) fn tool(command: &mut Command) -> Result<String, LabError> {
    let line = line_of(command);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|source| LabError::Io { action: format!("run `{line}`"), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(LabError::Tool { command: line, answer: format!("{} ({})", said.trim(), output.status) })
}

/// `ip` with these arguments, which are words without blanks.
pub(super) fn ip(arguments: &str) -> Result<String, LabError> {
    tool(Command::new("ip").args(arguments.split_ascii_whitespace()))
}

/// The command as one would type it.
pub(super) fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
