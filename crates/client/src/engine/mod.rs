//! The engine: leaf core, sockets and the caller's memory behind one lock.
//!
//! Map: `driver` (what the core asks for), `operation` (what is remembered of an operation), `poll` (sleeping),
//! `wait` (how application threads wait), `helper` (the one thread of ours).
//!
//! ```text
//!   post, test, wait        helper thread
//!          \                  /
//!           +---- lock ------+
//!                  |
//!    sockets --> LeafCore --> Driver --> sockets, memory, requests
//! ```

mod driver;
mod helper;
mod operation;
mod poll;
mod wait;

use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use trib_proto::leaf::{GroupId, LeafError, Slice};
use trib_proto::{LeafConfig, LeafCore, Nanos, Path};
use trib_transport::EdgeKeys;
use trib_transport::clock::Clock;
use trib_transport::landing::UserLanding;
use trib_transport::patience::Patience;
use trib_transport::tcp::{Arrived, Due, FrameSink, LowWater, Place, ReadEnd, StreamError, StreamReader, StreamSocket};
use trib_transport::udp::{DatagramSocket, RecvBatch, UdpCounters};
use trib_wire::{Body, ChildIndex, Header, RankList, Signature};

use crate::counters::Counters;
use crate::error::Error;
use crate::fork::ForkGuard;
use crate::group::GroupState;
use crate::memory::Memory;
use crate::params::Progress;
use crate::request::Completion;
use driver::{Arriving, Driver};
use operation::{Incoming, Operation};
use poll::{Ready, Sockets, Waker};
use wait::poisoned;

/// What all handles of one context share.
pub(crate) struct Shared {
    pub(crate) fork: ForkGuard,
    engine: Mutex<Engine>,
    /// Requests have ended, or a poller is wanted.
    changed: Condvar,
    /// Wakes the poller.
    waker: Waker,
    helper_waker: Waker,
    progress: Option<Progress>,
}

/// What sleeps in `poll` with the engine unlocked.
#[derive(Clone, Copy, Debug)]
struct Watch {
    write: bool,
    until: Nanos,
}

/// A sleep on the sockets.
#[derive(Clone, Copy, Debug)]
struct Nap {
    sockets: Sockets,
    until: Nanos,
    /// When the stream is no longer trusted to bring what its low-water mark waits for.
    marked: Option<Nanos>,
}

/// Everything behind the lock.
pub(crate) struct Engine {
    core: LeafCore,
    driver: Driver,
    link: Option<Link>,
    config: LeafConfig,
    batch: Option<Box<RecvBatch>>,
    /// Those of threads that look for themselves.
    singles: Vec<RecvBatch>,
    rejected: UdpCounters,
    clock: Clock,
    patience: Patience,
    /// Application threads inside a wait.
    waiters: u32,
    /// Those of them that sleep beside the poller.
    followers: u32,
    /// The one that sleeps on the sockets.
    poller: Option<Watch>,
    /// When the application last called.
    active: Nanos,
    /// When it last left something under way.
    left_busy: Nanos,
    /// When the helper thread looks by itself.
    helper_until: Nanos,
    stopping: bool,
}

/// The stream connection to the node.
struct Link {
    socket: StreamSocket,
    reader: StreamReader<Incoming>,
    low_water: LowWater,
    /// Frames wait for room in the socket.
    blocked: bool,
}

/// The connected sockets that an engine starts with.
pub(crate) struct Sources {
    pub(crate) stream: StreamSocket,
    pub(crate) datagrams: DatagramSocket,
    pub(crate) node: SocketAddr,
    pub(crate) keys: EdgeKeys,
}

impl Shared {
    /// Starts an engine and its helper thread.
    pub(crate) fn start(
        config: LeafConfig,
        sources: Sources,
        progress: Option<Progress>,
    ) -> Result<(Arc<Shared>, JoinHandle<()>), Error> {
        let failed = |what: &str, cause: std::io::Error| Error::Memory(format!("cannot make {what}: {cause}"));
        let waker = || Waker::new().map_err(|cause| failed("a wake-up event", cause));
        let shared = Arc::new(Shared {
            fork: ForkGuard::new(),
            engine: Mutex::new(Engine::new(config, sources)),
            changed: Condvar::new(),
            waker: waker()?,
            helper_waker: waker()?,
            progress,
        });
        let helper = helper::start(shared.clone()).map_err(|cause| failed("the helper thread", cause))?;
        Ok((shared, helper))
    }

