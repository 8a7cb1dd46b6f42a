//! Calls of other programs: of systemctl, if systemd runs this machine, and of the tools for users.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether systemd runs here and an installation below `root` concerns it.
pub(super) fn is_concerned(root: &Path) -> bool {
    root == Path::new("/") && Path::new("/run/systemd/system").is_dir()
}

/// Lets systemd read its units again.
pub(super) fn reload() -> io::Result<()> {
    run(&["systemctl", "daemon-reload"])
}

/// Stops a service and prevents it from being started again.
pub(super) fn disable(unit: &str) -> io::Result<()> {
    run(&["systemctl", "disable", "--now", "--quiet", unit])
}

/// Runs a program. The error has the last lines that the program printed.
pub(super) fn run(words: &[&str]) -> io::Result<()> {
    let (program, arguments) = words.split_first().expect("a command has a first word");
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| io::Error::new(error.kind(), format!("cannot run {program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("`{}` failed: {}", words.join(" "), said.trim())))
}
