//! Datagrams over memory: whole frames, each behind its length.

use std::net::SocketAddr;
use std::sync::Arc;

use trib_wire::header::{DATAGRAM_MAX, HEADER_LEN};
use trib_wire::mode::SEAL_LEN;

use super::line::Line;
use super::ring::{Reader, Writer, damaged};
use super::segment::{Use, ring_len};
use crate::udp::{Datagram, Sent, UdpCounters};

/// The datagrams of one end of an edge.
#[derive(Debug)]
pub struct Records {
    /// Those that go to the far end.
    pub out: NearOutbox,
    /// Those that come from there.
    pub come: NearInbox,
}

/// Datagrams to the far end. One for which there is no room is lost and counted, as a socket's is;
/// the protocol repeats it.
pub struct NearOutbox {
    line: Arc<Line>,
    ring: Writer,
    counters: UdpCounters,
}

/// Datagrams from the far end.
pub struct NearInbox {
    ring: Reader,
    /// The datagram that is being looked at. It is copied before it is parsed.
    scratch: Vec<u8>,
    source: SocketAddr,
    counters: UdpCounters,
    /// Whether the log has been told that the far end damages the ring: it can do so at any time.
    is_told: bool,
}

impl Records {
    /// What comes is given the source `source`: the address at which the far end would take
    /// datagrams if no memory was shared.
    pub(super) fn new(line: Arc<Line>, source: SocketAddr) -> Records {
        let counters = UdpCounters::default();
        let come = Reader::new(line.clone(), Use::Records);
        let out = NearOutbox { ring: Writer::new(line.clone(), Use::Records), line, counters };
        Records { out, come: NearInbox { ring: come, scratch: Vec::new(), source, counters, is_told: false } }
    }
}

impl NearOutbox {
    /// The counts of what was sent.
    pub fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    /// Sends a frame whose header [`seal`](crate::udp::seal) has sealed.
    pub fn send(&mut self, head: &[u8], payload: &[u8]) -> Sent {
        let len = head.len() + payload.len();
        if len > LONGEST {
            self.counters.send_too_long += 1;
            return Sent::TooLong;
        }
        if self.ring.room().is_ok_and(|room| room >= framed(len)) {
            self.ring.copy_in(&(len as u64).to_ne_bytes());
            self.ring.copy_in(head);
            self.ring.copy_in(payload);
            self.ring.copy_in(&[0; 8][..framed(len) - 8 - len]);
            self.ring.show();
            self.line.ring_for_record();
            self.counters.sent += 1;
            self.counters.sent_bytes += len as u64;
        } else {
            self.counters.send_failed += 1;
        }
        Sent::Tried
    }
}

impl NearInbox {
    /// The counts of what has come.
    pub fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    /// The next datagram that has come, if it is a frame; what is none is counted and passed over.
    pub fn next(&mut self, rejected: &mut UdpCounters) -> Option<Datagram<'_>> {
        loop {
            let waiting = self.ring.waiting();
            if matches!(waiting, Ok(0)) {
                return None;
            }
            if !waiting.is_ok_and(|waiting| self.take(waiting)) {
                // Nothing in the ring can be believed any more. The datagrams are lost, and the
                // stream, which the far end has to use as well, tells what it is.
                if !std::mem::replace(&mut self.is_told, true) {
                    tracing::warn!("{}", damaged());
                }
                self.ring.skip_all();
                rejected.rejected_malformed += 1;
                return None;
            }
            self.counters.received += 1;
            self.counters.received_bytes += self.scratch.len() as u64;
            match Datagram::parse(&self.scratch, self.source) {
                Ok(_) => break,
                Err(error) => rejected.reject(error),
            }
        }
        Datagram::parse(&self.scratch, self.source).ok()
    }

    /// Copies the first of `waiting` bytes' datagrams. Returns false if there is no such thing.
    fn take(&mut self, waiting: usize) -> bool {
        let mut len = [0; 8];
        if waiting < len.len() {
            return false;
        }
        self.ring.copy_out(&mut len);
        let len = usize::try_from(u64::from_ne_bytes(len)).unwrap_or(usize::MAX);
        if len > LONGEST || framed(len) > waiting {
            return false;
        }
        self.scratch.resize(len, 0);
        self.ring.copy_out(&mut self.scratch);
        self.ring.skip(framed(len) - 8 - len);
        self.ring.release();
        true
    }
}

impl std::fmt::Debug for NearOutbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NearOutbox").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for NearInbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NearInbox").field("source", &self.source).finish_non_exhaustive()
    }
}

/// The bytes that a datagram takes in the ring: its length and itself, up to the next word.
fn framed(len: usize) -> usize {
    8 + len.next_multiple_of(8)
}

/// The longest datagram, which has the ring to itself. A job may ask for fragments that are that
/// long; so that several of them are under way at once, it should not.
const LONGEST: usize = ring_len(Use::Records) - 8;
const _: () = assert!(HEADER_LEN + SEAL_LEN + DATAGRAM_MAX as usize <= LONGEST);
