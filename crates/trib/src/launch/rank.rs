//! One started rank: a process that leads a process group, so that everything that it starts ends
//! with it.

use std::fmt;
use std::io::{self, IsTerminal};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use trib_lab::supervise::die_with_parent;

use super::label::Labels;

/// A started rank. Dropping it while it runs kills it.
#[derive(Debug)]
pub(super) struct Rank {
    number: u32,
    child: Child,
    ended: bool,
}

/// How a rank ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End(ExitStatus);

impl Rank {
    /// Starts the rank. Its output goes through `labels`, or directly to where ours goes.
    ///
    /// The kernel kills the rank when the calling thread ends, so this has to be the main thread.
    pub(super) fn start(number: u32, command: &mut Command, labels: Option<&mut Labels>) -> io::Result<Self> {
        command.process_group(0).stdin(stdin_of(number));
        if labels.is_some() {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        die_with_parent(command);
        let mut child = command.spawn()?;
        if let Some(labels) = labels {
            labels.add(number, &mut child);
        }
        Ok(Self { number, child, ended: false })
    }

    /// Its number in the job.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Whether [`Self::reap`] has returned its end.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns its end, once.
    pub(super) fn reap(&mut self) -> Option<End> {
        if self.ended {
            return None;
        }
        let status = self.child.try_wait().ok().flatten()?;
        self.ended = true;
        Some(End(status))
    }

    /// Sends a signal to it and to all that it started, unless it has ended.
    pub(super) fn signal(&self, signal: i32) {
        // Until the rank is reaped, the kernel gives its id to no other process.
        if let (false, Some(signal)) = (self.ended, Signal::from_named_raw(signal)) {
            let _ = kill_process_group(self.group(), signal);
        }
    }

    /// Kills it and all that it started.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL.as_raw());
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

impl End {
    /// The exit code that a shell would report; `None` for success.
    pub(super) fn failure(self) -> Option<u8> {
        let code = match (self.0.code(), self.0.signal()) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => return None,
        };
        (code != 0).then(|| u8::try_from(code).unwrap_or(u8::MAX))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.code(), self.0.signal()) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(signal)) => write!(f, "was ended by signal {signal} ({})", name_of(signal)),
            (None, None) => write!(f, "ended: {}", self.0),
        }
    }
}

/// A signal's name, or its number if it has no name.
pub(super) fn name_of(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal).map_or_else(|| signal.to_string(), str::to_owned)
}

/// The standard input of a rank. A rank in a process group of its own would be stopped if it read
/// from a terminal, so no rank gets one.
fn stdin_of(rank: u32) -> Stdio {
    if rank == 0 && !io::stdin().is_terminal() { Stdio::inherit() } else { Stdio::null() }
}