    /// Locks the engine for a call of the application's.
    pub(crate) fn enter(&self) -> Result<MutexGuard<'_, Engine>, Error> {
        self.fork.check()?;
        let engine = self.lock()?;
        if engine.stopping {
            return Err(Error::Invalid("the context is finalized".into()));
        }
        Ok(engine)
    }

    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Engine>, Error> {
        self.engine.lock().map_err(|_| poisoned())
    }

    /// Drives progress once, without waiting.
    pub(crate) fn poll(&self) -> Result<(), Error> {
        let mut engine = self.enter()?;
        engine.progress(Ready::ALL);
        self.leave(engine);
        Ok(())
    }

    /// Posts an operation.
    pub(crate) fn post(&self, group: GroupId, signature: Signature, memory: Memory) -> Result<Arc<Completion>, Error> {
        let mut engine = self.enter()?;
        let posted = engine.post(group, signature, memory);
        engine.flush();
        self.leave(engine);
        posted
    }

    /// Posts an operation and waits for it.
    pub(crate) fn run(&self, group: GroupId, signature: Signature, memory: Memory) -> Result<(), Error> {
        let mut engine = self.enter()?;
        match engine.post(group, signature, memory) {
            Ok(completion) => self.wait_inside(engine, &completion, None),
            Err(error) => {
                self.leave(engine);
                Err(error)
            }
        }
    }

    /// Starts to make a group.
    pub(crate) fn create_group(&self, members: RankList, tag: u64, state: Arc<GroupState>) -> Result<GroupId, Error> {
        let mut engine = self.enter()?;
        let created = engine.create_group(members, tag, state);
        engine.flush();
        self.leave(engine);
        created
    }

    /// Leaves a group. After finalize, or in a forked child, there is nothing to leave.
    pub(crate) fn free_group(&self, group: GroupId) -> Result<(), Error> {
        self.fork.check()?;
        let mut engine = self.lock()?;
        if !engine.stopping {
            engine.free_group(group);
            engine.flush();
            self.leave(engine);
        }
        Ok(())
    }

    pub(crate) fn counters(&self) -> Result<Counters, Error> {
        Ok(self.enter()?.counters())
    }

    /// The tail of a group's last results on one path.
    pub(crate) fn tail(&self, group: GroupId, path: Path) -> Result<Vec<u8>, Error> {
        Ok(self.enter()?.driver.tails.get(group, path).to_vec())
    }

    /// Leaves every group, waits at most `linger` for what is queued, and closes the sockets. The helper thread ends.
    pub(crate) fn stop(&self, linger: Duration) -> Result<(), Error> {
        let mut engine = self.enter()?;
        for group in engine.driver.groups() {
            engine.free_group(group);
        }
        let end = engine.now() + Nanos(linger.as_nanos() as u64);
        loop {
            engine.progress(Ready::ALL);
            self.announce(&mut engine);
            let now = engine.now();
            if !engine.sockets().write || now >= end {
                break;
            }
            let sockets = engine.sockets();
            drop(engine);
            poll::sleep(&self.waker, sockets, end - now);
            engine = self.lock()?;
        }
        engine.stopping = true;
        engine.link = None;
        drop(engine);
        self.helper_waker.wake();
        Ok(())
    }
}

impl Engine {
    fn new(config: LeafConfig, sources: Sources) -> Engine {
        let Sources { stream, datagrams, node, keys } = sources;
        let reader = StreamReader::new(keys.down);
        let mut engine = Engine {
            core: LeafCore::new(config.clone()),
            driver: Driver::new(datagrams, node, keys),
            link: Some(Link { socket: stream, reader, low_water: LowWater::new(), blocked: false }),
            batch: Some(Box::new(RecvBatch::new(DATAGRAM_BATCH, datagram_max(&config)))),
            singles: Vec::new(),
            config,
            rejected: UdpCounters::default(),
            clock: Clock::start(),
            patience: Patience::new(wait::SPIN, u32::MAX),
            waiters: 0,
            followers: 0,
            poller: None,
            active: Nanos(0),
            left_busy: Nanos(0),
            helper_until: Nanos(0),
            stopping: false,
        };
        engine.core.on_link_up(Nanos(0), &mut engine.driver);
        engine
    }

