//! One lane: leaf core, sockets and state for one tree, or for one connection along it.
//!
//! A lane knows nothing of the others. The engine drives all of them under one lock and with one
//! clock.

use std::os::fd::AsRawFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use trib_keys::EdgeKeys;
use trib_messages::directory::JobDirectory;
use trib_proto::leaf::{GroupId, LeafError, NewGroup, Post, Slice, Standstill};
use trib_proto::{LeafConfig, LeafCore, Limits, Nanos, Path};
use trib_seal::{Opener, Sealer};
use trib_transport::edge::{Glance, Inbox};
use trib_transport::landing::UserLanding;
use trib_transport::sealing::{ReaderKeys, WriterKeys};
use trib_transport::tcp::{
    Arrived, Connected, Destination, Due, FlushEnd, FrameSink, HandshakeError, LowWater, Parting, ReadEnd, StreamError,
    StreamReader, StreamSocket,
};
use trib_transport::udp::{Datagram, DatagramSocket, RecvBatch, UdpCounters};
use trib_wire::body::Fault;
use trib_wire::{Body, ChildIndex, Header, RankList, Signature};

use super::Shared;
use super::driver::{Above, Arriving, Driver};
use super::kept::saves;
use super::operation::{Incoming, Operation};
use super::poll::LaneSockets;
use super::roaming::Roaming;
use super::seals::Seals;
use super::sleepers::Sleepers;
use crate::counters::Counters;
use crate::error::Error;
use crate::group_state::GroupState;
use crate::way::{Connection, Course};

/// The connected sockets that a lane starts with.
pub(crate) struct Sources {
    pub(crate) config: LeafConfig,
    pub(crate) course: Course,
    pub(crate) connection: Connection,
    pub(crate) datagrams: DatagramSocket,
    pub(crate) directory: Arc<JobDirectory>,
}

/// Everything of one lane, behind the engine's lock.
pub(crate) struct Lane {
    core: LeafCore,
    pub(super) driver: Driver,
    link: Option<Link>,
    roaming: Roaming,
    sleepers: Sleepers,
    config: LeafConfig,
    batch: Option<Box<RecvBatch>>,
    /// Spare batches of threads that receive datagrams by themselves.
    singles: Vec<RecvBatch>,
    rejected: UdpCounters,
}

/// The stream connection to the node.
struct Link {
    socket: StreamSocket,
    reader: StreamReader<Incoming>,
    low_water: LowWater,
    /// Frames wait until the socket has room.
    blocked: bool,
    near: Option<Near>,
}

/// What comes over memory from a node of this host, or over UCX.
struct Near {
    inbox: Inbox,
    glance: Glance,
}

/// A look at the edge over memory, if the link is one.
fn glance_of(link: &Option<Link>) -> Option<&Glance> {
    Some(&link.as_ref()?.near.as_ref()?.glance)
}

impl Link {
    /// The link, and the node at its far end.
    fn new(open: Connected, keys: &EdgeKeys) -> (Link, Above) {
        let Connected { mut socket, datagrams, results, session, apart } = open;
        tracing::debug!(?apart, "whether the node shares memory with this rank");
        let (mut near, mut outbox) = (None, None);
        if let (Some(glance), Some(records)) = (socket.glance(), socket.take_records()) {
            near = Some(Near { glance, inbox: records.come });
            outbox = Some(records.out);
        }
        let (tags, up) = (results.tags, session.as_ref().map_or(keys.up, |session| session.up));
        let (reader, writer, seals) = match (session, results.data) {
            (Some(session), Some(data)) => {
                let (reader, writer) = (ReaderKeys::down(&session, &data), WriterKeys::up(&session));
                let opener = Opener::new(session.mode, data);
                let sealer = Sealer::new(session.mode, session.data_up);
                (reader, writer, Some(Box::new(Seals::new(sealer, opener))))
            }
            _ => (ReaderKeys::Checked(keys.down), WriterKeys::Checked(keys.up), None),
        };
        let above = Above { address: datagrams, up, results: tags, near: outbox, writer, seals };
        let reader = StreamReader::with(reader);
        (Link { socket, reader, low_water: LowWater::new(), blocked: false, near }, above)
    }
}

impl Lane {
    /// What the manager granted.
    pub(super) fn limits(&self) -> Limits {
        self.config.limits
    }

