//! Datagrams received with one system call.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use trib_wire::auth::{FrameKey, check_payload};
use trib_wire::header::{FLAG_CRC, FLAG_SEALED, HEADER_LEN};
use trib_wire::mode::{SEAL_LEN, Seal};
use trib_wire::{Header, ParseError};

use super::address::{self, canonical};
use super::counters::UdpCounters;
use super::socket::Receiver;
use crate::fault::{Fate, Faults};

/// A datagram that is a frame with an intact payload; its tag is still to be verified.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The source that the datagram claims.
    pub source: SocketAddr,
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: &'a [u8],
    tag: u64,
    covered: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Whether its header was tagged with `key`, and the seal with it if there is one. What the
    /// payload is has still to be asked then ([`Self::seal`]).
    pub fn verify(&self, key: &FrameKey) -> Result<(), ParseError> {
        match self.covered.split_at_checked(HEADER_LEN) {
            Some((_, seal)) if !seal.is_empty() => {
                let seal = seal.first_chunk().ok_or(ParseError::Truncated)?;
                let tag = key.tag_beside(&self.header, None, Some(seal));
                if tag == self.tag { Ok(()) } else { Err(ParseError::BadTag) }
            }
            _ => key.verify(self.covered, self.tag),
        }
    }

    /// Its bytes, header included.
    pub fn bytes(&self) -> usize {
        self.covered.len() + self.payload.len()
    }

    /// The seal of its payload, if it has one.
    pub fn seal(&self) -> Option<Seal> {
        Seal::parse(self.covered.get(HEADER_LEN..)?).ok()
    }

    pub(crate) fn parse(bytes: &'a [u8], source: SocketAddr) -> Result<Datagram<'a>, ParseError> {
        let (header, tag) = Header::parse(bytes)?;
        let head_len = if header.is_sealed() { HEADER_LEN + SEAL_LEN } else { HEADER_LEN };
        let (covered, payload) = bytes.split_at_checked(head_len).ok_or(ParseError::Truncated)?;
        check_payload(&header, payload)?;
        match header.flags & (FLAG_CRC | FLAG_SEALED) {
            FLAG_CRC => {}
            FLAG_SEALED if !payload.is_empty() => drop(Seal::parse(&covered[HEADER_LEN..])?),
            0 if payload.is_empty() => {}
            _ => return Err(ParseError::BadField("flags")),
        }
        Ok(Datagram { source, header, payload, tag, covered })
    }
}

/// Memory for a batch of datagrams, used again and again.
pub struct RecvBatch {
    memory: Vec<u8>,
    size: usize,
    /// The arguments of the receive call. They are written once, because a call that finds nothing
    /// should cost as little as possible.
    messages: Vec<libc::mmsghdr>,
    _slices: Vec<libc::iovec>,
    names: Vec<libc::sockaddr_storage>,
    /// Length and source of each datagram of the last batch.
    got: Vec<(usize, SocketAddr)>,
    /// Which of them are handed over, and in which order.
    order: Vec<usize>,
}

// SAFETY: the pointers in `messages` and `_slices` lead to the batch's own memory on the heap,
// which does not move with the batch.
unsafe impl Send for RecvBatch {}

impl RecvBatch {
    /// Room for `count` datagrams, 1 to 32, with `payload` bytes of payload each; longer ones are
    /// rejected.
    ///
    /// # Panics
    /// If the count is out of range.
    pub fn new(count: usize, payload: usize) -> RecvBatch {
        assert!((1..=BATCH_MAX).contains(&count), "a batch has 1 to 32 datagrams");
        // There is room for one byte more, to tell a datagram that fits from one that was cut.
        let size = (HEADER_LEN + SEAL_LEN + payload + 1).next_multiple_of(8);
        let mut memory = vec![0; size * count];
        // SAFETY: addresses consist of integers, of which zero bytes are values; a message header
        // consists of integers and pointers, which may be null.
        let mut names = vec![unsafe { mem::zeroed::<libc::sockaddr_storage>() }; count];
        let slice = |bytes: &mut [u8]| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut slices: Vec<libc::iovec> = memory.chunks_exact_mut(size).map(slice).collect();
        let message = |(name, slice): (&mut libc::sockaddr_storage, &mut libc::iovec)| {
            // SAFETY: as above.
            let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
            message.msg_hdr.msg_name = (name as *mut libc::sockaddr_storage).cast();
            message.msg_hdr.msg_namelen = NAME_LEN;
            message.msg_hdr.msg_iov = slice;
            message.msg_hdr.msg_iovlen = 1;
            message
        };
        let messages = names.iter_mut().zip(&mut slices).map(message).collect();
        RecvBatch {
            memory,
            size,
            messages,
            _slices: slices,
            names,
            got: Vec::with_capacity(count),
            order: Vec::with_capacity(2 * count),
        }
    }

