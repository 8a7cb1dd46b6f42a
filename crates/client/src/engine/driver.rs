//! Carries out what the leaf core asks for: it puts frames into sockets, payloads into the caller's
//! memory, and outcomes into requests.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use trib_messages::directory::JobDirectory;
use trib_proto::leaf::{GroupId, Note, OpId, Payload, Slice};
use trib_proto::{LeafOutput, Path};
use trib_transport::edge::Outbox;
use trib_transport::landing::{Source, UserSource};
use trib_transport::sealing::WriterKeys;
use trib_transport::tcp::StreamWriter;
use trib_transport::udp::{Datagram, DatagramSocket, Sent, UdpCounters, seal, seal_with};
use trib_wire::auth::FrameKey;
use trib_wire::body::{BodyBytes, Fault};
use trib_wire::{Collective, Header, Placement};

use super::kept::{Kept, Spares};
use super::operation::{Operation, Outgoing};
use super::seals::Seals;
use crate::counters::Counters;
use crate::error::Error;
use crate::group_state::GroupState;

/// The node in one epoch: where it takes datagrams, and the keys of frames to it and of its
/// datagrams.
pub(crate) struct Above {
    pub(crate) address: SocketAddr,
    pub(crate) up: FrameKey,
    pub(crate) results: FrameKey,
    /// Where datagrams go instead if the node's process shares memory with this one.
    pub(crate) near: Option<Outbox>,
    /// The keys of frames to it by stream.
    pub(crate) writer: WriterKeys,
    /// What seals payloads, in a mode that does; nothing over memory.
    pub(crate) seals: Option<Box<Seals>>,
}

/// Sockets, memory and state of one lane of a rank.
pub(crate) struct Driver {
    pub(crate) datagrams: DatagramSocket,
    node: [SocketAddr; 1],
    /// Where datagrams go instead if the node's process shares memory with this one.
    near: Option<Outbox>,
    /// Tags of frames to the node.
    up: FrameKey,
    /// Tags of datagrams from the node.
    results: FrameKey,
    /// What seals payloads, in a mode that does; nothing over memory.
    seals: Option<Box<Seals>>,
    pub(super) directory: Arc<JobDirectory>,
    pub(crate) writer: StreamWriter<Outgoing>,
    operations: FxHashMap<OpId, Operation>,
    /// What other ranks may still need of operations that are over.
    kept: FxHashMap<OpId, Kept>,
    /// The memory of what nobody needs any more, to be used again.
    spares: Spares,
    /// How many pieces of an operation's input are kept while its result overwrites it; 0 in a job
    /// that does not go on when a node dies.
    saves: usize,
    /// A placement of the tree that the node has told of.
    pub(super) moved_to: Option<Placement>,
    groups: FxHashMap<GroupId, Joined>,
    /// How many of the groups are neither ready nor refused.
    joining: usize,
    /// The payload of the frame being handled.
    pub(crate) arriving: Arriving,
    pub(crate) counters: Counters,
    /// Groups that have failed here and on which the other lanes have not yet given up, and why. It
    /// is always empty where there is one lane.
    failed: Vec<(Arc<GroupState>, Fault)>,
    alone: bool,
    /// A request has ended since this was last read.
    pub(crate) finished: bool,
    /// An operation has failed, and a half-read frame may still refer to its memory.
    pub(crate) severed: bool,
    /// The stream connection is of no use any more.
    pub(crate) stream_broken: bool,
    /// A datagram that the kernel knows to be too long for the way; the core is still to be told.
    pub(super) too_long: Option<Header>,
}

/// A group of this lane.
struct Joined {
    state: Arc<GroupState>,
    /// It is neither ready here nor refused.
    joining: bool,
}

/// Where the payload of the frame being handled is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arriving {
    /// The frame has no payload.
    Nothing,
    /// At this address, from which it is to be copied to its destination.
    Here(*const u8, usize),
    /// It was read to its destination already.
    Placed(Slice),
}

// SAFETY: the pointer in `arriving` is only set while a frame is handled, by the thread that has
// locked the engine, and everything else in here may move between threads.
unsafe impl Send for Driver {}

impl Driver {
    /// `alone` says that there are no other lanes, and `saves` how many pieces of input are kept
    /// while a result overwrites them.
    pub(crate) fn new(
        datagrams: DatagramSocket,
        node: Above,
        alone: bool,
        saves: usize,
        directory: Arc<JobDirectory>,
    ) -> Driver {
        Driver {
            directory,
            datagrams,
            node: [node.address],
            near: node.near,
            writer: writer(node.up, node.writer),
            up: node.up,
            results: node.results,
            seals: node.seals,
            operations: FxHashMap::default(),
            kept: FxHashMap::default(),
            spares: Spares::default(),
            saves,
            moved_to: None,
            groups: FxHashMap::default(),
            joining: 0,
            arriving: Arriving::Nothing,
            counters: Counters::default(),
            failed: Vec::new(),
            alone,
            finished: false,
            severed: false,
            stream_broken: false,
            too_long: None,
        }
    }