    /// `home` is the engine of which this is the lane with number `at`; `alone` says that there are
    /// no other lanes.
    pub(super) fn new(sources: Sources, (home, at): (Weak<Shared>, usize), alone: bool) -> Lane {
        let Sources { config, course, connection, datagrams, directory } = sources;
        let Connection { keys, open, .. } = connection;
        let (link, node) = Link::new(open, &keys);
        let limits = &config.limits;
        let saves = if config.recovers { saves(limits.flight, limits.window) } else { 0 };
        let roaming = Roaming::new(course, (home, at));
        let mut lane = Lane {
            core: LeafCore::new(config.clone()),
            driver: Driver::new(datagrams, node, alone, saves, directory),
            link: Some(link),
            roaming,
            sleepers: Sleepers::default(),
            batch: Some(Box::new(RecvBatch::new(DATAGRAM_BATCH, datagram_max(&config)))),
            singles: Vec::new(),
            config,
            rejected: UdpCounters::default(),
        };
        lane.core.on_link_up(Nanos(0), lane.config.epoch, &mut lane.driver);
        lane
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        self.core.next_deadline().min(self.roaming.put_off_until())
    }

    pub(super) fn heartbeat_half(&self) -> Nanos {
        Nanos(self.config.limits.heartbeat.0 / 2)
    }

    /// Whether the lane needs progress even while the application makes no call.
    pub(super) fn is_busy(&self) -> bool {
        let is_sending = || self.near().is_some_and(|near| near.glance.is_sending());
        self.driver.is_running() || self.driver.is_joining() || !self.driver.writer.is_idle() || is_sending()
    }

    /// Whether the node may ask for a lease back that no operation uses.
    #[inline]
    pub(super) fn may_be_revoked(&self) -> bool {
        self.core.may_be_revoked()
    }

    /// A look at the way to the node, if it is over memory or UCX.
    pub(super) fn glance(&self) -> Option<Glance> {
        glance_of(&self.link).cloned()
    }

    fn near(&self) -> Option<&Near> {
        self.link.as_ref()?.near.as_ref()
    }

    /// Called before every sleep.
    pub(super) fn fall_asleep(&mut self) {
        self.sleepers.fall_asleep(glance_of(&self.link));
    }

    /// Called after every sleep.
    pub(super) fn wake_up(&mut self) {
        self.sleepers.wake_up(glance_of(&self.link));
    }

    /// Called before a sleep on the sockets. Returns the time from which the stream is no longer
    /// trusted to bring as many bytes as its low-water mark asks for.
    pub(super) fn arm(&mut self, now: Nanos) -> Option<Nanos> {
        let link = self.link.as_mut()?;
        let (sent, total) = self.core.results_due();
        let held = link.reader.held() as u64;
        let due = Due { now: sent.saturating_sub(held), total: total.saturating_sub(held) };
        link.low_water.arm(&link.socket, due).map(|span| now + Nanos(span.as_nanos() as u64))
    }

    /// Called after a sleep that was armed until `end`.
    pub(super) fn disarm(&mut self, now: Nanos, end: Nanos, ready: bool) {
        if let Some(link) = &mut self.link
            && (ready || now >= end)
        {
            link.low_water.end(ready);
        }
    }

    pub(super) fn sockets(&self) -> LaneSockets {
        if let Some(Link { near: Some(near), socket, .. }) = &self.link {
            // The bell is rung for all that comes. The socket only tells the far end's end.
            return LaneSockets { datagram: socket.as_raw_fd(), stream: near.glance.bell(), write: false };
        }
        LaneSockets {
            datagram: self.driver.datagrams.as_raw_fd(),
            stream: self.link.as_ref().map_or(LaneSockets::NONE, |link| link.socket.as_raw_fd()),
            write: self.is_blocked(),
        }
    }

