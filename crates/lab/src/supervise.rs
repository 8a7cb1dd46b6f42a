//! Children of a test: started, stopped, continued, killed, and never left behind.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::process::Process;

/// A running child. Dropping it kills it; so does the death of the thread that started it.
#[derive(Debug)]
pub struct Supervised {
    child: Child,
    process: Process,
}

impl Supervised {
    /// Starts `command`. Its standard streams are as the command says.
    ///
    /// The kernel ties the child to the *thread* that calls this: when that thread ends, the child
    /// is killed.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        die_with_parent(command);
        let mut child = command.spawn()?;
        match Process::of_child(&child) {
            Ok(process) => Ok(Self { child, process }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The standard streams and the status belong to the child.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Freezes it (SIGSTOP), as a machine would freeze: its sockets stay open and fill up.
    pub fn stop(&self) -> io::Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Lets it run again (SIGCONT).
    pub fn cont(&self) -> io::Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Sends it any other signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        self.process.signal(signal)
    }

    /// Ends it without a warning (SIGKILL) and reaps it.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// Waits for its end for at most `limit`; `None` when it still runs.
    pub fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(Some(status));
        }
        let mut ended = [rustix::event::PollFd::new(&self.process, rustix::event::PollFlags::IN)];
        match rustix::event::poll(&mut ended, Some(&crate::process::timespec(limit))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.child.try_wait(),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Makes the kernel kill the command's process when the thread that spawns it ends.
pub fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let bind = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent died before the call above, the signal will never come.
        if getppid() != Some(parent) {
            return Err(io::Error::from(rustix::io::Errno::SRCH));
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls and touches no memory but
    // its own stack.
    unsafe { command.pre_exec(bind) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn state(pid: u32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    /// The kernel takes a moment to act on a signal.
    fn becomes(pid: u32, wanted: char) -> bool {
        (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            state(pid) == wanted
        })
    }

    #[test]
    fn stop_freezes_and_cont_thaws() {
        let child = Supervised::start(Command::new("sleep").arg("60")).unwrap();
        child.stop().unwrap();
        assert!(becomes(child.pid(), 'T'));
        child.cont().unwrap();
        assert!(becomes(child.pid(), 'S'));
    }

    #[test]
    fn wait_tells_running_from_ended() {
        let mut child = Supervised::start(Command::new("sleep").arg("60")).unwrap();
        assert!(child.wait(Duration::from_millis(10)).unwrap().is_none());
        let status = child.kill().unwrap();
        assert_eq!(status.signal(), Some(9));
        assert_eq!(child.wait(Duration::ZERO).unwrap(), Some(status));
    }

    #[test]
    fn a_child_that_ends_at_once_is_no_failure_to_start() {
        for _ in 0..20 {
            let mut child = Supervised::start(&mut Command::new("true")).unwrap();
            assert!(child.wait(Duration::from_secs(10)).unwrap().is_some_and(|status| status.success()));
        }
    }

    #[test]
    fn dropping_leaves_nothing_behind() {
        let child = Supervised::start(Command::new("sleep").arg("60")).unwrap();
        let id = child.process.id();
        drop(child);
        assert!(!id.is_running());
    }

    #[test]
    fn the_child_dies_with_the_thread_that_started_it() {
        let id = std::thread::spawn(|| {
            let child = Supervised::start(Command::new("sleep").arg("60")).unwrap();
            let id = child.process.id();
            std::mem::forget(child);
            id
        })
        .join()
        .unwrap();
        let gone = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            !id.is_running()
        });
        assert!(gone);
    }
}