    /// Receives one datagram, without waiting. A new batch begins.
    #[inline(always)] // A look touches few pages.
    pub(super) fn first(&mut self, receiver: Receiver) -> Result<(), Errno> {
        self.got.clear();
        // SAFETY: the maker of the receiver keeps the socket open.
        let socket = unsafe { BorrowedFd::borrow_raw(receiver.socket) };
        let slot = &mut self.memory[..self.size];
        let (_, len, source) = net::recvfrom(socket, slot, RecvFlags::DONTWAIT | RecvFlags::TRUNC)?;
        self.push(len.min(self.size), source.and_then(|source| source.try_into().ok()), receiver);
        Ok(())
    }

    /// Receives what else has come, without waiting, as long as there is room.
    pub(super) fn rest(&mut self, receiver: Receiver) -> io::Result<()> {
        let have = self.got.len();
        let messages = &mut self.messages[have..];
        if messages.is_empty() {
            return Ok(());
        }
        // SAFETY: every message leads to memory of its own in this batch, and names its length.
        let got = unsafe {
            libc::recvmmsg(
                receiver.socket,
                messages.as_mut_ptr(),
                messages.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
                core::ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        for at in have..have + got {
            self.messages[at].msg_hdr.msg_namelen = NAME_LEN;
            // SAFETY: the kernel wrote the source of the datagram there.
            let source = unsafe { address::from_kernel(&self.names[at]) };
            self.push(self.messages[at].msg_len as usize, source, receiver);
        }
        Ok(())
    }

    fn push(&mut self, len: usize, source: Option<SocketAddr>, receiver: Receiver) {
        // A datagram whose source is no IP address does not occur; it would be rejected as unknown.
        self.got.push((len, source.map_or(receiver.local, canonical)));
    }

    /// Datagrams of the batch.
    pub(super) fn len(&self) -> usize {
        self.got.len()
    }

    /// Lengths of the datagrams of the last batch.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.got.iter().map(|(len, _)| *len)
    }

    /// The frames of the last batch; a datagram that is not a frame is counted.
    pub fn frames<'a>(&'a self, counters: &'a mut UdpCounters) -> impl Iterator<Item = Datagram<'a>> + 'a {
        self.order.iter().filter_map(move |at| {
            let (len, source) = self.got[*at];
            let bytes = &self.memory[at * self.size..][..len.min(self.size)];
            Datagram::parse(bytes, source).map_err(|error| counters.reject(error)).ok()
        })
    }

    pub(super) fn arrange(&mut self, faults: Option<&mut Faults>, counters: &mut UdpCounters) {
        self.order.clear();
        let Some(faults) = faults else {
            self.order.extend(0..self.got.len());
            return;
        };
        let mut held = None;
        for at in 0..self.got.len() {
            match faults.next_fate() {
                Fate::Lose => counters.fault_lost += 1,
                Fate::Double => self.order.extend([at, at]),
                Fate::Hold if held.is_none() => {
                    held = Some(at);
                    continue;
                }
                Fate::Pass | Fate::Hold => self.order.push(at),
            }
            self.order.extend(held.take());
        }
        self.order.extend(held);
    }
}

/// The largest number of datagrams in one receive call.
const BATCH_MAX: usize = 32;
const NAME_LEN: libc::socklen_t = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
