//! The datagram path of a worker. It finds out to which job a datagram belongs, whether it may come
//! from its source, and whether it is genuine.
//!
//! Everything is checked before a byte is taken, and nothing is ever answered to a datagram's
//! source: what a core sends goes to the addresses that the handshakes have proven.

use trib_proto::node::Frame;
use trib_proto::{Nanos, Path};
use trib_transport::landing::Landing;
use trib_transport::udp::{Datagram, DatagramSocket, RecvBatch, UdpCounters};
use trib_waiting::Turns;
use trib_wire::body::BodyBytes;
use trib_wire::{Body, Kind};

use super::asides::{Asides, DATAGRAM_MAX};
use super::hosted::{Hosted, Slot};
use super::{Worker, guard};
use crate::counters::{self, Counters, Tally};
use crate::job::{Job, LinkNumber, Output, PARENT, belongs, core_link};

/// The datagram socket and what goes with it.
pub(super) struct Datagrams {
    pub socket: DatagramSocket,
    batch: Option<Box<RecvBatch>>,
    pub rejected: UdpCounters,
    touched: Vec<Slot>,
    pub asides: Asides,
    /// Whether more has come than one turn allows.
    pub unfinished: bool,
}

impl Datagrams {
    pub(super) fn new(socket: DatagramSocket) -> Datagrams {
        Datagrams {
            socket,
            batch: Some(Box::new(RecvBatch::new(BATCH, DATAGRAM_MAX))),
            rejected: UdpCounters::default(),
            touched: Vec::with_capacity(BATCH),
            asides: Asides::default(),
            unfinished: false,
        }
    }

    pub(super) fn add_to(&self, counters: &mut Counters) {
        let overflowed = self.socket.overflowed().unwrap_or(0);
        counters::add_datagrams(self.socket.counters(), &self.rejected, overflowed, counters);
        self.asides.add_to(counters);
    }
}

impl Worker {
    /// Takes what has come, a few batches at most. Returns whether anything had come. After a look
    /// that found something, poll may still report that.
    pub(super) fn on_datagrams(&mut self) -> bool {
        self.take_batches(false)
    }

    /// Offers the processor to other threads and looks whether anything has come, by datagrams or
    /// over memory. Returns whether it has; then it is handled.
    pub(super) fn look(&mut self, turns: &mut Turns) -> bool {
        let (receiver, near) = (self.datagrams.socket.receiver(), &self.near);
        let Some(batch) = &mut self.datagrams.batch else { return false };
        let mut begun = false;
        let found = turns.look(|| {
            near.has_come() || {
                begun = receiver.has_come(batch);
                begun
            }
        });
        self.clock.note(turns.last_look());
        if !found {
            return false;
        }
        let by_socket = begun && self.take_batches(true);
        self.on_near() || by_socket
    }

    /// Takes batches and returns whether any datagram was there. With `begun` the first batch has
    /// its one datagram already. It is handled before the socket is asked for more, because it may
    /// be the last one that a vector waited for.
    fn take_batches(&mut self, begun: bool) -> bool {
        self.datagrams.asides.begin_turn();
        if begun && let Some(mut batch) = self.datagrams.batch.take() {
            self.datagrams.socket.account(&mut batch);
            self.on_batch(&batch);
            self.datagrams.batch = Some(batch);
        }
        self.datagrams.unfinished = true;
        for turn in 0..TURN {
            let Some(mut batch) = self.datagrams.batch.take() else { return false };
            let got = self.datagrams.socket.recv(&mut batch);
            let got = got.unwrap_or_else(|error| {
                tracing::error!(%error, "cannot receive datagrams");
                0
            });
            if got > 0 {
                self.on_batch(&batch);
            }
            self.datagrams.batch = Some(batch);
            if got < BATCH {
                self.datagrams.unfinished = false;
                return begun || turn > 0 || got > 0;
            }
        }
        if self.hosted.is_shared() {
            let Datagrams { socket, asides, .. } = &mut self.datagrams;
            asides.end_full_turn(TURN * BATCH, socket, self.poll.registry());
        }
        true
    }

    /// Takes a few of what those have sent who have a queue of their own. Returns whether there may
    /// be more.
    pub(super) fn on_asides(&mut self) -> bool {
        match self.datagrams.asides.recv() {
            Ok(Some(batch)) => {
                self.on_batch(&batch);
                self.datagrams.asides.put_batch(batch);
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::debug!(%error, "cannot receive datagrams");
                false
            }
        }
    }