    /// Reads the clock.
    fn now(&mut self) -> Nanos {
        Nanos(self.clock.read())
    }

    /// When it was last read: at the last post, look or return from a sleep.
    fn lately(&self) -> Nanos {
        Nanos(self.clock.last())
    }

    fn next_deadline(&self) -> Nanos {
        self.core.next_deadline()
    }

    fn heartbeat_half(&self) -> Nanos {
        Nanos(self.config.limits.heartbeat.0 / 2)
    }

    /// Whether something must go on while the application is elsewhere.
    fn is_busy(&self) -> bool {
        self.driver.is_running() || self.driver.is_joining() || !self.driver.writer.is_idle()
    }

    /// Before a sleep on the sockets that shall last until `until`. Afterwards comes `get_up`.
    fn lie_down(&mut self, until: Nanos) -> Nap {
        let mut nap = Nap { sockets: self.sockets(), until: until.min(self.next_deadline()), marked: None };
        let now = self.now();
        let Some(link) = &mut self.link else { return nap };
        let (sent, total) = self.core.results_due();
        let held = link.reader.held() as u64;
        let due = Due { now: sent.saturating_sub(held), total: total.saturating_sub(held) };
        nap.marked = link.low_water.arm(&link.socket, due).map(|span| now + Nanos(span.as_nanos() as u64));
        nap.until = nap.marked.map_or(nap.until, |end| nap.until.min(end));
        nap
    }

    /// The sleep is over.
    fn get_up(&mut self, nap: Nap, ready: Ready) {
        let now = self.now();
        if let (Some(end), Some(link)) = (nap.marked, &mut self.link)
            && (ready.stream || now >= end)
        {
            link.low_water.end(ready.stream);
        }
    }

    fn sockets(&self) -> Sockets {
        Sockets {
            datagram: Some(self.driver.datagrams.as_raw_fd()),
            stream: self.link.as_ref().map(|link| link.socket.as_raw_fd()),
            write: self.link.as_ref().is_some_and(|link| link.blocked),
        }
    }

    fn counters(&self) -> Counters {
        let sent = self.driver.datagrams.counters();
        let rejected = self.rejected.rejected_malformed
            + self.rejected.rejected_version
            + self.rejected.rejected_checksum
            + self.driver.counters.datagrams_rejected;
        Counters {
            datagrams_sent: sent.sent,
            datagrams_received: sent.received.saturating_sub(rejected),
            datagrams_rejected: rejected,
            stream_bytes_sent: self.driver.writer.bytes(),
            stream_bytes_received: self.link.as_ref().map_or(0, |link| link.reader.bytes()),
            ..self.driver.counters
        }
    }

    fn post(&mut self, group: GroupId, signature: Signature, memory: Memory) -> Result<Arc<Completion>, Error> {
        let completion = Arc::new(Completion::default());
        let operation = Operation { group, memory, completion: completion.clone(), trace: None };
        self.driver.posting = Some(operation);
        let now = self.now();
        let posted = self.core.post(now, group, signature, &mut self.driver);
        if let Ok(op) = posted {
            self.driver.adopt_operation(op);
        }
        self.driver.posting = None;
        self.settle();
        posted.map(|_| completion).map_err(|error| refusal(&error))
    }

    fn create_group(&mut self, members: RankList, tag: u64, state: Arc<GroupState>) -> Result<GroupId, Error> {
        self.driver.creating = Some(state);
        let now = self.now();
        let created = self.core.create_group(now, members, tag, &mut self.driver);
        if let Ok(group) = created {
            self.driver.adopt_group(group);
        }
        self.driver.creating = None;
        self.settle();
        created.map_err(|error| refusal(&error))
    }

    fn free_group(&mut self, group: GroupId) {
        let now = self.now();
        self.core.free_group(now, group, &mut self.driver);
        self.driver.forget_group(group);
        self.settle();
    }

    /// Reads what the sockets have, lets the clock act, writes what is queued. Sockets come before the clock: a sign of
    /// life that waits to be read is one.
    fn progress(&mut self, ready: Ready) {
        self.now();
        if ready.datagram {
            self.read_datagrams();
        }
        if ready.stream {
            self.read_stream();
        }
        self.tend();
        self.flush();
    }

