//! Starting one process that outlives us.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::FdFlags;
use std::net::SocketAddr;

use super::Lifetime;
use super::error::{Context, LabError};
use super::readiness::{Readiness, Verdict};
use crate::namespace::{Entry, fork, fresh::Fresh};
use crate::process::{Process, ProcessId};

/// Where a process of a laboratory is to run.
#[derive(Clone, Debug)]
pub(crate) enum Setting {
    /// In the namespaces of the caller.
    Here,
    /// In a place of a laboratory.
    Inside(Entry),
    /// The first process of a laboratory: in PID and mount namespaces of its own.
    Fresh(Fresh),
}

/// A daemon that was started and has not yet said that it is ready.
#[derive(Debug)]
pub(crate) struct Starting {
    name: String,
    log: PathBuf,
    process: Process,
    readiness: Readiness,
}

impl Starting {
    /// Starts `command` in a session of its own or, if it is `Owned`, in a process group of its
    /// own. Its output goes to `FOLDER/NAME.log`, its line of `/proc/PID/stat` to
    /// `FOLDER/NAME.pid`. Its standard input is as the command says.
    pub(crate) fn launch(
        folder: &Path,
        name: &str,
        setting: Setting,
        lifetime: Lifetime,
        command: &mut Command,
    ) -> Result<Self, LabError> {
        let file = |kind: &str| folder.join(format!("{name}.{kind}"));
        let socket = file("notify");
        let readiness = Readiness::listen(socket.clone()).context(|| format!("listen on {}", socket.display()))?;
        let log = file("log");
        // What an earlier process of this name wrote stays: it may say why that one ended.
        let output = OpenOptions::new().create(true).append(true).mode(0o600).open(&log);
        let output = output.context(|| format!("open {}", log.display()))?;
        let errors = output.try_clone().context(|| format!("open {}", log.display()))?;
        let pid_path = file("pid");
        detach(command, setting, lifetime, create(&pid_path)?).context(|| "open /proc".to_owned())?;
        command.current_dir("/").env("NOTIFY_SOCKET", readiness.path()).stdout(output).stderr(errors);
        let mut child = command.spawn().context(|| format!("start {}", command.get_program().display()))?;
        // The child is the process in the middle, which has ended. Its own child wrote its line
        // into the pid file before it became the daemon.
        child.wait().context(|| format!("wait for process {}", child.id()))?;
        let line = fs::read_to_string(&pid_path).context(|| format!("read {}", pid_path.display()))?;
        let id = ProcessId::from_stat(&line);
        let process = id.map_or(Ok(None), Process::open).context(|| format!("open {name}"))?;
        match process {
            Some(process) => Ok(Self { name: name.to_owned(), log, process, readiness }),
            None => Err(LabError::Ended { daemon: name.to_owned(), tail: tail(&log), log }),
        }
    }

    /// Waits until the daemon is ready and returns the address on which it listens.
    pub(crate) fn ready(self, deadline: Instant, limit: Duration) -> Result<SocketAddr, LabError> {
        match self.ready_somewhere(deadline, limit)? {
            (_, Ok(address)) => Ok(address),
            (daemon, Err(given)) => Err(LabError::NoAddress { daemon, given }),
        }
    }

    /// Waits until the process is ready. Returns its name, and its address if it gave a valid one,
    /// else what it gave.
    pub(crate) fn ready_somewhere(
        self,
        deadline: Instant,
        limit: Duration,
    ) -> Result<(String, Result<SocketAddr, Option<String>>), LabError> {
        let verdict = self.readiness.wait(&self.process, deadline).context(|| format!("wait for {}", self.name))?;
        let Self { name: daemon, log, .. } = self;
        match verdict {
            Verdict::Ready(address) => Ok((daemon, address)),
            Verdict::Ended => Err(LabError::Ended { daemon, tail: tail(&log), log }),
            Verdict::TimedOut => Err(LabError::NotReady { daemon, limit, tail: tail(&log), log }),
        }
    }
}