    fn on_batch(&mut self, batch: &RecvBatch) {
        let now = self.now();
        let is_shared = self.hosted.is_shared();
        let Datagrams { socket, rejected, touched, asides, .. } = &mut self.datagrams;
        for datagram in batch.frames(rejected) {
            if is_shared {
                asides.note(datagram.source);
            }
            let mut found = false;
            let mut n = 0;
            while let Some((slot, link)) = addressee(&self.hosted, &datagram, n) {
                n += 1;
                found = true;
                let Some(job) = self.hosted.get_mut(slot).filter(|job| job.io.broken.is_none()) else { continue };
                if let Err(why) = guard(|| take(job, link, &datagram, now, socket, &mut self.tally)) {
                    job.io.broken = Some(why);
                }
                if !touched.contains(&slot) {
                    touched.push(slot);
                }
            }
            if !found {
                self.tally.rejected_unknown_job += 1;
            }
        }
        while let Some(slot) = self.datagrams.touched.pop() {
            self.settle(slot);
        }
    }
}

/// The n-th logical node here that a datagram is for, and the link over which it came there.
/// Several children of one node may be on one worker, and a result for all of them concerns each.
fn addressee(hosted: &Hosted, datagram: &Datagram<'_>, n: usize) -> Option<(Slot, LinkNumber)> {
    let header = &datagram.header;
    match header.kind {
        Kind::Contribution | Kind::Probe if n == 0 => {
            hosted.find((header.job, header.node)).map(|slot| (slot, usize::from(header.child.0)))
        }
        Kind::Contribution | Kind::Probe => None,
        _ => hosted.nth_below(header.job, header.node, header.child, n).map(|slot| (slot, PARENT)),
    }
}

/// Hands a datagram to its job's core if the datagram passes all checks.
pub(super) fn take(
    job: &mut Job,
    link: LinkNumber,
    datagram: &Datagram<'_>,
    now: Nanos,
    socket: &mut DatagramSocket,
    tally: &mut Tally,
) {
    if !check(job, link, datagram, tally) {
        return;
    }
    let (header, payload) = (&datagram.header, datagram.payload);
    job.io.links.count_datagram_in(link, datagram.bytes());
    let (body, data) = if !header.kind.carries_data() {
        let Some(body) = read_body(job, link, datagram, tally) else { return };
        (body, None)
    } else if payload.is_empty() {
        (Body::None, None)
    } else {
        let Some(mut buffer) = job.io.buffers.take(Path::Datagram, payload.len()) else {
            tally.pool_exhausted += 1;
            return;
        };
        buffer.bytes_mut().copy_from_slice(payload);
        if !open(job, link, datagram, buffer.bytes_mut(), tally) {
            return;
        }
        tally.payload_bytes_in += payload.len() as u64;
        (Body::None, Some(buffer))
    };
    let mut out = Output { io: &mut job.io, udp: socket, tally };
    let frame = Frame { path: Path::Datagram, header, body: &body, data };
    job.core.on_frame(now, core_link(link), frame, &mut out);
}

/// Whether the datagram is for this job, from that link, with a right header. Otherwise it is
/// counted.
fn check(job: &Job, link: LinkNumber, datagram: &Datagram<'_>, tally: &mut Tally) -> bool {
    let header = &datagram.header;
    if !matches!(header.kind, Kind::Contribution | Kind::Probe | Kind::Result | Kind::Held | Kind::Nack) {
        tally.rejected_kind += 1;
        return false;
    }
    if header.epoch != job.io.identity.epoch {
        tally.rejected_epoch += 1;
        return false;
    }
    let Some(key) = job.io.links.datagram_key(link).filter(|_| belongs(&job.io.identity, core_link(link), header))
    else {
        tally.rejected_child += 1;
        return false;
    };
    if job.io.links.datagrams(link) != Some(datagram.source) {
        tally.rejected_source += 1;
        return false;
    }
    if datagram.verify(key).is_err() {
        tally.rejected_tag += 1;
        return false;
    }
    true
}

/// Checks the payload of a datagram whose header is right, and decrypts it where `payload`, a copy
/// of it, is. What is not what the far end has sealed is counted.
fn open(job: &mut Job, link: LinkNumber, datagram: &Datagram<'_>, payload: &mut [u8], tally: &mut Tally) -> bool {
    let is_right = match (job.io.links.opener(link), datagram.seal()) {
        (None, seal) => seal.is_none(),
        (Some(_), None) => payload.is_empty(),
        (Some(opener), Some(seal)) => opener.open(&seal, payload).is_ok(),
    };
    tally.rejected_tag += u64::from(!is_right);
    is_right
}

/// The body of a datagram whose header is right. One that is none is counted.
fn read_body(job: &mut Job, link: LinkNumber, datagram: &Datagram<'_>, tally: &mut Tally) -> Option<Body> {
    let mut bytes = BodyBytes::from_slice(datagram.payload);
    if !open(job, link, datagram, &mut bytes, tally) {
        return None;
    }
    let body = Body::parse(datagram.header.kind, &bytes);
    tally.rejected_body += u64::from(body.is_err());
    body.ok()
}

/// The number of datagrams that one receive call takes.
const BATCH: usize = 32;
/// The number of receive calls in one turn.
const TURN: usize = 8;
