//! Processes that can be found again and never mistaken for one another.
//!
//! A process id alone is not a name, because the kernel reuses it. Id and start time together are a
//! name for as long as the machine runs. A pidfd that is known to belong to that pair stays with
//! that process for good.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::str::SplitAsciiWhitespace;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid};

/// What names one process among all that run between two boots.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProcessId {
    /// The process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

impl ProcessId {
    /// The process with this id that runs now; `None` when there is none, or when it has ended and
    /// its parent has not reaped it.
    pub fn running(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (id, state) = parse_stat(&stat)?;
        has_not_ended(state).then_some(id)
    }

    /// The name of this process.
    pub fn own() -> Self {
        Self::running(std::process::id()).expect("/proc is mounted and shows this process")
    }

    /// Reads the first line of a `/proc/PID/stat`, which is also what a pid file of the lab holds.
    pub fn from_stat(line: &str) -> Option<Self> {
        parse_stat(line).map(|(id, _)| id)
    }

    /// True while this very process runs.
    pub fn is_running(self) -> bool {
        Self::running(self.pid) == Some(self)
    }
}

/// A handle on a process that need not be a child of ours.
#[derive(Debug)]
pub struct Process {
    id: ProcessId,
    pidfd: OwnedFd,
}

impl Process {
    /// A handle on the process `id`; `None` when it has ended.
    pub fn open(id: ProcessId) -> io::Result<Option<Self>> {
        let Some(pid) = i32::try_from(id.pid).ok().and_then(Pid::from_raw) else {
            return Ok(None);
        };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // The id is checked after the handle was opened: if the process that we mean still runs
        // now, the handle is on it.
        Ok(id.is_running().then_some(Self { id, pidfd }))
    }

    /// A handle on a child of ours, which keeps its id until it is waited for, even if it has
    /// ended.
    pub fn of_child(child: &Child) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
        let id = ProcessId::from_stat(&stat).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { id, pidfd: pidfd_open(Pid::from_child(child), PidfdFlags::empty())? })
    }

    /// Its name.
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// Sends a signal. A process that has ended is no error.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits at most `limit` until the process has ended, and returns whether it has. A child of
    /// ours is reaped.
    pub fn wait(&self, limit: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut ended = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut ended, Some(&timespec(left))) {
                Ok(0) => return Ok(false),
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // This fails for a process that is not our child; its own parent reaps it.
        let _ = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        Ok(true)
    }

    /// Asks the process to end (SIGTERM), and after `grace` kills it.
    pub fn end(&self, grace: Duration) -> io::Result<()> {
        end_all(std::slice::from_ref(self), grace)
    }
}

/// Asks all of them to end (SIGTERM), and after `grace` kills those that still run.
pub fn end_all(processes: &[Process], grace: Duration) -> io::Result<()> {
    for process in processes {
        process.signal(Signal::TERM)?;
        // A stopped process acts on SIGTERM only when it runs again.
        process.signal(Signal::CONT)?;
    }
    let deadline = Instant::now() + grace;
    for process in processes {
        if !process.wait(deadline.saturating_duration_since(Instant::now()))? {
            process.signal(Signal::KILL)?;
            process.wait(KILL_LIMIT)?;
        }
    }
    Ok(())
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// A time limit in the form the kernel wants.
pub(crate) fn timespec(limit: Duration) -> Timespec {
    Timespec::try_from(limit).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}

/// The process groups in which a process runs. One that has ended does not count, reaped or not.
pub fn running_groups() -> BTreeSet<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let stats = ids.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
    stats.filter_map(|stat| running_group(&stat)).collect()
}

/// The process group in a stat line of a process that runs.
fn running_group(line: &str) -> Option<i32> {
    let (state, mut fields) = state_and_fields(line)?;
    // Field 5 of proc(5).
    let group = fields.nth(5 - 4)?.parse().ok()?;
    has_not_ended(state).then_some(group)
}

/// Reads id and state from a stat line.
fn parse_stat(line: &str) -> Option<(ProcessId, char)> {
    let (pid, _) = line.split_once(' ')?;
    let (state, mut fields) = state_and_fields(line)?;
    // Field 22 of proc(5).
    let start = fields.nth(22 - 4)?;
    Some((ProcessId { pid: pid.parse().ok()?, start: start.parse().ok()? }, state))
}

/// The state, which is field 3 of a stat line, and the fields after it. The command's name stands
/// in parentheses and may hold anything, parentheses included, so the fields are counted from the
/// last one.
fn state_and_fields(line: &str) -> Option<(char, SplitAsciiWhitespace<'_>)> {
    let (_, fields) = line.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields))
}

/// Whether a process in this state may still do something.
fn has_not_ended(state: char) -> bool {
    !matches!(state, 'Z' | 'X')
}

/// How long the kernel may take to end a process after SIGKILL. It takes long only if the process
/// hangs in a device.
const KILL_LIMIT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{ChildStdout, Command, Stdio};

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21";
        assert_eq!(parse_stat(line), Some((ProcessId { pid: 42, start: 777 }, 'S')));
        assert_eq!(running_group(line), Some(2));
        assert_eq!(running_group(&line.replace(" S ", " Z ")), None);
    }

    #[test]
    fn a_group_runs_until_its_last_process_has_ended() {
        use std::os::unix::process::CommandExt;
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let group = child.id() as i32;
        assert!(running_groups().contains(&group));
        child.kill().unwrap();
        // It has ended now and is not reaped.
        let pid = WaitId::Pid(Pid::from_child(&child));
        waitid(pid, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(!running_groups().contains(&group));
        child.wait().unwrap();
    }

    #[test]
    fn half_a_line_is_no_process() {
        for line in ["", "42", "42 (a", "42 (a) S 1 2", "x (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 1"] {
            assert_eq!(ProcessId::from_stat(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_recycled_pid_is_another_process() {
        let own = ProcessId::own();
        assert!(own.is_running());
        let earlier = ProcessId { start: own.start - 1, ..own };
        assert!(!earlier.is_running());
        assert!(Process::open(earlier).unwrap().is_none());
    }

    #[test]
    fn ending_wakes_a_stopped_process_and_reaps_it() {
        let process = shell("exec sleep 60").0;
        process.signal(Signal::STOP).unwrap();
        process.end(Duration::from_secs(5)).unwrap();
        assert!(fs::metadata(format!("/proc/{}", process.id().pid)).is_err(), "the child was not reaped");
    }

    #[test]
    fn a_process_that_ignores_sigterm_is_killed() {
        let (process, mut output) = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
        // From here on the shell ignores the signal.
        output.read_exact(&mut [0; 6]).unwrap();
        process.end(Duration::from_millis(50)).unwrap();
        assert!(!process.id().is_running());
    }

    /// A child that only its handle here will reap, and its output.
    fn shell(script: &str) -> (Process, ChildStdout) {
        let child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn();
        let (pid, output) = child.map(|mut child| (child.id(), child.stdout.take().unwrap())).unwrap();
        (Process::open(ProcessId::running(pid).unwrap()).unwrap().unwrap(), output)
    }
}
