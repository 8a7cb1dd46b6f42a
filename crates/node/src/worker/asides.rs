//! Sockets for far ends that send more datagrams than their share.
//!
//! All jobs of a worker have one datagram socket, and so one queue in the kernel: who fills it
//! makes others lose theirs. Where jobs share a worker and more than half of a full turn came from
//! one address, that address gets a socket of its own, bound to the same port and connected to it.
//! The kernel prefers that one for what comes from there, so the far end notices nothing: it has a
//! queue of its own, which is short, and of which a few are taken in a round.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use mio::unix::SourceFd;
use mio::{Interest, Registry};
use rustc_hash::FxHashMap;
use trib_transport::udp::{DatagramSocket, RecvBatch};
use trib_wire::header::HEADER_LEN;

use super::ASIDES;
use crate::counters::{self, Counters};

/// These sockets, and who has sent how much in this turn.
#[derive(Default)]
pub(super) struct Asides {
    sockets: Vec<Aside>,
    /// Memory for what is taken in a round.
    batch: Option<Box<RecvBatch>>,
    /// Datagrams of this turn, by source.
    sources: FxHashMap<SocketAddr, usize>,
    /// The next one to be read.
    turn: usize,
    /// How many there have been.
    opened: u64,
    /// Datagrams, and bytes of them, that came through those that are closed.
    past: (u64, u64),
}

struct Aside {
    peer: SocketAddr,
    socket: DatagramSocket,
    /// Whether anything has come since housekeeping looked.
    in_use: bool,
}

impl Asides {
    /// A turn of the worker's socket begins.
    pub(super) fn begin_turn(&mut self) {
        self.sources.clear();
    }

    /// A datagram has come from here through the worker's socket.
    pub(super) fn note(&mut self, source: SocketAddr) {
        *self.sources.entry(source).or_default() += 1;
    }

    /// The turn has brought all that a turn may, which was `most`. If more than half of it is from
    /// one address, that gets a socket of its own.
    pub(super) fn end_full_turn(&mut self, most: usize, socket: &DatagramSocket, polled: &Registry) {
        let Some((peer, _)) = self.sources.iter().find(|(_, count)| **count > most / 2) else { return };
        if self.sockets.len() == ASIDES_MAX || self.sockets.iter().any(|aside| aside.peer == *peer) {
            return;
        }
        let opened = socket.aside(*peer).and_then(|aside| {
            polled.register(&mut SourceFd(&aside.as_raw_fd()), ASIDES, Interest::READABLE)?;
            Ok(Aside { peer: *peer, socket: aside, in_use: true })
        });
        match opened {
            Ok(aside) => {
                tracing::warn!(%peer, "sends more datagrams than its share, and gets a queue of its own");
                self.sockets.push(aside);
                self.opened += 1;
            }
            Err(error) => tracing::debug!(%peer, %error, "no socket of its own"),
        }
    }

    /// Takes a few datagrams from the next of these sockets that has any. The batch is to be put
    /// back.
    pub(super) fn recv(&mut self) -> io::Result<Option<Box<RecvBatch>>> {
        let mut batch = self.batch.take().unwrap_or_else(|| Box::new(RecvBatch::new(BATCH, DATAGRAM_MAX)));
        for _ in 0..self.sockets.len() {
            self.turn = (self.turn + 1) % self.sockets.len();
            let aside = &mut self.sockets[self.turn];
            if aside.socket.recv(&mut batch)? > 0 {
                aside.in_use = true;
                return Ok(Some(batch));
            }
        }
        self.batch = Some(batch);
        Ok(None)
    }

    /// Puts the batch back.
    pub(super) fn put_batch(&mut self, batch: Box<RecvBatch>) {
        self.batch = Some(batch);
    }

    /// Closes those that have brought nothing since the last call. What comes from there later
    /// comes through the worker's socket again.
    pub(super) fn tidy(&mut self) {
        let past = &mut self.past;
        self.sockets.retain_mut(|aside| {
            if !aside.in_use {
                let counters = aside.socket.counters();
                *past = (past.0 + counters.received, past.1 + counters.received_bytes);
            }
            std::mem::take(&mut aside.in_use)
        });
        self.turn = 0;
    }

    /// Adds what came through them, and how many there have been.
    pub(super) fn add_to(&self, counters: &mut Counters) {
        let live = self.sockets.iter().map(|aside| aside.socket.counters());
        let (received, bytes) = live.fold(self.past, |sum, of| (sum.0 + of.received, sum.1 + of.received_bytes));
        counters::add(counters, "datagrams_in", received);
        counters::add(counters, "datagram_bytes_in", bytes);
        counters::add(counters, "datagram_queues_apart", self.opened);
    }
}

/// The number of datagrams that are taken in a round: each may have to be answered.
const BATCH: usize = 8;
/// The longest payload that is taken, in bytes. It is what fits into a UDP datagram, so a grant's
/// fragment always does.
pub(super) const DATAGRAM_MAX: usize = 65_507 - HEADER_LEN;
/// The number of far ends that may have a queue of their own. Beyond them others share one again.
const ASIDES_MAX: usize = 32;
