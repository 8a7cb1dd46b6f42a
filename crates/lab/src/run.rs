//! Runs a command with a time limit and leaves nothing of it behind, wherever its processes went.

use std::fs;
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::heeded::heeded;
use crate::process::{Process, ProcessId};
use crate::supervise::Supervised;
use crate::typed::{Signals, has_reached_the_command};

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It ended by itself, or by a signal that was passed on to it.
    Own(ExitStatus),
    /// The time was up.
    TimedOut,
}

/// Runs `command` and passes signals on to it, except those from a terminal, which reach both.
/// Afterwards every process that descends from it is killed, in any part of a laboratory: all of
/// them are known by a mark in their environment.
pub fn run(command: &mut Command, limit: Option<Duration>) -> io::Result<End> {
    let mark = Mark::new();
    command.env(MARK, &mark.0);
    let end = supervise(command, limit);
    mark.end_all()?;
    end
}

/// Runs `command` and passes signals on to it in the same way, until it has ended or its time is
/// up. Then it alone is killed.
pub fn supervise(command: &mut Command, limit: Option<Duration>) -> io::Result<End> {
    let mut signals = Signals::new(heeded(&[SIGHUP, SIGINT, SIGTERM]))?;
    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut child = Supervised::start(command)?;
    loop {
        let left = deadline.map_or(LOOK_AGAIN, |deadline| deadline.saturating_duration_since(Instant::now()));
        // A signal ends the wait early.
        if let Some(status) = child.wait(left.min(LOOK_AGAIN))? {
            return Ok(End::Own(status));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            child.kill()?;
            return Ok(End::TimedOut);
        }
        for signal in signals.pending().filter(|signal| !has_reached_the_command(signal)) {
            if let Some(signal) = Signal::from_named_raw(signal.si_signo) {
                child.signal(signal)?;
            }
        }
    }
}

/// What the processes of one run have in their environment.
struct Mark(String);

/// The processes with a mark.
struct Marked {
    processes: Vec<Process>,
    /// Whether there may be another: a process that is just becoming another program shows no
    /// environment meanwhile.
    perhaps_more: bool,
}

impl Mark {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let ProcessId { pid, start } = ProcessId::own();
        Self(format!("{pid}.{start}.{}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Kills the processes with the mark until there are none: a process may fork while we look.
    fn end_all(&self) -> io::Result<()> {
        let in_doubt_until = Instant::now() + DOUBT_LIMIT;
        loop {
            let Marked { processes: marked, perhaps_more } = self.look()?;
            if marked.is_empty() {
                if !perhaps_more || Instant::now() >= in_doubt_until {
                    return Ok(());
                }
                thread::sleep(DOUBT_PAUSE);
            }
            for process in &marked {
                process.signal(Signal::KILL)?;
            }
            for process in &marked {
                process.wait(KILL_LIMIT)?;
            }
        }
    }

    fn look(&self) -> io::Result<Marked> {
        let entry = format!("{MARK}={}", self.0);
        let own = ProcessId::own();
        let mut marked = Marked { processes: Vec::new(), perhaps_more: false };
        for folder in fs::read_dir("/proc")?.flatten() {
            // A process whose environment we may not read is not ours, and one that has just ended
            // needs nothing.
            let Ok(environment) = fs::read(folder.path().join("environ")) else { continue };
            let pid = folder.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(id) = pid.and_then(ProcessId::running).filter(|id| *id != own) else { continue };
            if environment.split(|&byte| byte == 0).any(|variable| variable == entry.as_bytes()) {
                marked.processes.extend(Process::open(id)?);
            }
            // Threads of the kernel have no environment, ever, and no program either.
            let is_younger = id.start >= own.start;
            marked.perhaps_more |= environment.is_empty() && is_younger && folder.path().join("exe").exists();
        }
        Ok(marked)
    }
}

const MARK: &str = "TRIB_LAB_RUN";
/// The longest time that a signal waits if it came just before the wait began.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// The longest time for which a process is believed to be becoming another program. There are some
/// that have no environment for good.
const DOUBT_LIMIT: Duration = Duration::from_millis(500);
const DOUBT_PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn what_it_leaves_behind_is_killed() {
        let marker = format!("{}.25", 70_000 + std::process::id() % 10_000);
        let End::Own(status) = run(&mut shell(&format!("setsid sleep {marker} & exit 3")), None).unwrap() else {
            panic!("there is no time limit");
        };
        assert_eq!(status.code(), Some(3));
        let left = Command::new("pgrep").args(["-f", &format!("^sleep {marker}")]).output().unwrap();
        assert!(left.stdout.is_empty(), "it still runs: {}", String::from_utf8_lossy(&left.stdout));
    }

    #[test]
    fn a_limit_ends_it() {
        let began = Instant::now();
        assert_eq!(run(&mut shell("sleep 60 & wait"), Some(Duration::from_millis(100))).unwrap(), End::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}