    /// What was sent over memory to the node's process.
    pub(super) fn near_counters(&self) -> UdpCounters {
        self.near.as_ref().map_or_else(UdpCounters::default, |near| *near.counters())
    }

    /// The connection is gone, and with it all that waited for it.
    pub(super) fn cut_off(&mut self) -> StreamWriter<Outgoing> {
        self.severed = false;
        self.near = None;
        std::mem::replace(&mut self.writer, StreamWriter::new(self.up, CONTROL_MAX))
    }

    /// Drops what is queued for the node. Of a frame that is half sent the far end expects the
    /// rest, which does not refer to the program's memory any more.
    pub(super) fn drop_queue(&mut self) {
        self.writer.cut(|_| true);
        self.writer.payloads_mut().for_each(|(_, payload)| payload.detach());
    }

    /// The rank has a connection to its node in another epoch.
    pub(super) fn go_on(&mut self, node: Above) {
        self.datagrams.settle_anew(node.address);
        self.node = [node.address];
        self.near = node.near;
        self.writer = writer(node.up, node.writer);
        (self.up, self.results, self.seals) = (node.up, node.results, node.seals);
        (self.stream_broken, self.severed, self.moved_to) = (false, false, None);
    }

    /// A result of this slice is about to come. If it overwrites the input, that is kept.
    pub(super) fn save(&mut self, slice: Slice) {
        let most = self.saves;
        if most > 0
            && let Some(operation) = self.operations.get_mut(&slice.op)
        {
            operation.save(slice, most, &mut self.spares);
        }
    }

    /// Tells the time, by which keys change.
    pub(crate) fn tick(&mut self, now: u64) {
        if let Some(seals) = &mut self.seals {
            seals.tick(now);
            self.writer.tick(now);
        }
    }

    /// Takes the payload of a frame back that is written.
    #[inline]
    pub(crate) fn take_back(&mut self, payload: Option<Outgoing>) {
        if let (Some(seals), Some(payload)) = (&mut self.seals, payload) {
            seals.take_back(payload);
        }
    }

    /// The payload of a datagram whose header is right. `None` if it is not what the node has
    /// sealed, in a mode that seals payloads.
    #[inline]
    pub(crate) fn open<'a>(&'a mut self, datagram: &Datagram<'a>) -> Option<&'a [u8]> {
        match &mut self.seals {
            Some(seals) => seals.open(datagram),
            None => datagram.seal().is_none().then_some(datagram.payload),
        }
    }

    /// The key of datagrams that come from the node.
    pub(crate) fn results_key(&self) -> &FrameKey {
        &self.results
    }

    /// The node has answered from here. If that is where it is sent to, nobody else need be heard
    /// any more.
    #[inline]
    pub(crate) fn settle_on(&mut self, source: SocketAddr) {
        if !self.datagrams.is_settled() && self.node == [source] {
            self.datagrams.settle_on(source);
        }
    }

    /// Files an operation under its name, before it is posted.
    pub(crate) fn begin_operation(&mut self, op: OpId, operation: Operation) {
        self.operations.insert(op, operation);
    }

    /// An operation could not be posted.
    pub(crate) fn drop_operation(&mut self, op: OpId) {
        self.operations.remove(&op);
    }

    /// Files a group under its name, before it is created.
    pub(crate) fn begin_group(&mut self, group: GroupId, state: Arc<GroupState>) {
        self.groups.insert(group, Joined { state, joining: true });
        self.joining += 1;
    }

    /// A group could not be created.
    pub(crate) fn drop_group(&mut self, group: GroupId) {
        if self.groups.remove(&group).is_some() {
            self.joining -= 1;
        }
    }

    /// What the program knows of a group that it has not freed.
    pub(crate) fn group_state(&self, group: GroupId) -> Option<&Arc<GroupState>> {
        self.groups.get(&group).map(|joined| &joined.state)
    }

    /// Forgets a group that was left.
    pub(crate) fn forget_group(&mut self, group: GroupId) {
        self.end_joining(group, || Err(Error::Invalid("the group was freed before it was ready".into())));
        if self.groups.remove(&group).is_some() {
            self.counters.groups_freed += 1;
        }
    }

