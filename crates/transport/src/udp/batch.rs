//! Datagrams received with one system call.

use std::net::SocketAddr;

use trib_wire::auth::{FrameKey, check_payload};
use trib_wire::header::{FLAG_CRC, HEADER_LEN};
use trib_wire::{Header, ParseError};

use super::counters::UdpCounters;
use crate::fault::{Fate, Faults};

/// A datagram that is a frame with an intact payload; its tag is still to be verified.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Where it says it comes from.
    pub source: SocketAddr,
    /// Its header.
    pub header: Header,
    /// Its payload.
    pub payload: &'a [u8],
    tag: u64,
    covered: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Whether it was sealed with `key`.
    pub fn verify(&self, key: &FrameKey) -> Result<(), ParseError> {
        key.verify(self.covered, self.tag)
    }

    pub(super) fn parse(bytes: &'a [u8], source: SocketAddr) -> Result<Datagram<'a>, ParseError> {
        let (header, tag) = Header::parse(bytes)?;
        let (covered, payload) = bytes.split_at(HEADER_LEN);
        check_payload(&header, payload)?;
        if !payload.is_empty() && header.flags & FLAG_CRC == 0 {
            return Err(ParseError::BadField("flags"));
        }
        Ok(Datagram { source, header, payload, tag, covered })
    }
}

/// Memory for a batch of datagrams, used again and again.
pub struct RecvBatch {
    pub(super) memory: Box<[u8]>,
    pub(super) size: usize,
    /// Length and source of each datagram of the last batch.
    pub(super) got: Vec<(usize, SocketAddr)>,
    /// Which of them are seen, in which order.
    order: Vec<usize>,
}

impl RecvBatch {
    /// Room for `count` datagrams with `payload` bytes of payload each (longer ones are rejected). A receive call takes
    /// at most 32.
    pub fn new(count: usize, payload: usize) -> RecvBatch {
        // One byte more, to tell a datagram that fits from one that was cut.
        let size = (HEADER_LEN + payload + 1).next_multiple_of(8);
        RecvBatch {
            memory: vec![0; size * count].into_boxed_slice(),
            size,
            got: Vec::with_capacity(count),
            order: Vec::with_capacity(2 * count),
        }
    }

    /// Most datagrams of a batch.
    pub fn capacity(&self) -> usize {
        self.memory.len() / self.size
    }

    /// The frames of the last batch; what is no frame is counted.
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
