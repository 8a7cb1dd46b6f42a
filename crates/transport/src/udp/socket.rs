//! The datagram socket.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use trib_wire::Header;
use trib_wire::auth::{FrameKey, payload_crc};
use trib_wire::header::{FLAG_CRC, HEADER_LEN};
use trib_wire::ids::CHILDREN_MAX;

use super::batch::RecvBatch;
use super::counters::UdpCounters;
use crate::fault::{Fate, FaultPlan, Faults};
use crate::option;

/// Receive buffer that a node asks for, bytes; `recv_buffer` tells what the kernel granted.
pub const RECV_BUFFER_WANTED: usize = 8 << 20;

/// A non-blocking datagram socket. Datagrams are never fragmented on the way (rule R5): one that is too long for the
/// path is counted, not cut.
pub struct DatagramSocket {
    socket: UdpSocket,
    local: SocketAddr,
    recv_buffer: usize,
    counters: UdpCounters,
    faults: Option<Box<Shaken>>,
}

/// Faults of both directions, and a datagram that waits to be overtaken.
struct Shaken {
    sending: Faults,
    receiving: Faults,
    held: Option<(Vec<u8>, SocketAddr)>,
}

impl DatagramSocket {
    /// Binds to `local` (port 0: any) and asks the kernel for a receive buffer of `recv_buffer` bytes. Reads the fault
    /// hook from the environment.
    pub fn bind(local: SocketAddr, recv_buffer: usize) -> io::Result<DatagramSocket> {
        let plan = FaultPlan::from_env().map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))?;
        DatagramSocket::bind_with_faults(local, recv_buffer, plan)
    }

    /// As `bind`, with these faults.
    pub fn bind_with_faults(
        local: SocketAddr,
        recv_buffer: usize,
        plan: Option<FaultPlan>,
    ) -> io::Result<DatagramSocket> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
        ask_recv_buffer(&socket, recv_buffer)?;
        forbid_fragments(&socket, local)?;
        socket.bind(&local.into())?;
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr()?;
        let recv_buffer = SockRef::from(&socket).recv_buffer_size()?;
        let salt = u64::from(local.port());
        Ok(DatagramSocket {
            socket,
            local,
            recv_buffer,
            counters: UdpCounters::default(),
            faults: plan.map(|plan| {
                Box::new(Shaken { sending: plan.start(2 * salt), receiving: plan.start(2 * salt + 1), held: None })
            }),
        })
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

    /// Seals a frame once and sends it to every address. What the kernel does not take now is counted and lost, as
    /// anywhere else on the way.
    ///
    /// # Panics
    /// If there are more addresses than a node may have children.
    pub fn send(&mut self, header: &Header, key: &FrameKey, payload: &[u8], to: &[SocketAddr]) {
        assert!(to.len() <= CHILDREN_MAX);
        let mut header = *header;
        header.payload_len = payload.len() as u32;
        header.flags |= FLAG_CRC;
        header.payload_crc = payload_crc(payload);
        let mut sealed = [0; HEADER_LEN];
        key.seal(&header, &mut sealed);
        if self.faults.is_some() {
            self.send_shaken(&sealed, payload, to);
        } else {
            self.send_all(&sealed, payload, to);
        }
    }

    /// Takes what has come, at most a batch; the number of datagrams.
    pub fn recv(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        batch.got.clear();
        let count = batch.capacity().min(BATCH_MAX);
        // Only what a call uses is written: a rank that waits makes this call several times an operation.
        let mut names = [const { MaybeUninit::<libc::sockaddr_storage>::uninit() }; BATCH_MAX];
        let mut slices = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH_MAX];
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH_MAX];
        for (at, memory) in batch.memory.chunks_exact_mut(batch.size).take(count).enumerate() {
            let slice = slices[at].write(libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() });
            let mut message: libc::mmsghdr = zeroed();
            message.msg_hdr.msg_name = names[at].as_mut_ptr().cast();
            message.msg_hdr.msg_namelen = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            message.msg_hdr.msg_iov = slice;
            message.msg_hdr.msg_iovlen = 1;
            messages[at].write(message);
        }
        // SAFETY: the first `count` messages are written, and each points to memory of its own in `batch` and `names`, which
        // outlive the call.
        let got = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
                core::ptr::null_mut(),
            )
        };
        let Ok(got) = usize::try_from(got) else {
            let error = io::Error::last_os_error();
            batch.arrange(None, &mut self.counters);
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                // An earlier datagram of ours was refused by its receiver; that is the receiver's affair.
                io::ErrorKind::ConnectionRefused => Ok(0),
                _ => Err(error),
            };
        };
        for (message, name) in messages.iter().zip(&names).take(got) {
            // SAFETY: the kernel received into this message, and wrote its source; the storage is large enough for any family,
            // and the bytes that a family does not have are not looked at.
            let (len, source) = unsafe { (message.assume_init_ref().msg_len as usize, source_address(name.as_ptr())) };
            self.counters.received += 1;
            self.counters.received_bytes += len as u64;
            // A datagram whose source is no IP address does not occur; it would be rejected as unknown.
            let source = source.unwrap_or(self.local);
            batch.got.push((len, source));
        }
        let receiving = self.faults.as_mut().map(|shaken| &mut shaken.receiving);
        batch.arrange(receiving, &mut self.counters);
        Ok(got)
    }

    fn send_all(&mut self, sealed: &[u8; HEADER_LEN], payload: &[u8], to: &[SocketAddr]) {
        let mut slices = [
            libc::iovec { iov_base: sealed.as_ptr().cast_mut().cast(), iov_len: sealed.len() },
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
        while !rest.is_empty() {
            // SAFETY: names, slices and the bytes they point to outlive the call, and the kernel only reads them.
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
                    self.counters.sent_bytes += (sent * (HEADER_LEN + payload.len())) as u64;
                    sent
                }
                Err(_) => match io::Error::last_os_error() {
                    e if e.kind() == io::ErrorKind::WouldBlock => {
                        self.counters.send_would_block += rest.len() as u64;
                        return;
                    }
                    e if e.kind() == io::ErrorKind::Interrupted => 0,
                    e if e.raw_os_error() == Some(libc::EMSGSIZE) => {
                        self.counters.send_too_long += 1;
                        1
                    }
                    _ => {
                        self.counters.send_failed += 1;
                        1
                    }
                },
            };
            rest = &mut rest[done..];
        }
    }

    fn send_shaken(&mut self, sealed: &[u8; HEADER_LEN], payload: &[u8], to: &[SocketAddr]) {
        for target in to {
            let Some(shaken) = &mut self.faults else {
                return;
            };
            let fate = shaken.sending.next_fate();
            let overtaken = shaken.held.take();
            match fate {
                Fate::Lose => self.counters.fault_lost += 1,
                Fate::Hold => {
                    shaken.held = Some(([sealed, payload].concat(), *target));
                }
                Fate::Pass => self.send_all(sealed, payload, &[*target]),
                Fate::Double => {
                    self.send_all(sealed, payload, &[*target, *target]);
                }
            }
            if let Some((bytes, target)) = overtaken
                && let Some((sealed, payload)) = bytes.split_first_chunk::<HEADER_LEN>()
            {
                self.send_all(sealed, payload, &[target]);
            }
        }
    }
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