    /// A group that has failed on another lane becomes ready on none.
    pub(crate) fn give_up_group(&mut self, group: GroupId) {
        self.end_joining(group, || Ok(()));
    }

    /// A group that has failed since somebody last asked, and why.
    pub(crate) fn take_failed(&mut self) -> Option<(Arc<GroupState>, Fault)> {
        self.failed.pop()
    }

    /// The groups that were not left yet.
    pub(crate) fn groups(&self) -> Vec<GroupId> {
        self.groups.keys().copied().collect()
    }

    /// Whether operations are under way.
    pub(crate) fn is_running(&self) -> bool {
        !self.operations.is_empty()
    }

    /// Whether groups are being made.
    pub(crate) fn is_joining(&self) -> bool {
        self.joining > 0
    }

    pub(crate) fn operation(&mut self, op: OpId) -> Option<&mut Operation> {
        self.operations.get_mut(&op)
    }

    fn end_joining(&mut self, group: GroupId, outcome: impl FnOnce() -> Result<(), Error>) {
        if let Some(joined) = self.groups.get_mut(&group)
            && std::mem::take(&mut joined.joining)
        {
            self.joining -= 1;
            self.finished = true;
            joined.state.ready.finish(outcome());
        }
    }

    /// The input of a slice: in the program's memory, or a copy of ours.
    fn input(&mut self, slice: Slice, header: &Header) -> Outgoing {
        let Some(operation) = self.operations.get_mut(&slice.op) else {
            let given = self.kept.get(&slice.op).and_then(|kept| kept.slice(slice));
            return Outgoing::Copy(given.expect("the core sends data of operations that run, or are kept").to_vec());
        };
        operation.saw(header);
        if let Some(saved) = operation.saved(slice) {
            return Outgoing::Copy(saved.to_vec());
        }
        if header.signature.collective == Collective::Allgather {
            // Little of its own block comes back to a rank.
            operation.memory.keep(&slice.range());
        }
        let start = operation.memory.input(slice).expect("the core sends what this rank gives");
        // SAFETY: `input` checked that the slice lies inside the input of a running operation. If
        // the operation fails before a frame with it is written, `sever` removes the reference; it
        // cannot succeed before that.
        Outgoing::User(unsafe { UserSource::new(start, slice.bytes as usize) })
    }

    /// A fault in the terms of the program: with its communicator, and with its operation if the
    /// fault concerns one.
    pub(crate) fn failure(
        &self,
        fault: &Fault,
        state: Option<&Arc<GroupState>>,
        operation: Option<&Operation>,
    ) -> Error {
        let error = Error::from_fault(fault, &*self.directory);
        let group = state.map(|state| state.words().to_owned());
        let words: Vec<String> =
            group.into_iter().chain(operation.and_then(|operation| operation.words(&*self.directory))).collect();
        if words.is_empty() { error } else { error.with_text(format!("{}: {error}", words.join(": "))) }
    }

    /// Makes sure that no frame refers to a failed operation's memory, which is about to be given
    /// back.
    fn sever(&mut self, operation: &Operation) {
        self.severed = true;
        let Some(trace) = operation.trace else { return };
        self.writer.cut(|header| trace.covers(header));
        for (header, payload) in self.writer.payloads_mut() {
            // Only a frame that is half sent is left. The far end expects its rest, so its payload
            // is copied.
            if trace.covers(header) {
                payload.detach();
            }
        }
    }
}

impl LeafOutput for Driver {
    fn transmit(&mut self, path: Path, header: &Header, payload: Payload<'_>) {
        if path == Path::Stream && self.stream_broken {
            return;
        }
        let data = match payload {
            Payload::Data(slice) => Some(self.input(slice, header)),
            Payload::None | Payload::Body(_) => None,
        };
        let body = match payload {
            Payload::Body(body) => body.to_bytes(),
            Payload::None | Payload::Data(_) => BodyBytes::new(),
        };
        match path {
            Path::Datagram => {
                let bytes = data.as_ref().map_or(&body[..], Source::bytes);
                let sealed = match &mut self.seals {
                    Some(seals) if !bytes.is_empty() => Some(seals.datagram(bytes)),
                    _ => None,
                };
                let sealed = sealed.map(|(seal, bytes)| (seal_with(header, &self.up, bytes, &seal), bytes));
                let too_long = match (&mut self.near, sealed) {
                    (Some(near), Some((head, bytes))) => near.send(&head, bytes) == Sent::TooLong,
                    (Some(near), None) => near.send(&seal(header, &self.up, bytes), bytes) == Sent::TooLong,
                    (None, Some((head, bytes))) => self.datagrams.send_headed(&head, bytes, &self.node) != 0,
                    (None, None) => self.datagrams.send(header, &self.up, bytes, &self.node) != 0,
                };
                if too_long {
                    self.too_long = Some(*header);
                }
            }
            Path::Stream if header.keeps_turn() => {
                let mut header = *header;
                header.payload_len = data.as_ref().map_or(0, |data| data.bytes().len() as u32);
                match (&mut self.seals, data) {
                    (Some(seals), Some(data)) if header.payload_len > 0 => {
                        let (seal, sealed) = seals.segment(data);
                        self.writer.push_sealed(&header, sealed, &seal);
                    }
                    (_, data) => self.writer.push_data(&header, data),
                }
            }
            Path::Stream => {
                if let Err(full) = self.writer.push_control(header, &body) {
                    tracing::error!("stream to the node given up: {full}");
                    self.stream_broken = true;
                }
            }
        }
    }

