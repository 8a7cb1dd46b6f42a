//! The process in a place that wants a program in another.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};

use rustix::net::{SendFlags, send};
use signal_hook::low_level::register;

use super::request::Request;
use super::{ENDED, REFUSED, SOCKET};

/// Has `command` run in `place`, with our standard streams, and passes `signals` on to it until it
/// has ended.
pub(crate) fn ask(place: &str, command: &Command, signals: &[i32]) -> io::Result<ExitStatus> {
    let unknown = || io::Error::other(format!("{SOCKET} is not set: it names who leads from here into another place"));
    let stream = UnixStream::connect(std::env::var_os(SOCKET).ok_or_else(unknown)?)?;
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    Request::new(place, command)?.send(&stream, [input.as_fd(), output.as_fd(), errors.as_fd()])?;
    for signal in signals {
        pass_on(*signal, &stream)?;
    }
    answer(&stream)
}

/// Sends the number of a signal whenever one comes.
fn pass_on(signal: i32, stream: &UnixStream) -> io::Result<()> {
    let (descriptor, number) = (stream.as_raw_fd(), [signal as u8]);
    let tell = move || {
        // SAFETY: the caller of `ask` waits in it with the stream open, and the process ends
        // afterwards as the program did.
        let stream = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let _ = send(stream, &number, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    };
    // SAFETY: the handler makes one system call.
    unsafe { register(signal, tell) }.map(drop)
}

fn answer(mut stream: &UnixStream) -> io::Result<ExitStatus> {
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    match kind {
        [ENDED] => {
            let mut status = [0; 4];
            stream.read_exact(&mut status)?;
            Ok(ExitStatus::from_raw(i32::from_le_bytes(status)))
        }
        [REFUSED] => {
            let mut reason = String::new();
            stream.read_to_string(&mut reason)?;
            Err(io::Error::other(reason))
        }
        _ => Err(ErrorKind::InvalidData.into()),
    }
}