/// Beyond the system's limit if we may, else up to it.
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

/// # Safety
/// `name` was written by the kernel as the source of a datagram.
unsafe fn source_address(name: *const libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: every address begins with its family.
    match libc::c_int::from(unsafe { (*name).ss_family }) {
        libc::AF_INET => {
            // SAFETY: the family says so, and sockaddr_storage is large and aligned enough for any of them.
            let v4 = unsafe { &*name.cast::<libc::sockaddr_in>() };
            let ip = u32::from_be(v4.sin_addr.s_addr);
            Some(SocketAddr::new(core::net::Ipv4Addr::from(ip).into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*name.cast::<libc::sockaddr_in6>() };
            let ip = core::net::Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddr::new(ip.to_canonical(), u16::from_be(v6.sin6_port)))
        }
        _ => None,
    }
}

/// A message header of no address, no memory and no flags.
fn zeroed() -> libc::mmsghdr {
    // SAFETY: integers and pointers, of which zero bytes are values.
    unsafe { mem::zeroed() }
}

/// Most datagrams of one receive call.
const BATCH_MAX: usize = 32;
/// `enum sk_meminfo` of linux/sock_diag.h: its length, and where the drops stand.
const MEMINFO_WORDS: usize = 9;
const MEMINFO_DROPS: usize = 8;
