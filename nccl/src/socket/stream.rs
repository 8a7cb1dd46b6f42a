//! One end of a connection: messages that are under way, in order.
//!
//! Nothing moves but in a call of NCCL's: when a message is given, and when it is asked for.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::io::{self, IoSlice, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::transfer::{Transfer, moved};
use crate::failure::{Code, Failure};
use crate::handle::{Handle, MAGIC};
use crate::ticket::{Owner, REQUESTS_MAX, Tickets};

/// A sending or a receiving end.
pub struct Stream {
    state: Mutex<State>,
    tickets: Tickets<Stream>,
}

struct State {
    socket: TcpStream,
    way: Way,
    under_way: VecDeque<Transfer>,
    requests: [Request; REQUESTS_MAX],
    /// Why nothing moves any more.
    broken: Option<Failure>,
}

enum Way {
    /// With what is left to send of the greeting.
    Out(Vec<u8>),
    In,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Request {
    Free,
    UnderWay,
    Done(usize),
}

impl Owner for Stream {
    fn tickets(&mut self) -> &mut Tickets<Stream> {
        &mut self.tickets
    }
}

impl Stream {
    /// Starts to connect to a listener; [`Stream::has_greeted`] says when the connection is there.
    pub fn connect(to: &Handle) -> Result<Stream, Failure> {
        let Some(address) = to.address else {
            return Err(Failure::new(Code::Internal, "the handle of a CollNet listener has no address"));
        };
        let socket = connecting(address).map_err(|error| Failure::system(&format!("connect to {address}"), &error))?;
        let mut greeting = MAGIC.to_vec();
        greeting.extend(to.secret);
        Ok(Stream::new(socket, Way::Out(greeting)))
    }

    /// Whether the greeting is sent, without which the listener does not accept the connection.
    pub fn has_greeted(&self) -> Result<bool, Failure> {
        let mut state = self.lock();
        state.advance_noting();
        state.refuse()?;
        match &state.way {
            Way::Out(greeting) => Ok(greeting.is_empty()),
            Way::In => Ok(true),
        }
    }

    /// The receiving end of a connection whose greeting has been read.
    pub fn accepted(socket: TcpStream) -> Stream {
        Stream::new(socket, Way::In)
    }

    fn new(socket: TcpStream, way: Way) -> Stream {
        let state = State {
            socket,
            way,
            under_way: VecDeque::with_capacity(REQUESTS_MAX),
            requests: [Request::Free; REQUESTS_MAX],
            broken: None,
        };
        Stream { state: Mutex::new(state), tickets: Tickets::new() }
    }

    /// Begins to send, or to receive, a message; null if there are too many requests.
    ///
    /// # Safety
    /// The buffer has `len` bytes, and is the stream's until [`Stream::test`] says that the request
    /// is over.
    pub unsafe fn begin(&self, buffer: *mut u8, len: usize, sends: bool) -> Result<*mut c_void, Failure> {
        let mut state = self.lock();
        if sends != matches!(state.way, Way::Out(_)) {
            return Err(Failure::new(Code::Internal, "a connection has one direction, and this is the other one"));
        }
        if buffer.is_null() && len > 0 {
            return Err(Failure::argument("a message has no address"));
        }
        state.refuse()?;
        let Some(free) = state.requests.iter().position(|request| *request == Request::Free) else {
            return Ok(std::ptr::null_mut());
        };
        state.requests[free] = Request::UnderWay;
        // SAFETY: the caller's contract.
        state.under_way.push_back(unsafe { Transfer::new(free, buffer, len) });
        state.advance_noting();
        Ok(self.tickets.request(free))
    }

    /// How many bytes a request has moved, if it is over. Then it is free again.
    pub fn test(&self, request: usize) -> Result<Option<usize>, Failure> {
        let mut state = self.lock();
        if state.requests[request] == Request::UnderWay {
            state.advance_noting();
        }
        match state.requests[request] {
            Request::Done(bytes) => {
                state.requests[request] = Request::Free;
                Ok(Some(bytes))
            }
            Request::UnderWay => state.refuse().map(|()| None),
            Request::Free => Err(Failure::new(Code::Internal, "a request was tested that is over already")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Fails if the stream is broken. The words are told once.
    fn refuse(&mut self) -> Result<(), Failure> {
        let broken = self.broken.as_mut();
        broken.map_or(Ok(()), |failure| Err(Failure::new(failure.code, std::mem::take(&mut failure.text))))
    }

    /// Moves what can be moved. What fails breaks the stream.
    fn advance_noting(&mut self) {
        if self.broken.is_none()
            && let Err(failure) = self.advance()
        {
            self.broken = Some(failure);
        }
    }

    fn advance(&mut self) -> Result<(), Failure> {
        if let Way::Out(greeting) = &mut self.way {
            while !greeting.is_empty() {
                let Some(count) = moved(Quiet(&self.socket).write(greeting))? else { return Ok(()) };
                greeting.drain(..count);
            }
        }
        while let Some(transfer) = self.under_way.front_mut() {
            let done = match self.way {
                Way::Out(_) => transfer.send(&mut Quiet(&self.socket))?,
                Way::In => transfer.receive(&mut self.socket)?,
            };
            let Some(bytes) = done else { return Ok(()) };
            self.requests[transfer.request] = Request::Done(bytes);
            self.under_way.pop_front();
        }
        Ok(())
    }
}

/// What is written here never raises SIGPIPE: in the program's process it is not ours to ignore.
struct Quiet<'a>(&'a TcpStream);

impl Write for Quiet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        SockRef::from(self.0).send_vectored_with_flags(slices, libc::MSG_NOSIGNAL)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection that is being made.
fn connecting(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}
