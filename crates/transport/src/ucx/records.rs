//! Datagrams over UCX: whole frames, each a message.

use std::net::SocketAddr;
use std::sync::Arc;

use super::LONGEST;
use super::edge::{Edge, Line};
use super::worker::UcxWorker;
use crate::udp::{Datagram, Sent, UdpCounters};

/// Datagrams to the far end. One for which there is no room is lost and counted, as a socket's is;
/// the protocol repeats it.
pub struct UcxOutbox {
    worker: UcxWorker,
    edge: Arc<Edge>,
    counters: UdpCounters,
}

/// Datagrams from the far end.
pub struct UcxInbox {
    edge: Arc<Edge>,
    /// The datagram that is being looked at.
    scratch: Vec<u8>,
    source: SocketAddr,
    counters: UdpCounters,
}

/// Both ends of the datagrams of an edge. What comes is given the source `source`.
pub(super) fn boxes(worker: &UcxWorker, edge: &Arc<Edge>, source: SocketAddr) -> (UcxOutbox, UcxInbox) {
    let counters = UdpCounters::default();
    let come = UcxInbox { edge: edge.clone(), scratch: Vec::new(), source, counters };
    (UcxOutbox { worker: worker.clone(), edge: edge.clone(), counters }, come)
}

impl UcxOutbox {
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
        let turn = self.worker.turn();
        match self.edge.put_datagram([head, payload]) {
            Some(post) => {
                self.worker.post(&turn, &self.edge, Line::Datagrams, post);
                self.counters.sent += 1;
                self.counters.sent_bytes += len as u64;
            }
            None => self.counters.send_failed += 1,
        }
        Sent::Tried
    }
}

impl UcxInbox {
    /// The counts of what has come.
    pub fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    /// The next datagram that has come, if it is a frame; what is none is counted and passed over.
    pub fn next(&mut self, rejected: &mut UdpCounters) -> Option<Datagram<'_>> {
        loop {
            if !self.edge.has_records() {
                return None;
            }
            let scratch = &mut self.scratch;
            self.edge.with(|state| {
                // Only whole datagrams are put there.
                let mut len = [0; 8];
                len.iter_mut().zip(state.inbox.drain(..8)).for_each(|(to, from)| *to = from);
                scratch.clear();
                scratch.extend(state.inbox.drain(..u64::from_ne_bytes(len) as usize));
            });
            self.counters.received += 1;
            self.counters.received_bytes += self.scratch.len() as u64;
            match Datagram::parse(&self.scratch, self.source) {
                Ok(_) => break,
                Err(error) => rejected.reject(error),
            }
        }
        Datagram::parse(&self.scratch, self.source).ok()
    }
}

impl std::fmt::Debug for UcxOutbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UcxOutbox").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for UcxInbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UcxInbox").field("source", &self.source).finish_non_exhaustive()
    }
}
