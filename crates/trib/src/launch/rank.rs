//! One started rank: a process that leads a process group, so that everything that it starts ends
//! with it.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};
use trib_lab::supervise::die_with_parent;

use super::label::Labels;

/// A started rank. It is reaped when it is dropped and not before, so that the kernel gives the id
/// of its process group to nobody else meanwhile. Dropping it while it runs kills it.
#[derive(Debug)]
pub(super) struct Rank {
    number: u32,
    child: Child,
    ended: bool,
}

/// How a rank ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// It exited, with this code.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
}

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

    /// Whether [`Self::end`] has returned its end.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns how it ended, once.
    pub(super) fn end(&mut self) -> Option<End> {
        if self.ended {
            return None;
        }
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.group()), look).ok().flatten()?;
        self.ended = true;
        Some(End::of(&status))
    }

    /// Sends a signal to it and to all that it started, even if it has ended itself.
    pub(super) fn signal(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            let _ = kill_process_group(self.group(), signal);
        }
    }

    /// Whether it is one of these process groups.
    pub(super) fn is_among(&self, groups: &BTreeSet<i32>) -> bool {
        groups.contains(&self.group().as_raw_nonzero().get())
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
        }
        let _ = self.child.wait();
    }
}

impl End {
    fn of(status: &WaitIdStatus) -> Self {
        match status.exit_status() {
            Some(code) => Self::Exited(code),
            None => Self::Killed(status.terminating_signal().unwrap_or(Signal::KILL.as_raw())),
        }
    }

    /// The exit code that a shell would report; `None` for success.
    pub(super) fn failure(self) -> Option<u8> {
        let code = match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => 128 + signal,
        };
        (code != 0).then(|| u8::try_from(code).unwrap_or(u8::MAX))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Killed(signal) => write!(f, "was ended by signal {signal} ({})", name_of(*signal)),
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
