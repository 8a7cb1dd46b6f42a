//! How two processes of one host meet: a Unix socket with an abstract name, which is bound to the
//! network namespace and leaves no file.
//!
//! The name is the address at which the node's process takes TCP calls, so that who knows that
//! address knows the door, and a process with another address at another host does not answer. Any
//! user may take such a name, so both ends ask the kernel for the other's user before anything is
//! said.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixListener, UnixStream};
use std::time::Instant;

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
};
use rustix::process::geteuid;

use super::line::{Line, Offer};
use super::socket::NearSocket;

/// Where children of this host call.
pub struct Door {
    listener: UnixListener,
}

/// Why an edge is not over memory.
#[derive(Debug, thiserror::Error)]
pub enum NoDoor {
    /// Nobody listens in this network namespace.
    #[error("the node is in no process that this one can share memory with")]
    Absent,
    /// The name is taken by somebody else.
    #[error("the node's process belongs to another user")]
    Stranger,
    /// It is switched off.
    #[error("it is switched off (TRIB_SHARED_MEMORY)")]
    Unwanted,
    /// Who listens has closed the call, or has not taken it in time.
    #[error("the node's process takes no calls of this host")]
    Closed,
    /// The system does not provide what it takes.
    #[error("the system refuses it: {0}")]
    System(#[from] io::Error),
}

/// A call that somebody of this user has taken.
pub(crate) struct Call {
    pub(crate) stream: UnixStream,
    line: Line,
    offer: Offer,
}

impl Door {
    /// Opens the door of the process that takes TCP calls at `address`.
    pub fn open(address: SocketAddr) -> io::Result<Door> {
        let listener = UnixListener::bind_addr(&name(address)?)?;
        listener.set_nonblocking(true)?;
        Ok(Door { listener })
    }

    /// The next caller, without waiting. That of another user is turned away, which is an error of
    /// the kind `PermissionDenied`; others may wait behind it.
    pub fn accept(&self) -> io::Result<NearSocket> {
        let (stream, _) = self.listener.accept()?;
        let turned_away = |why: String| io::Error::new(ErrorKind::PermissionDenied, why);
        match is_own(&stream) {
            Ok(true) => NearSocket::accepted(stream),
            Ok(false) => Err(turned_away("another user has called the door of this process".into())),
            Err(error) => Err(turned_away(format!("cannot learn which user calls: {error}"))),
        }
    }
}

/// Calls the process that takes TCP calls at `address`, if that is one of this host and user. It
/// waits until `deadline` where others that have called are still to be taken.
pub(crate) fn call(address: SocketAddr, deadline: Instant) -> Result<Call, NoDoor> {
    let stream = dial(address, deadline)?;
    if !is_own(&stream)? {
        return Err(NoDoor::Stranger);
    }
    let (line, offer) = Line::create()?;
    Ok(Call { stream, line, offer })
}

fn dial(address: SocketAddr, deadline: Instant) -> Result<UnixStream, NoDoor> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let stream = UnixStream::from(socket.map_err(io::Error::from)?);
    let name = SocketAddrUnix::new_abstract_name(label(address).as_bytes()).map_err(io::Error::from)?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NoDoor::Closed);
        }
        // The time for which a connection waits that the listener has no room for.
        stream.set_write_timeout(Some(left))?;
        match connect(&stream, &name) {
            Ok(()) => return Ok(stream),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(Errno::CONNREFUSED | Errno::NOENT) => return Err(NoDoor::Absent),
            Err(error) => return Err(NoDoor::System(error.into())),
        }
    }
}

impl Call {
    /// Says `bytes` and hands the memory over with them.
    pub(crate) fn say_with_memory(&self, bytes: &[u8]) -> io::Result<()> {
        let descriptors = self.offer.each_ref().map(AsFd::as_fd);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(OFFERED))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let said = rustix::net::sendmsg(&self.stream, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        // One small message always fits into the socket's buffer.
        if said == bytes.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
    }

    /// The connection, when the handshake is over.
    pub(crate) fn open(self, peer: SocketAddr) -> io::Result<NearSocket> {
        NearSocket::called(self.stream, self.line, peer)
    }
}

/// The descriptors that have come over a socket.
#[derive(Default)]
pub(super) struct Offered {
    all: Vec<OwnedFd>,
}

impl Offered {
    /// What makes up an edge, if that is what has come.
    pub(super) fn into_offer(self) -> io::Result<Offer> {
        let none = |_| io::Error::new(ErrorKind::InvalidData, "the far end has offered no memory");
        self.all.try_into().map_err(none)
    }
}

/// Reads from a Unix socket, and takes the descriptors that come with the bytes.
pub(super) fn receive(stream: &UnixStream, slices: &mut [IoSliceMut<'_>], offered: &mut Offered) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(OFFERED))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let got = rustix::net::recvmsg(stream, slices, &mut ancillary, flags)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            // What is beyond an offer is closed.
            let room = OFFERED - offered.all.len();
            offered.all.extend(descriptors.take(room));
        }
    }
    Ok(got.bytes)
}

/// Whether the far end belongs to the user of this process.
fn is_own(stream: &UnixStream) -> io::Result<bool> {
    Ok(socket_peercred(stream)?.uid == geteuid())
}

fn name(address: SocketAddr) -> io::Result<net::SocketAddr> {
    net::SocketAddr::from_abstract_name(label(address))
}

fn label(address: SocketAddr) -> String {
    format!("tributary/{address}")
}

impl AsRawFd for Door {
    fn as_raw_fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }
}

impl Source for Door {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        SourceFd(&self.as_raw_fd()).register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        SourceFd(&self.as_raw_fd()).reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        SourceFd(&self.as_raw_fd()).deregister(registry)
    }
}

/// The number of descriptors in an offer.
const OFFERED: usize = 3;
