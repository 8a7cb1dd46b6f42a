//! Processes of a launch, found by what their environment says.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::system::TOKEN_ENV;

/// Every process with this token that runs.
pub(crate) fn with_token(token: &str) -> Vec<u32> {
    let wanted = format!("{TOKEN_ENV}={token}");
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    })
    .collect()
}

/// Those of these processes that measure: not launchers, daemons of launchers or shells.
pub(crate) fn workers(pids: &[u32]) -> Vec<u32> {
    let measures = |pid: &&u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let name = words.first().and_then(|word| word.rsplit(|byte| *byte == b'/').next()).unwrap_or_default();
        let is_program = name == b"trib" && words.get(1) == Some(&&b"bench"[..]) || name.starts_with(b"collectives");
        is_program || name.starts_with(b"python") && words.iter().any(|word| word.ends_with(b"gloo.py"))
    };
    pids.iter().filter(measures).copied().collect()
}

/// Sends SIGKILL.
pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Sends a signal; a process that is gone needs none.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