    /// Whether frames wait until the socket has room.
    pub(super) fn is_blocked(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.blocked)
    }

    pub(super) fn counters(&self) -> Counters {
        let sent = self.driver.datagrams.counters();
        let near_sent = self.driver.near_counters().sent;
        let near_come = self.near().map_or(0, |near| near.inbox.counters().received);
        let rejected = self.rejected.rejected_malformed
            + self.rejected.rejected_version
            + self.rejected.rejected_checksum
            + self.driver.counters.datagrams_rejected;
        Counters {
            datagrams_sent: sent.sent + near_sent,
            datagrams_received: (sent.received + near_come).saturating_sub(rejected),
            datagrams_rejected: rejected,
            stream_bytes_sent: self.driver.counters.stream_bytes_sent + self.driver.writer.bytes(),
            stream_bytes_received: self.driver.counters.stream_bytes_received
                + self.link.as_ref().map_or(0, |link| link.reader.bytes()),
            ..self.driver.counters
        }
    }

    /// Posts an operation. A `number` is the operation's on all lanes, with what says which part of
    /// it this is; without one the lane's core gives it the next number.
    pub(super) fn post(
        &mut self,
        now: Nanos,
        number: Option<(u64, u16)>,
        signature: Signature,
        operation: Operation,
    ) -> Result<(), Error> {
        let (group, completion) = (operation.group, operation.completion.clone());
        let post = Post { id: self.core.next_op(), number, signature, stretch_of: operation.stretch_of };
        self.driver.begin_operation(post.id, operation);
        let posted = self.core.post(now, group, &post, &mut self.driver);
        match posted {
            Ok(Path::Datagram) => {
                self.driver.counters.operations_llt += 1;
                completion.set_short();
            }
            Ok(Path::Stream) => self.driver.counters.operations_sat += 1,
            Err(_) => self.driver.drop_operation(post.id),
        }
        self.settle(now);
        posted.map(|_| ()).map_err(|error| self.refusal(&error, self.driver.group_state(group)))
    }

    pub(super) fn create_group(
        &mut self,
        now: Nanos,
        members: RankList,
        (tag, companion): (u64, bool),
        state: Arc<GroupState>,
    ) -> Result<GroupId, Error> {
        let id = self.core.next_group();
        self.driver.begin_group(id, state.clone());
        let group = NewGroup { members, tag, name: state.name().clone(), companion };
        let created = self.core.create_group(id, group, &mut self.driver);
        if created.is_err() {
            self.driver.drop_group(id);
        }
        self.settle(now);
        created.map(|()| id).map_err(|error| self.refusal(&error, Some(&state)))
    }

    /// Tells the node why a group does not go on whose operations go over a board, or that it does.
    pub(super) fn tell_of_board(&mut self, now: Nanos, group: GroupId, standstill: Option<Standstill>) {
        self.core.tell_of_board(now, group, standstill, &mut self.driver);
        self.settle(now);
        self.flush(now);
    }

    /// So many operations went over boards. The node is told so that people see that the job works.
    #[inline]
    pub(super) fn done_at_boards(&mut self, operations: u64) {
        self.core.done_at_boards(operations);
    }

    fn refusal(&self, error: &LeafError, group: Option<&Arc<GroupState>>) -> Error {
        match error {
            LeafError::Failed(fault) => self.driver.failure(fault, group, None),
            other => Error::Invalid(wrong(other).into()),
        }
    }

    pub(super) fn free_group(&mut self, now: Nanos, group: GroupId) {
        self.core.free_group(now, group, &mut self.driver);
        self.driver.forget_group(group);
        self.settle(now);
    }

    /// Leaves a group that this rank has failed: its operations here end with its error, and the
    /// other members learn of it.
    pub(super) fn abandon_group(&mut self, now: Nanos, group: GroupId) {
        self.core.free_group(now, group, &mut self.driver);
        self.driver.give_up_group(group);
        self.settle(now);
    }

    /// Tells the members of a group why it cannot go on. It fails here, too.
    pub(super) fn report(&mut self, now: Nanos, group: GroupId, fault: Fault) {
        self.core.report(now, group, fault, &mut self.driver);
        self.settle(now);
        self.flush(now);
    }

    /// Whether operations succeed everywhere or nowhere.
    pub(super) fn is_strict(&self) -> bool {
        self.core.is_strict()
    }

    /// Why a group has failed, if it has.
    pub(super) fn fault_of(&self, group: GroupId) -> Option<Fault> {
        self.core.fault_of(group)
    }

    /// Reads what the sockets have, lets timers act, and writes what is queued. Sockets come before
    /// timers, so that an answer that waits to be read counts as a sign of life.
    pub(super) fn progress(&mut self, now: Nanos, datagram: bool, stream: bool) {
        if let Some(near) = self.near().filter(|_| datagram || stream) {
            if stream {
                near.glance.clear_bell();
            }
            self.read_near(now);
            if datagram {
                // The socket beside the memory has nothing to read but its end.
                self.read_stream(now);
            }
            if stream && self.sleepers.are_any() {
                // Less is to come than when they fell asleep.
                self.arm(now);
                if let Some(near) = glance_of(&self.link) {
                    self.sleepers.cleared(near);
                }
            }
        } else {
            if datagram {
                self.read_datagrams(now);
            }
            if stream {
                self.read_stream(now);
            }
        }
        self.tend(now);
        self.flush(now);
    }

    /// Reads what has come over memory. The end of the stream is not looked for, which would cost a
    /// system call.
    pub(super) fn read_near(&mut self, now: Nanos) {
        if let Some(near) = self.near() {
            near.glance.drive();
        }
        self.read_records(now);
        if self.near().is_some_and(|near| near.glance.has_bytes()) {
            self.read_stream(now);
        }
    }

    /// Lets timers act. Before the node is judged by its silence, its answers are read: a thread
    /// that waits for datagrams does not look at the stream, poll does not report fewer bytes than
    /// the low-water mark, and a thread without a processor has looked at nothing.
    pub(super) fn tend(&mut self, now: Nanos) {
        if now >= self.core.next_judgement() {
            self.read_stream(now);
        }
        if now >= self.core.next_deadline() {
            self.read_datagrams(now);
            self.driver.tick(now.0);
            self.core.on_timer(now, &mut self.driver);
            self.settle(now);
        }
        if now >= self.roaming.put_off_until() {
            if self.roaming.is_weary(now) {
                self.give_up("this process gets no thread to call the node: raise its limit (`ulimit -u`)");
            } else {
                self.roaming.try_again(now);
            }
        }
    }

    pub(super) fn read_datagrams(&mut self, now: Nanos) {
        if self.near().is_some() {
            return self.read_records(now);
        }
        let Some(mut batch) = self.batch.take() else { return };
        match self.driver.datagrams.recv(&mut batch) {
            Ok(0) => {}
            Ok(_) => self.take(now, &batch),
            Err(cause) => tracing::warn!("cannot receive datagrams: {cause}"),
        }
        self.batch = Some(batch);
    }

    /// A batch of one datagram, for a thread that receives by itself.
    pub(super) fn single_batch(&mut self) -> RecvBatch {
        self.singles.pop().unwrap_or_else(|| RecvBatch::new(1, datagram_max(&self.config)))
    }

    /// Takes such a batch back.
    pub(super) fn keep_batch(&mut self, batch: RecvBatch) {
        self.singles.push(batch);
    }

    /// Takes the datagrams of a batch.
    pub(super) fn take(&mut self, now: Nanos, batch: &RecvBatch) {
        let (core, driver, config) = (&mut self.core, &mut self.driver, &self.config);
        for datagram in batch.frames(&mut self.rejected) {
            take_one(now, core, driver, config, &datagram);
        }
        self.settle(now);
    }

    /// Takes the datagrams that have come over memory.
    fn read_records(&mut self, now: Nanos) {
        let (core, driver, config) = (&mut self.core, &mut self.driver, &self.config);
        let Some(Link { near: Some(Near { inbox, .. }), .. }) = &mut self.link else { return };
        while let Some(datagram) = inbox.next(&mut self.rejected) {
            take_one(now, core, driver, config, &datagram);
        }
        self.settle(now);
    }

    fn read_stream(&mut self, now: Nanos) {
        let Some(link) = &mut self.link else { return };
        let mut sink = Sink { now, core: &mut self.core, driver: &mut self.driver, config: &self.config };
        let before = link.reader.bytes();
        let end = link.reader.read(&mut link.socket, &mut sink, STREAM_BUDGET);
        if before == 0 && link.reader.bytes() > 0 {
            self.roaming.course.on_fruit();
        }
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
        self.settle(now);
    }

    pub(super) fn flush(&mut self, now: Nanos) {
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
        while let Some(written) = self.driver.writer.next_written() {
            self.driver.take_back(written.payload);
        }
        self.settle(now);
    }

    /// Called after every call of the core. It says what the core could not see, and lets go of
    /// memory that is no longer ours, and of a connection that has ended.
    fn settle(&mut self, now: Nanos) {
        while let Some(header) = self.driver.too_long.take() {
            self.core.on_too_long(now, &header, &mut self.driver);
        }
        if std::mem::take(&mut self.driver.severed)
            && let Some(link) = &mut self.link
            && let Some((_, Incoming::Placed(slice, _))) = link.reader.pending()
            && self.driver.operation(slice.op).is_none()
        {
            link.reader.discard_pending();
        }
        if self.config.recovers && self.link.is_some() {
            return self.watch_node(now);
        }
        if self.core.is_lost() {
            // The node has been silent for too long.
            self.driver.stream_broken = true;
            self.link = None;
        } else if self.driver.stream_broken && self.link.take().is_some() {
            self.core.on_link_down(&mut self.driver);
        }
    }

    /// If the node is gone, or has told that the tree is elsewhere, the rank goes where the tree
    /// is.
    fn watch_node(&mut self, now: Nanos) {
        if self.roaming.is_waiting() && !self.core.is_rejoining() {
            self.roaming.end_waiting();
        }
        if self.roaming.is_lost(now, self.config.limits.dead_after) {
            tracing::error!("no candidate of the node leads to the root of the tree");
            self.roaming.end_waiting();
            self.link = None;
            self.core.give_up(&mut self.driver);
            return;
        }
        let told = self.driver.moved_to.take();
        if told.is_none() && !self.driver.stream_broken && !self.core.is_detached() {
            return;
        }
        let Some(mut link) = self.link.take() else { return };
        match told {
            Some(placement) => self.roaming.course.on_told(now, &placement),
            None => self.roaming.course.on_lost(now),
        }
        // The node must not take the end of the connection for this rank's death.
        self.driver.drop_queue();
        self.core.move_to(self.roaming.course.placement(), &mut self.driver);
        let flushed = self.driver.writer.flush(&mut link.socket);
        let said = matches!(flushed, Ok(FlushEnd::Idle)) && link.socket.finish().is_ok();
        let counters = &mut self.driver.counters;
        counters.epochs += 1;
        counters.stream_bytes_sent += self.driver.writer.bytes();
        counters.stream_bytes_received += link.reader.bytes();
        tracing::warn!(placement = ?self.roaming.course.placement(), said, "the job goes on in another epoch");
        let writer = self.driver.cut_off();
        if !self.core.is_detached() {
            self.core.on_link_down(&mut self.driver);
        }
        let last = match flushed {
            // The node does not read: it hangs, or is only slow and will.
            Ok(FlushEnd::Blocked) => {
                self.roaming.say_later(Parting { socket: link.socket, writer });
                None
            }
            _ => Some(link.socket),
        };
        self.roaming.set_out(now, last);
    }

    /// What became of a call of the node.
    pub(super) fn called(&mut self, now: Nanos, outcome: Result<Connection, HandshakeError>) {
        match outcome {
            Ok(Connection { epoch, keys, open }) => {
                self.config.epoch = epoch;
                let (link, node) = Link::new(open, &keys);
                self.driver.go_on(node);
                self.link = Some(link);
                self.roaming.arrive();
                self.core.on_link_up(now, epoch, &mut self.driver);
                self.flush(now);
            }
            Err(cause) => {
                tracing::info!(%cause, "the node is not there");
                self.roaming.course.on_failed(now, &cause);
                if self.roaming.is_weary(now) {
                    self.give_up("no candidate of the node can be reached");
                } else {
                    self.roaming.set_out(now, None);
                }
            }
        }
    }

    /// The lane will never have a node again.
    fn give_up(&mut self, why: &str) {
        tracing::error!("{why}");
        self.roaming.arrive();
        self.core.give_up(&mut self.driver);
    }

    /// For how long after its last call the rank stays for others that may ask how a group has
    /// ended: until a dead member was found dead, for which they wait.
    pub(super) fn stays_for(&self) -> Option<Nanos> {
        self.core.may_be_asked().then(|| self.config.limits.dead_after + Nanos::from_millis(10_000))
    }

    /// The number of groups that the program has left and that this rank has still to serve.
    pub(super) fn groups_left_behind(&self) -> usize {
        self.core.groups_left_behind()
    }

    /// Closes the stream. What was written over UCX is sent before this returns, because the
    /// process may end then.
    pub(super) fn close(&mut self) {
        let ucx = self.near().and_then(|near| near.glance.ucx().cloned());
        self.link = None;
        if let Some(ucx) = ucx {
            ucx.see_off(FAREWELL);
        }
    }
}

