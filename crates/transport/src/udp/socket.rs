//! The datagram socket.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustix::net::{self, SendFlags};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use trib_wire::Header;
use trib_wire::auth::{FrameKey, payload_crc};
use trib_wire::header::{FLAG_CRC, FLAG_SEALED, HEADER_LEN};
use trib_wire::ids::CHILDREN_MAX;
use trib_wire::mode::{SEAL_LEN, Seal};

use super::batch::RecvBatch;
use super::counters::UdpCounters;
use crate::fault::{Fate, FaultPlan, FaultSyntax, Faults};
use crate::option;

/// The receive buffer for which a node asks, in bytes; `recv_buffer` tells what the kernel granted.
pub const RECV_BUFFER_WANTED: usize = 8 << 20;

/// A non-blocking datagram socket. Datagrams are never fragmented on the way (rule R5): one that is
/// too long for the path is counted, not cut.
pub struct DatagramSocket {
    socket: UdpSocket,
    local: SocketAddr,
    /// The only address that is heard. Frames go to it without looking for the route each time.
    peer: Option<SocketAddr>,
    recv_buffer: usize,
    counters: UdpCounters,
    faults: Option<Box<InjectedFaults>>,
}

/// Faults of both directions, and a datagram that waits to be overtaken.
struct InjectedFaults {
    sending: Faults,
    receiving: Faults,
    held: Option<(Vec<u8>, SocketAddr)>,
}

