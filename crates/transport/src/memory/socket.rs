//! The stream of an edge over memory, with the Unix socket that tells of the far end's end.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::door::{Offered, receive};
use super::line::{Line, NearGlance};
use super::records::Records;
use super::ring::{Reader, Writer};
use super::segment::Use;

/// A connection between two processes of one host. During the handshake bytes go over its Unix
/// socket, and from then on through memory.
pub struct NearSocket {
    stream: UnixStream,
    /// The descriptors that have come with the handshake.
    offered: Offered,
    /// The memory that is mapped, until frames go through it.
    shared: Option<Line>,
    open: Option<Open>,
    records: Option<Records>,
    /// Whether the bell is polled.
    polled: bool,
}

/// The rings of an open connection.
struct Open {
    line: Arc<Line>,
    out: Writer,
    come: Reader,
    /// Whether the last read has found anything. If not, what woke the reader may be that the far
    /// end is gone.
    found: bool,
    /// Poll has said that the far end has closed.
    hung_up: bool,
}

impl NearSocket {
    /// The answering end of a handshake.
    pub(super) fn accepted(stream: UnixStream) -> io::Result<NearSocket> {
        stream.set_nonblocking(true)?;
        Ok(NearSocket { stream, offered: Offered::default(), shared: None, open: None, records: None, polled: false })
    }

    /// The calling end, after the handshake.
    pub(super) fn called(stream: UnixStream, line: Line, peer: SocketAddr) -> io::Result<NearSocket> {
        let mut socket = NearSocket::accepted(stream)?;
        socket.begin(line, peer);
        Ok(socket)
    }

    /// Both ends of an edge within one process, the child's first. Datagrams of either end come as
    /// from `peer`.
    pub fn pair(peer: SocketAddr) -> io::Result<(NearSocket, NearSocket)> {
        let ((child, node), (line, offer)) = (UnixStream::pair()?, Line::create()?);
        Ok((NearSocket::called(child, line, peer)?, NearSocket::called(node, Line::accept(offer)?, peer)?))
    }

    /// Maps the memory that has come with the child's proof.
    pub(crate) fn share(&mut self) -> io::Result<()> {
        let offer = std::mem::take(&mut self.offered).into_offer()?;
        self.shared = Some(Line::accept(offer)?);
        Ok(())
    }

    /// The handshake is over: from now on frames go through the memory. Datagrams come as from
    /// `peer`.
    pub(crate) fn open(&mut self, peer: SocketAddr) {
        if let Some(line) = self.shared.take() {
            self.begin(line, peer);
        }
    }

    fn begin(&mut self, line: Line, peer: SocketAddr) {
        let line = Arc::new(line);
        self.records = Some(Records::new(line.clone(), peer));
        let (out, come) = (Writer::new(line.clone(), Use::Stream), Reader::new(line.clone(), Use::Stream));
        self.open = Some(Open { line, out, come, found: false, hung_up: false });
    }

    /// The datagrams of this edge, once.
    pub fn take_records(&mut self) -> Option<Records> {
        self.records.take()
    }

    #[cfg(test)]
    pub(super) fn line(&self) -> &Arc<Line> {
        &self.open.as_ref().unwrap().line
    }

    /// A look at this edge, once it is open.
    pub fn glance(&self) -> Option<NearGlance> {
        self.open.as_ref().map(|open| NearGlance::new(open.line.clone()))
    }

    /// Lets the bell be rung only when so many bytes are there, or when the far end has closed.
    pub(crate) fn set_low_water(&self, bytes: u32) {
        if let Some(open) = &self.open {
            open.line.set_mark(bytes);
        }
    }

    /// Says whether bytes of the stream are left where they are for now, so that they wake nobody.
    pub(crate) fn set_held(&self, held: bool) {
        if let Some(open) = &self.open {
            open.line.set_held(held);
        }
    }

    /// Poll said that the far end has closed: from now on every read that finds nothing asks
    /// whether the end has come.
    pub(crate) fn expect_end(&mut self) {
        if let Some(open) = &mut self.open {
            open.hung_up = true;
        }
    }

    /// Nothing more will be written; the far end reads what was, and then the end.
    pub(crate) fn finish(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }
}

impl Open {
    /// Called when the ring is empty: the connection's end, or that there is nothing now.
    fn end(&mut self, stream: &UnixStream) -> io::Result<usize> {
        if std::mem::take(&mut self.found) && !self.hung_up {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        match recv(stream, &mut [0; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK) {
            // What the far end has written before it closed may have come after the look.
            Ok((_, 0)) | Err(Errno::CONNRESET) if self.come.waiting()? == 0 => Ok(0),
            Ok((_, 0)) | Err(Errno::CONNRESET | Errno::AGAIN) => Err(io::ErrorKind::WouldBlock.into()),
            Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "frames came outside the shared memory")),
            Err(error) => Err(error.into()),
        }
    }
}

impl Read for NearSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(bytes)])
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let Some(open) = &mut self.open else { return receive(&self.stream, slices, &mut self.offered) };
        if open.come.waiting()? == 0 {
            return open.end(&self.stream);
        }
        let read = open.come.read(slices)?;
        open.found = true;
        open.line.ring_for_room();
        Ok(read)
    }
}

impl Write for NearSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(open) = &mut self.open else {
            return socket2::SockRef::from(&self.stream).send_vectored_with_flags(slices, libc::MSG_NOSIGNAL);
        };
        let written = open.out.write(slices)?;
        let offered: usize = slices.iter().map(|slice| slice.len()).sum();
        open.line.set_wants_room(written < offered);
        if written > 0 {
            open.line.ring_for_bytes();
        } else if offered > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for NearSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsRawFd for NearSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

/// The Unix socket is polled for the far end's end, and the bell, once there is one, for the rest.
impl Source for NearSocket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        SourceFd(&self.as_raw_fd()).register(registry, token, interests)?;
        if let Some(open) = &self.open {
            SourceFd(&open.line.bell()).register(registry, token, Interest::READABLE)?;
            self.polled = true;
        }
        Ok(())
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.deregister(registry)?;
        self.register(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        SourceFd(&self.as_raw_fd()).deregister(registry)?;
        match &self.open {
            Some(open) if std::mem::take(&mut self.polled) => SourceFd(&open.line.bell()).deregister(registry),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for NearSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NearSocket").field("stream", &self.stream).field("open", &self.open.is_some()).finish()
    }
}
