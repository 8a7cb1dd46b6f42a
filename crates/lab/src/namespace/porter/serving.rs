//! The porter, and a process for each program that somebody in a place asks for.

use std::fmt::Display;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, setpgid};
use rustix::stdio::{dup2_stdin, dup2_stdout};

use super::likeness::take_after;
use super::request::Request;
use super::{ENDED, REFUSED};
use crate::namespace::entry::{Entry, end_with_us};
use crate::namespace::fork::{Side, end, fork_into};

/// The process that serves those below a command. It ends with this value, or with this process.
pub(crate) struct Porter {
    socket: PathBuf,
    _lifeline: PipeWriter,
}

impl Porter {
    /// Starts one with a socket in `folder`, which only this user gets into. `find` opens the way
    /// into a place. The calling process must have one thread, and be outside all places.
    pub(crate) fn start<E: Display>(folder: &Path, find: impl Fn(&str) -> Result<Entry, E>) -> io::Result<Self> {
        let socket = folder.join(format!("porter-{}", std::process::id()));
        // A porter that was killed has left it.
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket)?;
        let (owner, lifeline) = io::pipe()?;
        match fork_into(0)? {
            Side::Parent(_) => Ok(Self { socket, _lifeline: lifeline }),
            Side::Child => {
                drop(lifeline);
                serve_until_owner_ends(&listener, &owner, &find);
                let _ = std::fs::remove_file(&socket);
                end(0)
            }
        }
    }

    /// Where to ask.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

fn serve_until_owner_ends<E: Display>(
    listener: &UnixListener,
    owner: &PipeReader,
    find: &impl Fn(&str) -> Result<Entry, E>,
) {
    // What is typed at a terminal is for the command, and who reads its output waits for its end.
    let _ = setpgid(None, None);
    if let Ok(nothing) = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = (dup2_stdin(&nothing), dup2_stdout(&nothing));
    }
    // The kernel reaps children of a process that ignores this.
    // SAFETY: the call installs no handler; only the disposition changes.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    loop {
        let mut events = [PollFd::new(listener, PollFlags::IN), PollFd::new(owner, PollFlags::IN)];
        if poll(&mut events, None).is_err() {
            continue;
        }
        let [asked, ended] = events.map(|event| !event.revents().is_empty());
        if ended {
            return;
        }
        if asked && let Err(error) = take(listener, find) {
            // Who read stderr may have gone; others still ask.
            let _ = writeln!(io::stderr(), "cannot serve a process in a place: {error}");
        }
    }
}

/// Takes a call and leaves it to a child of ours.
fn take<E: Display>(listener: &UnixListener, find: &impl Fn(&str) -> Result<Entry, E>) -> io::Result<()> {
    let (stream, _) = listener.accept()?;
    if let Side::Child = fork_into(0)? {
        serve(&stream, find);
        end(0);
    }
    Ok(())
}

fn serve<E: Display>(mut stream: &UnixStream, find: &impl Fn(&str) -> Result<Entry, E>) {
    // This process waits for a child.
    // SAFETY: the call installs no handler; only the disposition changes.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // Who does not read the answer has ended.
    let _ = match attend(stream, find) {
        Ok(Some(status)) => stream.write_all(&[[ENDED].as_slice(), &status.to_le_bytes()].concat()),
        Ok(None) => Ok(()),
        Err(error) => stream.write_all(&[&[REFUSED], error.to_string().as_bytes()].concat()),
    };
}

/// Runs one program. Returns the status with which it ended; `None` if who asked for it has ended,
/// and the program with it.
fn attend<E: Display>(stream: &UnixStream, find: &impl Fn(&str) -> Result<Entry, E>) -> io::Result<Option<i32>> {
    let asker = socket_peercred(stream)?.pid;
    let (request, [input, output, errors]) = Request::receive(stream)?;
    let entry = find(&request.place).map_err(|error| io::Error::other(error.to_string()))?;
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