impl DatagramSocket {
    /// Binds to `local` (port 0 means any) and asks the kernel for a receive buffer of
    /// `recv_buffer` bytes.
    pub fn bind(local: SocketAddr, recv_buffer: usize) -> io::Result<DatagramSocket> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
        ask_recv_buffer(&socket, recv_buffer)?;
        forbid_fragments(&socket, local)?;
        socket.bind(&local.into())?;
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr()?;
        let recv_buffer = SockRef::from(&socket).recv_buffer_size()?;
        Ok(DatagramSocket { socket, local, peer: None, recv_buffer, counters: UdpCounters::default(), faults: None })
    }

    /// Puts the faults on this socket for which the environment asks, if any. Only the fabric's
    /// operator can allow that.
    pub fn inject_faults(&mut self) -> Result<(), FaultSyntax> {
        match FaultPlan::from_env()? {
            Some(plan) if self.faults.is_none() => self.inject(plan),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn inject(&mut self, plan: FaultPlan) {
        let salt = u64::from(self.local.port());
        let (sending, receiving) = (plan.start(2 * salt), plan.start(2 * salt + 1));
        self.faults = Some(Box::new(InjectedFaults { sending, receiving, held: None }));
    }

    /// A socket at the same address for what `peer` sends, which has a queue of its own in the
    /// kernel: of `ASIDE_BUFFER` bytes, its own book-keeping included. Datagrams are sent through
    /// this one as before.
    pub fn aside(&self, peer: SocketAddr) -> io::Result<DatagramSocket> {
        // Two sockets may have one address if both say so. This one says so only now: else the
        // kernel could have given it a port that another process of this user has.
        SockRef::from(&self.socket).set_reuse_port(true)?;
        let local = self.local;
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
        socket.set_reuse_port(true)?;
        socket.set_recv_buffer_size(ASIDE_BUFFER)?;
        socket.bind(&local.into())?;
        socket.connect(&reachable(peer, local).into())?;
        let recv_buffer = socket.recv_buffer_size()?;
        let socket = UdpSocket::from(socket);
        let counters = UdpCounters::default();
        Ok(DatagramSocket { socket, local, peer: Some(peer), recv_buffer, counters, faults: None })
    }

    /// From now on only `peer` is heard; the kernel refuses what others send. This cannot be
    /// undone: a socket whose port the kernel has chosen would lose that port together with the
    /// peer. The caller has heard from `peer` before, so answers come from that address.
    pub fn settle_on(&mut self, peer: SocketAddr) {
        if self.peer.is_none() && net::connect(&self.socket, &reachable(peer, self.local)).is_ok() {
            self.peer = Some(peer);
        }
    }

    /// As [`Self::settle_on`], for a socket that has settled on another peer.
    pub fn settle_anew(&mut self, peer: SocketAddr) {
        if self.peer.take().is_some() {
            self.settle_on(peer);
        }
    }

    /// Whether it has settled on a peer.
    pub fn is_settled(&self) -> bool {
        self.peer.is_some()
    }

    /// Where it is bound.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Bytes of receive buffer that the kernel granted, its own book-keeping included.
    pub fn recv_buffer(&self) -> usize {
        self.recv_buffer
    }

    /// The counts.
    pub fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    /// Datagrams that the kernel dropped because the receive buffer was full.
    pub fn overflowed(&self) -> io::Result<u64> {
        let mut words = [0u32; MEMINFO_WORDS];
        let mut len = mem::size_of_val(&words) as libc::socklen_t;
        // SAFETY: pointer and length are those of `words`.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                words.as_mut_ptr().cast(),
                &mut len,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(u64::from(words[MEMINFO_DROPS]))
    }

    /// Seals a frame once and sends it to every address. What the kernel does not take now is
    /// counted and lost, as anywhere else on the way. Bit i of the answer says that, as the kernel
    /// knows, the frame is too long for the way to `to[i]`, so that no repetition will get there.
    ///
    /// # Panics
    /// If there are more addresses than a node may have children.
    pub fn send(&mut self, header: &Header, key: &FrameKey, payload: &[u8], to: &[SocketAddr]) -> u64 {
        self.send_headed(&seal(header, key, payload), payload, to)
    }

    /// The same of a frame whose header is sealed already, with what travels behind that.
    pub fn send_headed(&mut self, head: &[u8], payload: &[u8], to: &[SocketAddr]) -> u64 {
        assert!(to.len() <= CHILDREN_MAX);
        if self.faults.is_some() { self.send_with_faults(head, payload, to) } else { self.send_all(head, payload, to) }
    }

    /// The receiving side, for a caller that must not hold the socket while it looks.
    pub fn receiver(&self) -> Receiver {
        Receiver { socket: self.socket.as_raw_fd(), local: self.local }
    }

    /// Takes what has come, at most a batch; returns the number of datagrams.
    pub fn recv(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        if self.receiver().has_come(batch) { self.recv_rest(batch) } else { Ok(self.account(batch)) }
    }

    /// Takes what has come behind the one datagram that the receiver found; returns the number of
    /// datagrams, including that one.
    pub(super) fn recv_rest(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        let rest = batch.rest(self.receiver());
        let got = self.account(batch);
        match rest {
            Err(error) if got == 0 && !is_passing(&error) => Err(error),
            _ => Ok(got),
        }
    }

    /// Counts what the receiver has put into a batch, and arranges it for `frames`; returns the
    /// number of datagrams.
    pub fn account(&mut self, batch: &mut RecvBatch) -> usize {
        self.counters.received += batch.len() as u64;
        self.counters.received_bytes += batch.lengths().sum::<usize>() as u64;
        let receiving = self.faults.as_mut().map(|injected| &mut injected.receiving);
        batch.arrange(receiving, &mut self.counters);
        batch.len()
    }

    fn send_all(&mut self, head: &[u8], payload: &[u8], to: &[SocketAddr]) -> u64 {
        if let [target] = to
            && payload.len() <= SHORT
        {
            return u64::from(self.send_short(head, payload, *target));
        }
        let mut slices = [
            libc::iovec { iov_base: head.as_ptr().cast_mut().cast(), iov_len: head.len() },
            libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() },
        ];
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; CHILDREN_MAX];
        let mut names = [const { MaybeUninit::<SockAddr>::uninit() }; CHILDREN_MAX];
        for ((message, name), target) in messages.iter_mut().zip(&mut names).zip(to) {
            let name = name.write(SockAddr::from(reachable(*target, self.local)));
            let mut filled: libc::mmsghdr = zeroed();
            filled.msg_hdr.msg_name = name.as_ptr().cast_mut().cast();
            filled.msg_hdr.msg_namelen = name.len();
            filled.msg_hdr.msg_iov = slices.as_mut_ptr();
            filled.msg_hdr.msg_iovlen = slices.len();
            message.write(filled);
        }
        let mut rest = &mut messages[..to.len()];
        let mut too_long = 0;
        let mut was_too_long = false;
        while !rest.is_empty() {
            // SAFETY: names, slices and the bytes they point to outlive the call, and the kernel
            // only reads them.
            let sent = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    rest.as_mut_ptr().cast(),
                    rest.len() as libc::c_uint,
                    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
                )
            };
            let done = match usize::try_from(sent) {
                Ok(sent) => {
                    self.counters.sent += sent as u64;
                    self.counters.sent_bytes += (sent * (head.len() + payload.len())) as u64;
                    sent
                }
                Err(_) => {
                    let error = io::Error::last_os_error();
                    match error.kind() {
                        io::ErrorKind::Interrupted => 0,
                        io::ErrorKind::WouldBlock => {
                            self.count_unsent(&error, rest.len() as u64);
                            return too_long;
                        }
                        // It may concern an earlier datagram; this one has not been tried then.
                        _ if is_too_long(&error) && !was_too_long => {
                            was_too_long = true;
                            continue;
                        }
                        _ => {
                            self.count_unsent(&error, 1);
                            too_long |= u64::from(is_too_long(&error)) << (to.len() - rest.len());
                            1
                        }
                    }
                }
            };
            rest = &mut rest[done..];
        }
        too_long
    }

    /// Sends a short datagram in one piece: copying it costs less than telling the kernel of two
    /// pieces. Whether it is too long for the way.
    fn send_short(&mut self, head: &[u8], payload: &[u8], target: SocketAddr) -> bool {
        let mut bytes = [0; HEADER_LEN + SEAL_LEN + SHORT];
        bytes[..head.len()].copy_from_slice(head);
        bytes[head.len()..][..payload.len()].copy_from_slice(payload);
        let bytes = &bytes[..head.len() + payload.len()];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let mut was_refused = false;
        let mut was_too_long = false;
        loop {
            let sent = if self.peer == Some(target) {
                net::send(&self.socket, bytes, flags)
            } else {
                net::sendto(&self.socket, bytes, flags, &reachable(target, self.local))
            };
            match sent {
                Ok(_) => {
                    self.counters.sent += 1;
                    self.counters.sent_bytes += bytes.len() as u64;
                    return false;
                }
                Err(Errno::INTR) => {}
                // The refusal concerns an earlier datagram; this one has not been tried.
                Err(Errno::CONNREFUSED) if !was_refused => was_refused = true,
                Err(Errno::MSGSIZE) if !was_too_long => was_too_long = true,
                Err(error) => {
                    self.count_unsent(&error.into(), 1);
                    return error == Errno::MSGSIZE;
                }
            }
        }
    }

    /// Counts datagrams that the kernel did not take.
    fn count_unsent(&mut self, error: &io::Error, count: u64) {
        match error.kind() {
            io::ErrorKind::WouldBlock => self.counters.send_would_block += count,
            _ if is_too_long(error) => self.counters.send_too_long += count,
            _ => self.counters.send_failed += count,
        }
    }

    fn send_with_faults(&mut self, head: &[u8], payload: &[u8], to: &[SocketAddr]) -> u64 {
        let mut too_long = 0;
        for (at, target) in to.iter().enumerate() {
            let Some(injected) = &mut self.faults else { break };
            let fate = injected.sending.next_fate();
            let overtaken = injected.held.take();
            match fate {
                Fate::Lose => self.counters.fault_lost += 1,
                Fate::Hold => {
                    injected.held = Some(([head, payload].concat(), *target));
                }
                Fate::Pass => too_long |= self.send_all(head, payload, &[*target]) << at,
                Fate::Double => {
                    let both = self.send_all(head, payload, &[*target, *target]);
                    too_long |= u64::from(both != 0) << at;
                }
            }
            if let Some((bytes, target)) = overtaken
                && let Some((head, payload)) = bytes.split_at_checked(HEADER_LEN)
            {
                self.send_all(head, payload, &[target]);
            }
        }
        too_long
    }
}

