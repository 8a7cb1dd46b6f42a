//! The keeper's side: a process for each program that somebody in a place asks for.

use std::io::{self, ErrorKind, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::likeness::take_after;
use super::request::Request;
use super::{ENDED, REFUSED, SOCKET};
use crate::namespace::doors::Doors;
use crate::namespace::entry::end_with_us;
use crate::namespace::fork::{Side, end, fork_into};

/// Where processes in places ask.
pub(in crate::namespace) struct Porter(UnixListener);

impl Porter {
    /// Opens the socket. Only this user gets into the folder.
    pub(in crate::namespace) fn open(folder: &Path) -> io::Result<Self> {
        UnixListener::bind(folder.join(SOCKET)).map(Self)
    }

    /// Takes a call and leaves it to a child of ours. This process must have one thread.
    pub(in crate::namespace) fn take(&self, doors: &Doors) -> io::Result<()> {
        let (stream, _) = self.0.accept()?;
        if let Side::Child = fork_into(0)? {
            serve(&stream, doors);
            end(0);
        }
        Ok(())
    }
}

impl AsFd for Porter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn serve(mut stream: &UnixStream, doors: &Doors) {
    // The keeper ignores it and so has no zombies; but this process waits for a child.
    // SAFETY: the call installs no handler; only the disposition changes.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // Who does not read the answer has ended.
    let _ = match attend(stream, doors) {
        Ok(Some(status)) => stream.write_all(&[[ENDED].as_slice(), &status.to_le_bytes()].concat()),
        Ok(None) => Ok(()),
        Err(error) => stream.write_all(&[&[REFUSED], error.to_string().as_bytes()].concat()),
    };
}

/// Runs one program. Returns the status with which it ended; `None` if who asked for it has ended,
/// and the program with it.
fn attend(stream: &UnixStream, doors: &Doors) -> io::Result<Option<i32>> {
    let asker = socket_peercred(stream)?.pid;
    let (request, [input, output, errors]) = Request::receive(stream)?;
    let entry = doors.entry(std::process::id(), &request.place)?.ok_or(ErrorKind::NotFound)?;
    take_after(asker);
    entry.enter()?;
    // If the folder does not exist there, the root will do.
    let _ = std::env::set_current_dir(&request.folder);
    let mut command = request.command()?;
    command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(errors));
    end_with_us(&mut command);
    let mut child = command.spawn()?;
    // The copies that `command` holds of the three files would keep a reader waiting.
    drop(command);
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    loop {
        let mut events = [PollFd::new(&process, PollFlags::IN), PollFd::new(stream, PollFlags::IN)];
        match poll(&mut events, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !events[0].revents().is_empty() {
            return Ok(Some(child.wait()?.into_raw()));
        }
        if events[1].revents().is_empty() {
            continue;
        }
        let mut numbers = [0; 16];
        let count = recv(stream, &mut numbers, RecvFlags::DONTWAIT).map_or(0, |(count, _)| count);
        if count == 0 {
            pidfd_send_signal(&process, Signal::KILL)?;
            return Ok(None);
        }
        for signal in numbers[..count].iter().filter_map(|number| Signal::from_named_raw(i32::from(*number))) {
            // If it has just ended, that is what we hear next.
            let _ = pidfd_send_signal(&process, signal);
        }
    }
}