    /// Lets the clock act.
    fn tend(&mut self) {
        let now = self.lately();
        if now >= self.core.next_deadline() {
            self.core.on_timer(now, &mut self.driver);
            self.settle();
        }
    }

    fn read_datagrams(&mut self) {
        let Some(mut batch) = self.batch.take() else { return };
        match self.driver.datagrams.recv(&mut batch) {
            Ok(0) => {}
            Ok(_) => self.take(&batch),
            Err(cause) => tracing::warn!("cannot receive datagrams: {cause}"),
        }
        self.batch = Some(batch);
    }

    /// A batch of one datagram, for a thread that looks for itself.
    fn single_batch(&mut self) -> RecvBatch {
        self.singles.pop().unwrap_or_else(|| RecvBatch::new(1, datagram_max(&self.config)))
    }

    /// Takes the datagrams of a batch.
    fn take(&mut self, batch: &RecvBatch) {
        let now = self.lately();
        let (core, driver, config) = (&mut self.core, &mut self.driver, &self.config);
        for datagram in batch.frames(&mut self.rejected) {
            let header = datagram.header;
            if datagram.verify(driver.down_key()).is_err() || !is_for(config, &header) {
                driver.counters.datagrams_rejected += 1;
                continue;
            }
            driver.settle_on(datagram.source);
            let body = if header.kind.carries_data() {
                let payload = datagram.payload;
                driver.arriving = Arriving::Here(payload.as_ptr(), payload.len());
                Body::None
            } else {
                match Body::parse(header.kind, datagram.payload) {
                    Ok(body) => body,
                    Err(_) => {
                        driver.counters.datagrams_rejected += 1;
                        continue;
                    }
                }
            };
            core.on_frame(now, Path::Datagram, &header, body, driver);
            driver.arriving = Arriving::Nothing;
        }
        self.settle();
    }

    fn read_stream(&mut self) {
        let now = self.lately();
        let Some(link) = &mut self.link else { return };
        let mut sink = Sink { now, core: &mut self.core, driver: &mut self.driver, config: &self.config };
        let end = link.reader.read(&mut link.socket, &mut sink, STREAM_BUDGET);
        match end {
            Ok(ReadEnd::Drained | ReadEnd::Budget) => {}
            Ok(ReadEnd::Closed) => {
                tracing::info!("the node closed the stream connection");
                self.driver.stream_broken = true;
            }
            Err(cause) => {
                tracing::warn!("stream connection to the node lost: {cause}");
                self.driver.stream_broken = true;
            }
        }
        self.settle();
    }

    fn flush(&mut self) {
        let Some(link) = &mut self.link else { return };
        if self.driver.writer.is_idle() {
            link.blocked = false;
            return;
        }
        match self.driver.writer.flush(&mut link.socket) {
            Ok(_) => link.blocked = !self.driver.writer.is_idle(),
            Err(cause) => {
                tracing::warn!("stream connection to the node lost: {cause}");
                self.driver.stream_broken = true;
            }
        }
        while self.driver.writer.next_written().is_some() {}
        self.settle();
    }

    /// After every call of the core: lets go of memory that is no longer ours, and of a connection that is gone.
    fn settle(&mut self) {
        if std::mem::take(&mut self.driver.severed)
            && let Some(link) = &mut self.link
            && let Some((_, Incoming::Placed(slice, _))) = link.reader.pending()
            && self.driver.operation(slice.op).is_none()
        {
            link.reader.discard_pending();
        }
        if self.core.is_lost() {
            // The node has been silent for too long.
            self.driver.stream_broken = true;
            self.link = None;
        } else if self.driver.stream_broken && self.link.take().is_some() {
            let now = self.lately();
            self.core.on_link_down(now, &mut self.driver);
        }
    }
}

/// Takes the frames of the stream.
struct Sink<'a> {
    now: Nanos,
    core: &'a mut LeafCore,
    driver: &'a mut Driver,
    config: &'a LeafConfig,
}