/// The sealed header of a datagram with this payload.
pub fn seal(header: &Header, key: &FrameKey, payload: &[u8]) -> [u8; HEADER_LEN] {
    let mut header = *header;
    header.payload_len = payload.len() as u32;
    header.flags |= FLAG_CRC;
    header.payload_crc = payload_crc(payload);
    let mut sealed = [0; HEADER_LEN];
    key.seal(&header, &mut sealed);
    sealed
}

/// The same of a payload that has this seal, which is behind the header.
pub fn seal_with(header: &Header, tags: &FrameKey, payload: &[u8], seal: &Seal) -> [u8; HEADER_LEN + SEAL_LEN] {
    let (payload_len, flags) = (payload.len() as u32, header.flags & !FLAG_CRC | FLAG_SEALED);
    let header = Header { payload_len, flags, payload_crc: 0, ..*header };
    let (mut head, seal) = ([0; HEADER_LEN + SEAL_LEN], seal.to_bytes());
    let (bytes, behind) = head.split_at_mut(HEADER_LEN);
    if let Some(bytes) = bytes.first_chunk_mut() {
        header.emit(tags.tag_beside(&header, None, Some(&seal)), bytes);
    }
    behind.copy_from_slice(&seal);
    head
}

/// Takes single datagrams from a socket, and touches as little memory as possible. It is valid as
/// long as the socket is.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    pub(super) socket: RawFd,
    pub(super) local: SocketAddr,
}

