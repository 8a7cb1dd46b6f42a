//! Running `ip`, `tc` and `nft`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::lab::LabError;
use crate::namespace::Entry;

/// Says which of the tools is missing, if one is.
pub(crate) fn check() -> Result<(), LabError> {
    for (tool, version) in [("ip", "-V"), ("tc", "-V"), ("nft", "-v")] {
        let status =
            Command::new(tool).arg(version).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            let text = format!("the program `{tool}` is missing; scripts/install-dependencies installs it");
            return Err(LabError::Unavailable(text));
        }
    }
    Ok(())
}

/// Runs a tool with a place's network; `script` goes to its standard input. Returns its standard
/// output, or an error with what it printed.
pub(crate) fn run(entry: &Entry, tool: &str, arguments: &[&str], script: &str) -> Result<String, LabError> {
    let line = || std::iter::once(tool).chain(arguments.iter().copied()).collect::<Vec<_>>().join(" ");
    let failed = |source| LabError::Io { action: format!("run `{}`", line()), source };
    let mut command = Command::new(tool);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    entry.only_network(&mut command);
    let mut child = command.spawn().map_err(failed)?;
    let mut input = child.stdin.take().expect("it is piped");
    // A tool that fails early closes its end of the pipe; its output says why.
    let _ = input.write_all(script.as_bytes());
    drop(input);
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(LabError::Tool { command: line(), answer: format!("{} ({})", said.trim(), output.status) })
}
