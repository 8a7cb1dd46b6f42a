//! A connected stream socket as this system uses it.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use mio::event::Source;
use mio::{Interest, Registry, Token};
use socket2::SockRef;

use crate::edge::{Glance, Records};
use crate::memory::NearSocket;
use crate::option;
use crate::ucx::{Stub, UcxSocket};

/// A non-blocking connection: over TCP without Nagle's delay, over memory, or over UCX. The kernel
/// tunes the buffers of TCP, because a fixed size is either too small for a long path or takes
/// memory from every other job.
#[derive(Debug)]
pub struct StreamSocket {
    way: Way,
}

#[derive(Debug)]
enum Way {
    Tcp(mio::net::TcpStream),
    Memory(Box<NearSocket>),
    Ucx(Box<UcxSocket>),
}

impl StreamSocket {
    /// Takes a connected socket.
    pub fn new(stream: TcpStream) -> io::Result<StreamSocket> {
        stream.set_nonblocking(true)?;
        StreamSocket::from_mio(mio::net::TcpStream::from_std(stream))
    }

    /// Takes a socket that is non-blocking already.
    pub fn from_mio(stream: mio::net::TcpStream) -> io::Result<StreamSocket> {
        stream.set_nodelay(true)?;
        Ok(StreamSocket { way: Way::Tcp(stream) })
    }

    /// Takes a connection of this host.
    pub fn near(socket: NearSocket) -> StreamSocket {
        StreamSocket { way: Way::Memory(Box::new(socket)) }
    }

    /// Whether both ends are on this host and may share memory.
    pub fn is_near(&self) -> bool {
        matches!(self.way, Way::Memory(_))
    }

    /// Maps the memory that a child of this host has offered in its handshake; over TCP there is
    /// nothing to do.
    pub(crate) fn share(&mut self) -> io::Result<()> {
        match &mut self.way {
            Way::Memory(socket) => socket.share(),
            _ => Ok(()),
        }
    }

    /// The connection after the handshake. Frames go by UCX if there is a `stub`. Datagrams of the
    /// far end come as from `peer`, if they go the same way.
    pub(crate) fn opened(self, peer: SocketAddr, stub: Option<Stub>) -> StreamSocket {
        let way = match (self.way, stub) {
            (Way::Tcp(control), Some(stub)) => Way::Ucx(Box::new(UcxSocket::new(control, stub, peer))),
            (Way::Memory(mut socket), _) => {
                socket.open(peer);
                Way::Memory(socket)
            }
            (way, _) => way,
        };
        StreamSocket { way }
    }

    /// The datagrams that go the same way, if it is not TCP, once.
    pub fn take_records(&mut self) -> Option<Records> {
        match &mut self.way {
            Way::Tcp(_) => None,
            Way::Memory(socket) => socket.take_records().map(Records::from),
            Way::Ucx(socket) => socket.take_records().map(Records::from),
        }
    }

    /// A look at the edge, if it is not over TCP.
    pub fn glance(&self) -> Option<Glance> {
        match &self.way {
            Way::Tcp(_) => None,
            Way::Memory(socket) => socket.glance().map(Glance::Memory),
            Way::Ucx(socket) => Some(Glance::Ucx(socket.glance())),
        }
    }

    /// Lets poll call the socket readable only when so many bytes are there, at least 1, or when
    /// the far end has closed.
    pub fn set_low_water(&self, bytes: u32) -> io::Result<()> {
        match &self.way {
            Way::Tcp(_) => {
                let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
                option::set(self, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
            }
            Way::Memory(socket) => {
                socket.set_low_water(bytes);
                Ok(())
            }
            // Its bell is rung for every message.
            Way::Ucx(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Says whether what comes by stream is left where it is for now. Who looks at an edge over
    /// memory is not told of it then.
    pub fn set_held(&self, held: bool) {
        if let Way::Memory(socket) = &self.way {
            socket.set_held(held);
        }
    }

    /// Lets the connection work in a thread that does not drive it, before what there is is read.
    pub(crate) fn visit(&self) {
        if let Way::Ucx(socket) = &self.way {
            socket.visit();
        }
    }

    /// Poll said that the far end has closed.
    pub fn expect_end(&mut self) {
        match &mut self.way {
            Way::Tcp(_) => {}
            Way::Memory(socket) => socket.expect_end(),
            Way::Ucx(socket) => socket.expect_end(),
        }
    }

    /// Nothing more will be written; the far end reads what was, and then the end.
    pub fn finish(&mut self) -> io::Result<()> {
        match &mut self.way {
            Way::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Way::Memory(socket) => socket.finish(),
            Way::Ucx(socket) => socket.finish(),
        }
    }
}

impl Read for StreamSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &mut self.way {
            Way::Tcp(stream) => stream.read(bytes),
            Way::Memory(socket) => socket.read(bytes),
            Way::Ucx(socket) => socket.read(bytes),
        }
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match &mut self.way {
            Way::Tcp(stream) => stream.read_vectored(slices),
            Way::Memory(socket) => socket.read_vectored(slices),
            Way::Ucx(socket) => socket.read_vectored(slices),
        }
    }
}

/// Writing never raises SIGPIPE: inside an application's process that signal is not ours to ignore.
impl Write for StreamSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.way {
            Way::Tcp(stream) => SockRef::from(&*stream).send_with_flags(bytes, libc::MSG_NOSIGNAL),
            Way::Memory(socket) => socket.write(bytes),
            Way::Ucx(socket) => socket.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.way {
            Way::Tcp(stream) => SockRef::from(&*stream).send_vectored_with_flags(slices, libc::MSG_NOSIGNAL),
            Way::Memory(socket) => socket.write_vectored(slices),
            Way::Ucx(socket) => socket.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Tcp(stream) => stream.as_fd(),
            Way::Memory(socket) => socket.as_fd(),
            Way::Ucx(socket) => socket.as_fd(),
        }
    }
}

impl AsRawFd for StreamSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Source for StreamSocket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.way.source().register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.way.source().reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.way.source().deregister(registry)
    }
}

impl Way {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Way::Tcp(stream) => stream,
            Way::Memory(socket) => &mut **socket,
            // The rest is told by the port's bell, which its edges share.
            Way::Ucx(socket) => &mut socket.control,
        }
    }
}
