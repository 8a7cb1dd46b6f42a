//! Learning that a daemon is ready, and where it listens, by the protocol of sd_notify(3).
//!
//! The daemon finds `NOTIFY_SOCKET` in its environment and sends one datagram of `KEY=VALUE` lines
//! to it: `READY=1`, and `X_TRIB_ADDRESS=IP:PORT`. Under systemd the same message goes to systemd,
//! so a daemon needs one protocol only.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};

use crate::process::{Process, timespec};

/// The socket on which one daemon reports.
#[derive(Debug)]
pub(crate) struct Readiness {
    socket: UnixDatagram,
    path: PathBuf,
}

/// How the wait for a daemon ended.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It is ready. This holds its address if it gave a valid one, else what it gave.
    Ready(Result<SocketAddr, Option<String>>),
    /// It ended without a word.
    Ended,
    /// The time was up.
    TimedOut,
}

impl Readiness {
    /// Opens the socket at `path`, in place of one that an interrupted start has left there.
    pub(crate) fn listen(path: PathBuf) -> io::Result<Self> {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixDatagram::bind(&path)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, path })
    }

    /// What goes into `NOTIFY_SOCKET`.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the daemon's word, its end, or the deadline.
    pub(crate) fn wait(&self, process: &Process, deadline: Instant) -> io::Result<Verdict> {
        loop {
            if let Some(message) = self.receive()? {
                if let Some(address) = ready_address(&message) {
                    return Ok(Verdict::Ready(address));
                }
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let mut events = [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(process, PollFlags::IN)];
            match poll(&mut events, Some(&timespec(left))) {
                Ok(0) => return Ok(Verdict::TimedOut),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let (spoke, ended) = (!events[0].revents().is_empty(), !events[1].revents().is_empty());
            if ended && !spoke {
                return Ok(Verdict::Ended);
            }
        }
    }

    fn receive(&self) -> io::Result<Option<String>> {
        let mut message = [0; 4096];
        match self.socket.recv(&mut message) {
            Ok(length) => Ok(Some(String::from_utf8_lossy(&message[..length]).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The address in a message; `None` when the message does not say READY=1.
fn ready_address(message: &str) -> Option<Result<SocketAddr, Option<String>>> {
    let value = |key: &str| message.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    (value("READY") == Some("1")).then(|| {
        let given = value("X_TRIB_ADDRESS");
        given.and_then(|address| address.parse().ok()).ok_or_else(|| given.map(str::to_owned))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::scratch::Scratch;
    use crate::process::ProcessId;
    use std::process::Command;
    use std::time::Duration;

    fn own() -> Process {
        Process::open(ProcessId::own()).unwrap().unwrap()
    }

    #[test]
    fn the_address_comes_with_the_ready_line_and_other_lines_do_not_matter() {
        let address = "127.0.0.1:4711".parse().unwrap();
        assert_eq!(ready_address("STATUS=x\nREADY=1\nX_TRIB_ADDRESS=127.0.0.1:4711\n"), Some(Ok(address)));
        assert_eq!(ready_address("READY=1"), Some(Err(None)));
        assert_eq!(ready_address("READY=1\nX_TRIB_ADDRESS=here"), Some(Err(Some("here".to_owned()))));
        for silent in ["", "READY=0", "STATUS=READY=1", "READY", "X_TRIB_ADDRESS=127.0.0.1:1"] {
            assert_eq!(ready_address(silent), None, "{silent:?}");
        }
    }

    #[test]
    fn a_message_is_heard_and_the_socket_goes_away() {
        let scratch = Scratch::new();
        let readiness = Readiness::listen(scratch.path().join("x.notify")).unwrap();
        let daemon = UnixDatagram::unbound().unwrap();
        daemon.send_to(b"STATUS=starting", readiness.path()).unwrap();
        daemon.send_to(b"READY=1\nX_TRIB_ADDRESS=127.0.0.1:9", readiness.path()).unwrap();
        let verdict = readiness.wait(&own(), Instant::now() + Duration::from_secs(5)).unwrap();
        assert_eq!(verdict, Verdict::Ready(Ok("127.0.0.1:9".parse().unwrap())));
        drop(readiness);
        assert!(!scratch.path().join("x.notify").exists());
    }

    #[test]
    fn what_an_interrupted_start_has_left_is_in_nobodys_way() {
        let scratch = Scratch::new();
        let path = scratch.path().join("x.notify");
        drop(UnixDatagram::bind(&path).unwrap());
        assert!(path.exists());
        Readiness::listen(path).unwrap();
    }

    #[test]
    fn silence_ends_with_the_deadline_or_with_the_process() {
        let scratch = Scratch::new();
        let readiness = Readiness::listen(scratch.path().join("x.notify")).unwrap();
        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(readiness.wait(&own(), soon).unwrap(), Verdict::TimedOut);
        let pid = Command::new("sleep").arg("60").spawn().map(|child| child.id()).unwrap();
        let process = Process::open(ProcessId::running(pid).unwrap()).unwrap().unwrap();
        process.signal(rustix::process::Signal::KILL).unwrap();
        let verdict = readiness.wait(&process, Instant::now() + Duration::from_secs(5)).unwrap();
        assert_eq!(verdict, Verdict::Ended);
        process.wait(Duration::from_secs(5)).unwrap();
    }
}