impl Receiver {
    /// Begins a batch with the next datagram, if there is one. Its socket has to `account` for the
    /// batch.
    #[inline]
    pub fn has_come(self, batch: &mut RecvBatch) -> bool {
        match batch.first(self) {
            Ok(()) => true,
            // Nothing has come; or the receiver of an earlier datagram of ours has refused it,
            // which is that receiver's affair.
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNREFUSED) => false,
            // The call that receives the rest meets this error, too.
            Err(_) => true,
        }
    }
}

fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused)
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for DatagramSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Source for DatagramSocket {
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

/// Asks for the buffer beyond the system's limit if this process may, else up to the limit.
fn ask_recv_buffer(socket: &Socket, bytes: usize) -> io::Result<()> {
    let wanted = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    match option::set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wanted) {
        Ok(()) => Ok(()),
        Err(_) => socket.set_recv_buffer_size(bytes),
    }
}

fn forbid_fragments(socket: &Socket, local: SocketAddr) -> io::Result<()> {
    match local {
        SocketAddr::V4(_) => option::set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        SocketAddr::V6(_) => option::set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
    }
}

/// A socket of the IPv6 family reaches IPv4 hosts by their mapped addresses.
fn reachable(target: SocketAddr, local: SocketAddr) -> SocketAddr {
    match (target, local) {
        (SocketAddr::V4(v4), SocketAddr::V6(_)) => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        _ => target,
    }
}

/// A message header of no address, no memory and no flags.
fn zeroed() -> libc::mmsghdr {
    // SAFETY: a message header consists of integers and pointers, of which zero bytes are values.
    unsafe { mem::zeroed() }
}

/// The receive buffer of a socket for one far end, in bytes.
const ASIDE_BUFFER: usize = 256 << 10;
/// Payloads up to this are sent in one piece with their header.
const SHORT: usize = 512;
/// `enum sk_meminfo` of linux/sock_diag.h: its length, and where the drops stand.
const MEMINFO_WORDS: usize = 9;
const MEMINFO_DROPS: usize = 8;
