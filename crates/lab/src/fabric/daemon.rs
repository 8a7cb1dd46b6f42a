//! Starting one process that outlives us.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use std::net::SocketAddr;

use super::error::{Context, FabricError};
use super::readiness::{Readiness, Verdict};
use crate::process::{Process, ProcessId};

/// A daemon that was started and has not been heard of yet.
#[derive(Debug)]
pub(crate) struct Starting {
    name: String,
    log: PathBuf,
    process: Process,
    readiness: Readiness,
}

impl Starting {
    /// Starts `command` in a session of its own, with its output in `FOLDER/NAME.log` and itself in `FOLDER/NAME.pid`.
    pub(crate) fn launch(folder: &Path, name: &str, command: &mut Command) -> Result<Self, FabricError> {
        let file = |kind: &str| folder.join(format!("{name}.{kind}"));
        let socket = file("notify");
        let readiness = Readiness::listen(socket.clone()).context(|| format!("listen on {}", socket.display()))?;
        let log = file("log");
        let output = create(&log)?;
        let errors = output.try_clone().context(|| format!("open {}", log.display()))?;
        let pid_path = file("pid");
        detach(command, create(&pid_path)?);
        command
            .current_dir("/")
            .env("NOTIFY_SOCKET", readiness.path())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let child = command.spawn().context(|| format!("start {}", command.get_program().display()))?;
        // The child wrote its own line into the pid file before it became the daemon.
        let line = fs::read_to_string(&pid_path).context(|| format!("read {}", pid_path.display()))?;
        let id = ProcessId::from_stat(&line).filter(|id| id.pid == child.id());
        let process = id.map_or(Ok(None), Process::open).context(|| format!("open process {}", child.id()))?;
        match process {
            Some(process) => Ok(Self { name: name.to_owned(), log, process, readiness }),
            None => Err(FabricError::Ended { daemon: name.to_owned(), tail: tail(&log), log }),
        }
    }

    /// Waits until the daemon is ready; gives the address it listens on.
    pub(crate) fn ready(self, deadline: Instant, limit: Duration) -> Result<SocketAddr, FabricError> {
        let verdict = self.readiness.wait(&self.process, deadline).context(|| format!("wait for {}", self.name))?;
        let Self { name: daemon, log, .. } = self;
        match verdict {
            Verdict::Ready(Ok(address)) => Ok(address),
            Verdict::Ready(Err(given)) => Err(FabricError::NoAddress { daemon, given }),
            Verdict::Ended => Err(FabricError::Ended { daemon, tail: tail(&log), log }),
            Verdict::TimedOut => Err(FabricError::NotReady { daemon, limit, tail: tail(&log), log }),
        }
    }
}

/// Makes the command's process leave our session and write its line of /proc into the pid file before anything else, so
/// that no moment exists in which the daemon runs and nobody could find it, not even when we are killed half-way.
fn detach(command: &mut Command, pid_file: File) {
    let before_exec = move || {
        rustix::process::setsid()?;
        let own = rustix::fs::open(OWN_STAT, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut line = [0; 1024];
        let length = rustix::io::read(&own, &mut line)?;
        let written = rustix::io::write(pid_file.as_fd(), &line[..length])?;
        if written == length { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    };
    // SAFETY: between fork and exec the closure makes system calls on its own stack only; it neither allocates nor locks.
    unsafe { command.pre_exec(before_exec) };
}

fn create(path: &Path) -> Result<File, FabricError> {
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path);
    file.context(|| format!("create {}", path.display()))
}

/// The last lines of a log, each indented.
fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return "  (nothing)".to_owned();
    }
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    last.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

const OWN_STAT: &CStr = c"/proc/self/stat";
const TAIL_LINES: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::scratch::Scratch;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn ready(folder: &Path, script: &str, limit: Duration) -> Result<SocketAddr, FabricError> {
        Starting::launch(folder, "daemon", &mut shell(script))?.ready(Instant::now() + limit, limit)
    }

    #[test]
    fn the_pid_file_names_the_daemon_and_the_daemon_leads_its_session() {
        let scratch = Scratch::new();
        let starting = Starting::launch(scratch.path(), "daemon", &mut shell("sleep 60")).unwrap();
        let line = fs::read_to_string(scratch.path().join("daemon.pid")).unwrap();
        assert_eq!(ProcessId::from_stat(&line), Some(starting.process.id()));
        let pid = rustix::process::Pid::from_raw(starting.process.id().pid as i32);
        assert_eq!(rustix::process::getsid(pid).ok(), pid);
        starting.process.end(Duration::from_secs(5)).unwrap();
    }

    #[test]
    fn a_daemon_that_ends_early_is_reported_with_the_end_of_its_log() {
        let scratch = Scratch::new();
        let error = ready(scratch.path(), "seq 100; echo no such key >&2; exit 1", Duration::from_secs(5)).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, FabricError::Ended { .. }), "{text}");
        assert!(text.contains("no such key") && text.contains("  100\n") && !text.contains("  50\n"), "{text}");
    }

    #[test]
    fn a_silent_daemon_is_reported_after_the_limit() {
        let scratch = Scratch::new();
        let limit = Duration::from_millis(50);
        let error = ready(scratch.path(), "exec sleep 60", limit).unwrap_err();
        assert!(matches!(error, FabricError::NotReady { .. }), "{error}");
        let line = fs::read_to_string(scratch.path().join("daemon.pid")).unwrap();
        let process = Process::open(ProcessId::from_stat(&line).unwrap()).unwrap().unwrap();
        process.end(Duration::from_secs(5)).unwrap();
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let scratch = Scratch::new();
        let mut command = Command::new("/nonexistent/trib");
        let error = Starting::launch(scratch.path(), "daemon", &mut command).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/trib"), "{error}");
    }
}