/// Makes the command's process enter its setting, leave our session and write its line of /proc
/// into the pid file before anything else. So the daemon never runs without a way to find it, not
/// even when we are killed half-way.
fn detach(command: &mut Command, setting: Setting, lifetime: Lifetime, pid_file: File) -> io::Result<()> {
    // The /proc of our own PID namespace shows the daemon under the id by which we know it,
    // whichever namespace it enters.
    let proc = File::open("/proc")?;
    let before_exec = move || {
        match &setting {
            Setting::Here => fork::continue_as_orphan()?,
            Setting::Inside(entry) => {
                entry.enter()?;
                fork::continue_as_orphan_inside()?;
            }
            Setting::Fresh(fresh) => {
                fresh.begin()?;
                fork::continue_as_orphan()?;
            }
        }
        match lifetime {
            Lifetime::Detached => drop(rustix::process::setsid()?),
            // Linux may schedule by session (autogroup), and then a yield lets only processes of
            // the same session run. Machines of a laboratory share few cores, and their programs
            // wait for one another, so daemons stay in the session of what is measured.
            Lifetime::Owned => rustix::process::setpgid(None, None)?,
        }
        let own = rustix::fs::openat(&proc, OWN_STAT, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut line = [0; 1024];
        let length = rustix::io::read(&own, &mut line)?;
        let written = rustix::io::write(pid_file.as_fd(), &line[..length])?;
        // The daemon keeps the file open, and so the lock, for as long as it runs.
        rustix::io::fcntl_setfd(&pid_file, FdFlags::empty())?;
        if written == length { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    };
    // SAFETY: between fork and exec the closure makes system calls on its own stack only; it
    // neither allocates nor locks.
    unsafe { command.pre_exec(before_exec) };
    Ok(())
}

/// Creates a pid file, with a lock on it that lasts until nobody has the file open. It shows
/// processes of other PID namespaces, in which the daemon's id means nothing, that it runs.
fn create(path: &Path) -> Result<File, LabError> {
    let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).mode(0o600).open(path);
    let file = file.context(|| format!("create {}", path.display()))?;
    // Not every file system that a folder may be on has locks. Without them nothing tells those.
    let _ = flock(&file, FlockOperation::NonBlockingLockShared);
    Ok(file)
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

const OWN_STAT: &CStr = c"self/stat";
const TAIL_LINES: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::scratch::Scratch;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn ready(folder: &Path, script: &str, limit: Duration) -> Result<SocketAddr, LabError> {
        Starting::launch(folder, "daemon", Setting::Here, Lifetime::Detached, &mut shell(script))?
            .ready(Instant::now() + limit, limit)
    }

    #[test]
    fn the_pid_file_names_the_daemon_and_the_daemon_leads_its_session() {
        let scratch = Scratch::new();
        let starting =
            Starting::launch(scratch.path(), "daemon", Setting::Here, Lifetime::Detached, &mut shell("sleep 60"))
                .unwrap();
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
        assert!(matches!(error, LabError::Ended { .. }), "{text}");
        assert!(text.contains("no such key") && text.contains("  100\n") && !text.contains("  50\n"), "{text}");
    }

    #[test]
    fn a_silent_daemon_is_reported_after_the_limit() {
        let scratch = Scratch::new();
        let limit = Duration::from_millis(50);
        let error = ready(scratch.path(), "exec sleep 60", limit).unwrap_err();
        assert!(matches!(error, LabError::NotReady { .. }), "{error}");
        let line = fs::read_to_string(scratch.path().join("daemon.pid")).unwrap();
        let process = Process::open(ProcessId::from_stat(&line).unwrap()).unwrap().unwrap();
        process.end(Duration::from_secs(5)).unwrap();
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let scratch = Scratch::new();
        let mut command = Command::new("/nonexistent/trib");
        let error =
            Starting::launch(scratch.path(), "daemon", Setting::Here, Lifetime::Detached, &mut command).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/trib"), "{error}");
    }
}