impl FrameSink for Sink<'_> {
    type Buffer = Incoming;

    fn place(&mut self, header: &Header) -> Place<Incoming> {
        if !is_for(self.config, header) {
            return Place::Refuse("a frame for another child");
        }
        let placed = self.core.place(header).and_then(|slice| self.landing(slice, header));
        Place::Into(placed.unwrap_or_else(|| Incoming::Aside(vec![0; header.payload_len as usize])))
    }

    /// Only while nothing of ours waits to be written: what is read into a result that lies over its input, and turns out
    /// to be something else, must not change what is still to be sent.
    fn foresee(&mut self, header: &Header) -> Option<Incoming> {
        let slice = self.core.foresee(header).filter(|_| self.driver.writer.is_idle())?;
        self.landing(slice, header)
    }

    /// The operation may have failed, and its memory may be gone, since the frame was foreseen.
    fn confirm(&mut self, header: &Header, buffer: Incoming) -> Place<Incoming> {
        match (&buffer, self.core.place(header)) {
            (Incoming::Placed(foreseen, _), Some(slice)) if *foreseen == slice => Place::Into(buffer),
            _ => Place::Discard,
        }
    }

    fn frame(&mut self, header: &Header, payload: Arrived<'_, Incoming>) -> Result<(), StreamError> {
        if !is_for(self.config, header) {
            return Err(StreamError::Refused("a frame for another child"));
        }
        let mut body = Body::None;
        let mut aside = None;
        self.driver.arriving = match payload {
            Arrived::None if header.kind.carries_data() => Arriving::Nothing,
            Arrived::None => {
                body = Body::parse(header.kind, &[])?;
                Arriving::Nothing
            }
            Arrived::Body(bytes) => {
                body = Body::parse(header.kind, bytes)?;
                Arriving::Nothing
            }
            Arrived::Data(Incoming::Placed(slice, _)) => Arriving::Placed(slice),
            Arrived::Data(Incoming::Aside(bytes)) => {
                let bytes = aside.insert(bytes);
                Arriving::Here(bytes.as_ptr(), bytes.len())
            }
            // Its operation failed while it was read.
            Arrived::Discarded => return Ok(()),
        };
        self.core.on_frame(self.now, Path::Stream, header, body, self.driver);
        self.driver.arriving = Arriving::Nothing;
        if self.driver.stream_broken {
            return Err(StreamError::Refused("the node does not read"));
        }
        Ok(())
    }
}

impl Sink<'_> {
    fn landing(&mut self, slice: Slice, header: &Header) -> Option<Incoming> {
        let len = header.payload_len as usize;
        let place = self.driver.operation(slice.op)?.memory.output(slice).filter(|_| slice.len as usize == len)?;
        // SAFETY: `output` checked that the place lies inside the result of an operation that runs, and only the reader
        // writes there until the frame is complete; `settle` takes it away when the operation fails.
        Some(Incoming::Placed(slice, unsafe { UserLanding::new(place, len) }))
    }
}

/// Whether a frame whose tag is right speaks to this rank. Every child of the node shares the key of the way down.
fn is_for(config: &LeafConfig, header: &Header) -> bool {
    let to_us = header.child == config.child || header.child == ChildIndex::ALL;
    to_us && (header.job, header.epoch, header.node) == (config.job, config.epoch, config.node)
}

/// Bytes behind the header of the longest datagram that a rank takes.
fn datagram_max(config: &LeafConfig) -> usize {
    (config.limits.payload as usize).max(BODY_MAX)
}

fn refusal(error: &LeafError) -> Error {
    let text = match error {
        LeafError::BadMembers => {
            "this rank is not in the member list, or the list names a rank twice or outside the job"
        }
        LeafError::TooManyRuns => "the order of the members is too irregular for one message: sort them, or use fewer",
        LeafError::UnknownGroup => "the group was freed",
        LeafError::BadRoot => "the root is not a rank of the group",
        LeafError::Unsupported => "the operator is not defined for the type",
        LeafError::TooLong => "a vector has fewer than 2^63 bytes",
        LeafError::Failed(fault) => return Error::from_fault(fault),
    };
    Error::Invalid(text.into())
}

/// Datagrams taken with one system call.
const DATAGRAM_BATCH: usize = 16;
/// Room for the typed bodies that come as datagrams.
const BODY_MAX: usize = 256;
/// Bytes read from the stream before the writer gets its turn.
const STREAM_BUDGET: usize = 512 * 1024;