    fn deliver(&mut self, slice: Slice) {
        let arriving = self.arriving;
        if !matches!(arriving, Arriving::Placed(_)) {
            self.save(slice);
        }
        let operation = self.operation(slice.op).expect("the core delivers to operations that run");
        let destination = operation.memory.output(slice).expect("the core delivers what this rank gets");
        match arriving {
            Arriving::Placed(placed) => assert!(placed == slice, "a payload was read to another destination"),
            Arriving::Here(bytes, len) => {
                assert!(len == slice.bytes as usize, "a payload is delivered whole");
                // SAFETY: `output` checked that the destination lies inside the result of a running
                // operation; the payload lies in a receive buffer.
                unsafe { core::ptr::copy_nonoverlapping(bytes, destination, len) };
            }
            Arriving::Nothing => assert!(slice.bytes == 0, "there is no payload to deliver"),
        }
    }

    fn complete(&mut self, op: OpId, result: Result<Range<u64>, Fault>) {
        let mut operation = self.operations.remove(&op).expect("the core completes an operation once");
        self.finished = true;
        let outcome = match result {
            Ok(needed) => {
                if needed.is_empty() {
                    self.spares.give(operation.take_saved());
                } else {
                    // SAFETY: the operation's request is not finished yet, so its input is there.
                    let kept = unsafe { operation.keep(needed, &mut self.spares) };
                    self.kept.insert(op, kept);
                }
                // SAFETY: the operation is complete, and its request is not finished yet.
                unsafe { operation.memory.finish() };
                Ok(())
            }
            Err(fault) => {
                self.sever(&operation);
                // If the group has failed on another lane, the error there may say more: this rank
                // may only have left the group here.
                let state = self.groups.get(&operation.group).map(|joined| &joined.state);
                let known = state.and_then(|state| state.error().cloned());
                Err(known.unwrap_or_else(|| self.failure(&fault, state, Some(&operation))))
            }
        };
        operation.completion.finish(outcome);
    }

    fn forget(&mut self, op: OpId) {
        if let Some(Kept::Long(saved)) = self.kept.remove(&op) {
            self.spares.give(saved);
        }
    }

    fn move_to(&mut self, placement: &Placement) {
        let known = self.moved_to.take().unwrap_or_default();
        self.moved_to = Some(known.with(placement));
    }

    fn group_ready(&mut self, group: GroupId) {
        if self.groups.contains_key(&group) {
            self.counters.groups_created += 1;
            self.end_joining(group, || Ok(()));
        }
    }

    fn group_failed(&mut self, group: GroupId, fault: Fault) {
        if let Some(joined) = self.groups.get(&group) {
            let state = joined.state.clone();
            let error = self.failure(&fault, Some(&state), None);
            state.fail(error.clone());
            if !self.alone {
                self.failed.push((state, fault));
            }
            self.end_joining(group, || Err(error));
        }
    }

    fn note(&mut self, note: Note) {
        let counter = match note {
            Note::Resent => &mut self.counters.retransmissions,
            Note::Probe => &mut self.counters.probes,
            Note::Duplicate => &mut self.counters.datagrams_repeated,
            Note::Violation => &mut self.counters.datagrams_rejected,
            Note::Replayed => &mut self.counters.replayed,
        };
        *counter += 1;
    }
}

/// A writer of a connection with these keys.
fn writer(up: FrameKey, keys: WriterKeys) -> StreamWriter<Outgoing> {
    let mut writer = StreamWriter::new(up, CONTROL_MAX);
    writer.open(keys);
    writer
}

/// The bytes of control frames that may wait for a node that does not read. It is more than all
/// groups of a large quota have at once.
const CONTROL_MAX: usize = 64 << 20;