/// Hands a datagram to the core, if it is genuine.
fn take_one(now: Nanos, core: &mut LeafCore, driver: &mut Driver, config: &LeafConfig, datagram: &Datagram<'_>) {
    let header = datagram.header;
    if datagram.verify(driver.results_key()).is_err() || !is_for(config, &header) {
        driver.counters.datagrams_rejected += 1;
        return;
    }
    driver.settle_on(datagram.source);
    let Some(payload) = driver.open(datagram) else {
        driver.counters.datagrams_rejected += 1;
        return;
    };
    let body = if header.kind.carries_data() {
        driver.arriving = Arriving::Here(payload.as_ptr(), payload.len());
        Body::None
    } else {
        match Body::parse(header.kind, payload) {
            Ok(body) => body,
            Err(_) => {
                driver.counters.datagrams_rejected += 1;
                return;
            }
        }
    };
    core.on_frame(now, Path::Datagram, &header, body, driver);
    driver.arriving = Arriving::Nothing;
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

    fn place(&mut self, header: &Header) -> Destination<Incoming> {
        if !is_for(self.config, header) {
            return Destination::Refuse("a frame for another child");
        }
        let placed = self.core.destination(header).and_then(|slice| self.landing(slice, header));
        Destination::Into(placed.unwrap_or_else(|| Incoming::Aside(vec![0; header.payload_len as usize])))
    }

    /// Bytes are read ahead only while nothing of ours waits to be written. The result may lie over
    /// its input, and if the frame turns out to be another one, its bytes must not change input
    /// that is still to be sent.
    fn foresee(&mut self, header: &Header) -> Option<Incoming> {
        let slice = self.core.foresee(header).filter(|_| self.driver.writer.is_idle())?;
        self.landing(slice, header)
    }

    /// Since the frame was foreseen, the operation may have failed, and its memory may be gone.
    fn confirm(&mut self, header: &Header, buffer: Incoming) -> Destination<Incoming> {
        match (&buffer, self.core.destination(header)) {
            (Incoming::Placed(foreseen, _), Some(slice)) if *foreseen == slice => Destination::Into(buffer),
            _ => Destination::Discard,
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
            // The operation failed while this frame was read.
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
        self.driver.save(slice);
        let destination =
            self.driver.operation(slice.op)?.memory.output(slice).filter(|_| slice.bytes as usize == len)?;
        // SAFETY: `output` checked that the destination lies inside the result of a running
        // operation. Only the reader writes there until the frame is complete, and `settle` takes
        // the destination away from it when the operation fails.
        Some(Incoming::Placed(slice, unsafe { UserLanding::new(destination, len) }))
    }
}

/// Whether a frame with a right tag is addressed to this rank. All children of the node share the
/// key of the frames that come down.
fn is_for(config: &LeafConfig, header: &Header) -> bool {
    let to_us = header.child == config.child || header.child == ChildIndex::ALL;
    to_us && (header.job, header.epoch, header.node) == (config.job, config.epoch, config.node)
}

/// The most bytes behind the header of a datagram that this rank accepts.
fn datagram_max(config: &LeafConfig) -> usize {
    (config.limits.payload as usize).max(BODY_MAX)
}

fn wrong(error: &LeafError) -> &'static str {
    match error {
        LeafError::BadMembers => {
            "this rank is not in the member list, or the list names a rank twice or outside the job"
        }
        LeafError::TooManyRuns => "the order of the members is too irregular for one message: sort them, or use fewer",
        LeafError::UnknownGroup => "the group was freed",
        LeafError::BadRoot => "the root is not a rank of the group",
        LeafError::Unsupported => "the operator is not defined for the type",
        LeafError::NoRoom => "the job's payload or segment has no room for an element",
        LeafError::TooLong => "a vector has fewer than 2^63 bytes, and all of a group together fewer than 2^62 pieces",
        LeafError::Failed(_) => "the group has failed",
    }
}

/// Datagrams taken with one system call.
const DATAGRAM_BATCH: usize = 16;
/// Room in bytes for the typed bodies that come as datagrams.
const BODY_MAX: usize = 256;
/// How long UCX may take to send what was written last.
const FAREWELL: Duration = Duration::from_secs(1);
/// The most bytes that are read from the stream before the writer gets its turn.
const STREAM_BUDGET: usize = 512 * 1024;
