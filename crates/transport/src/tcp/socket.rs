//! A connected stream socket as this system uses it.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use mio::event::Source;
use mio::{Interest, Registry, Token};
use socket2::SockRef;

use crate::option;

/// A non-blocking TCP connection without Nagle's delay. The kernel tunes its buffers, because a
/// fixed size is either too small for a long path or takes memory from every other job.
#[derive(Debug)]
pub struct StreamSocket {
    stream: mio::net::TcpStream,
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
        Ok(StreamSocket { stream })
    }

    /// Lets poll call the socket readable only when so many bytes are there, at least 1, or when
    /// the far end has closed.
    pub fn set_low_water(&self, bytes: u32) -> io::Result<()> {
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        option::set(self, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
    }

    /// Nothing more will be written; the far end reads what was, and then the end.
    pub fn finish(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// The far end.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// The near end.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

impl Read for StreamSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.read(bytes)
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.stream.read_vectored(slices)
    }
}

/// Writing never raises SIGPIPE: inside an application's process that signal is not ours to ignore.
impl Write for StreamSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SockRef::from(&self.stream).send_with_flags(bytes, libc::MSG_NOSIGNAL)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        SockRef::from(&self.stream).send_vectored_with_flags(slices, libc::MSG_NOSIGNAL)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsRawFd for StreamSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

impl Source for StreamSocket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.stream.register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.stream.reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.stream.deregister(registry)
    }
}
