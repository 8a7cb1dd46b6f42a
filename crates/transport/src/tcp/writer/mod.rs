//! Writes frames into a byte stream: control frames first, then vector data, with the groups taking
//! turns.
//!
//! ```text
//!  push_control -> control ----------------------------------+
//!  push_data ---> queue of group a --+                       +--> [begun|control|picked] -> socket
//!                 queue of group b --+-- deficit --> picked -+              |
//!                 queue of group c --+   round robin                        '--> written
//! ```
//! A frame that has begun is finished first; nothing else overtakes a control frame. `flush` never
//! blocks. A frame with vector data that continues the one before it travels with a short header.
//! That is decided when the frame is picked, because then the order of such frames is known.

mod frame;
mod head;

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

use trib_wire::auth::FrameKey;
use trib_wire::mode::Seal;
use trib_wire::{GroupIndex, Header};

use self::frame::{Content, Frame, Ready};
use self::head::Heads;
use crate::landing::Source;
use crate::sealing::WriterKeys;

/// How far `flush` came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushEnd {
    /// Nothing is queued any more.
    Idle,
    /// The socket takes no more now; the caller has to wait until it is writable.
    Blocked,
    /// As much is written as was allowed, and more is queued.
    Spent,
}

/// Control frames that wait would take more memory than the grant explains: the far end does not
/// read them. It says how many bytes wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} bytes of control frames wait for a far end that does not read")]
pub struct QueueFull(pub usize);

/// A frame with vector data whose last byte is in the socket.
#[derive(Debug)]
pub struct Written<P> {
    /// The header as it was queued.
    pub header: Header,
    /// Its payload, free again.
    pub payload: Option<P>,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct StreamWriter<P> {
    keys: WriterKeys,
    heads: Heads,
    control_max: usize,
    /// The memory of the control frames that have not begun, in bytes.
    control_bytes: usize,
    /// The frame of which some bytes are sent, and how many.
    begun: Option<(Ready<P>, usize)>,
    control: VecDeque<Ready<P>>,
    /// Frames that were chosen to go next and have not begun.
    picked: VecDeque<Ready<P>>,
    picked_bytes: usize,
    /// The header of the last frame with vector data that has begun.
    last_begun: Option<Header>,
    lanes: VecDeque<Lane<P>>,
    /// Empty queues, which are kept for their memory.
    spare: Vec<VecDeque<Frame<P>>>,
    written: VecDeque<Written<P>>,
    queued_bytes: usize,
    bytes: u64,
    frames: u64,
}

/// The queue of one group.
#[derive(Debug)]
struct Lane<P> {
    group: GroupIndex,
    frames: VecDeque<Frame<P>>,
    /// Bytes that the group may still send in this round.
    deficit: usize,
}

impl<P: Source> StreamWriter<P> {
    /// A writer that tags with `key` and lets control frames wait that take at most `control_max`
    /// bytes, or a single one that takes more.
    pub fn new(key: FrameKey, control_max: usize) -> StreamWriter<P> {
        StreamWriter {
            keys: WriterKeys::Checked(key),
            heads: Heads::new(BATCH_FRAMES),
            control_max,
            control_bytes: 0,
            begun: None,
            control: VecDeque::with_capacity(BATCH_FRAMES),
            picked: VecDeque::with_capacity(BATCH_FRAMES),
            picked_bytes: 0,
            last_begun: None,
            lanes: VecDeque::new(),
            spare: Vec::new(),
            written: VecDeque::with_capacity(BATCH_FRAMES),
            queued_bytes: 0,
            bytes: 0,
            frames: 0,
        }
    }

    /// The connection is open, and these are its keys. Control frames that wait for it already are
    /// tagged anew, and sealed.
    ///
    /// # Panics
    /// If anything else waits.
    pub fn open(&mut self, keys: WriterKeys) {
        assert!(self.begun.is_none() && self.picked.is_empty() && self.lanes.is_empty(), "only control frames wait");
        self.keys = keys;
        for waiting in core::mem::take(&mut self.control) {
            self.queued_bytes -= waiting.len();
            let ready = waiting.sent(&mut self.heads).protect(&mut self.keys, &mut self.heads);
            self.queued_bytes += ready.len();
            self.control.push_back(ready);
        }
    }

    /// Tells the time, in nanoseconds of any clock, by which keys change.
    pub fn tick(&mut self, now: u64) {
        if let WriterKeys::Sealed(keys) = &mut self.keys {
            keys.tick(now);
        }
    }

    /// Queues a frame with a typed body or none, ahead of all vector data that has not begun.
    /// Payload length, checksum and tag are filled in here.
    pub fn push_control(&mut self, header: &Header, body: &[u8]) -> Result<(), QueueFull> {
        let memory = Ready::<P>::memory_with(body.len());
        if self.control_bytes > 0 && self.control_bytes + memory > self.control_max {
            return Err(QueueFull(self.control_bytes));
        }
        let ready = Frame::with_body(*header, body).protect(&mut self.keys, &mut self.heads);
        self.queued_bytes += ready.len();
        self.control_bytes += ready.memory();
        self.control.push_back(ready);
        Ok(())
    }

    /// Queues a frame with vector data (or a header-only result) behind the others of its group.
    /// TCP's own checksum protects the payload here; the tag covers the header.
    ///
    /// # Panics
    /// If the payload is not `header.payload_len` bytes long.
    pub fn push_data(&mut self, header: &Header, payload: Option<P>) {
        debug_assert!(payload.is_none() || matches!(self.keys, WriterKeys::Checked(_)), "a payload without its seal");
        self.push_in_turn(header, payload, None);
    }

    /// The same in a mode that seals payloads: the payload is the sealed one.
    ///
    /// # Panics
    /// If the payload is not `header.payload_len` bytes long.
    pub fn push_sealed(&mut self, header: &Header, payload: P, seal: &Seal) {
        self.push_in_turn(header, Some(payload), Some(seal));
    }

    fn push_in_turn(&mut self, header: &Header, payload: Option<P>, seal: Option<&Seal>) {
        let len = payload.as_ref().map_or(0, |p| p.bytes().len());
        assert_eq!(len, header.payload_len as usize, "payload length");
        let group = header.group;
        let frame = Frame::with_data(*header, payload, seal.map(Seal::to_bytes));
        self.queued_bytes += frame.longest();
        match self.lanes.iter_mut().find(|lane| lane.group == group) {
            Some(lane) => lane.frames.push_back(frame),
            None => {
                let mut frames = self.spare.pop().unwrap_or_default();
                frames.push_back(frame);
                self.lanes.push_back(Lane { group, frames, deficit: 0 });
            }
        }
    }

    /// Writes until nothing is queued or the socket is full. Afterwards `next_written` gives what
    /// was written.
    pub fn flush(&mut self, socket: &mut impl Write) -> io::Result<FlushEnd> {
        self.flush_some(socket, u64::MAX)
    }

    /// The same, but begins no system call after `most` bytes are written.
    pub fn flush_some(&mut self, socket: &mut impl Write, most: u64) -> io::Result<FlushEnd> {
        let end = self.bytes.saturating_add(most);
        loop {
            if self.bytes >= end && !self.is_idle() {
                return Ok(FlushEnd::Spent);
            }
            self.pick();
            let (result, offered) = {
                let mut slices = [IoSlice::new(&[]); 2 * BATCH_FRAMES];
                let (count, offered) = self.gather(&mut slices);
                if count == 0 {
                    return Ok(FlushEnd::Idle);
                }
                (socket.write_vectored(&slices[..count]), offered)
            };
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => {
                    self.consume(sent);
                    if sent < offered {
                        return Ok(FlushEnd::Blocked);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(FlushEnd::Blocked),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The oldest frame with vector data that was written and not yet asked for.
    pub fn next_written(&mut self) -> Option<Written<P>> {
        self.written.pop_front()
    }

    /// Whether nothing waits, so that there is no need to ask for writability.
    pub fn is_idle(&self) -> bool {
        self.queued_bytes == 0
    }

    /// The memory of the control frames that wait and have not begun, in bytes.
    pub fn control_bytes(&self) -> usize {
        self.control_bytes
    }

    /// Bytes that wait, headers included.
    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Removes frames with vector data that have not begun and are unwanted; returns how many.
    pub fn cut(&mut self, mut unwanted: impl FnMut(&Header) -> bool) -> usize {
        let mut frames = 0;
        let mut bytes = 0;
        let mut keep = |header: &Header, len: usize| {
            let cut = unwanted(header);
            if cut {
                frames += 1;
                bytes += len;
            }
            !cut
        };
        let picked = self.picked.len();
        self.picked.retain(|ready| keep(&ready.frame.header, ready.len()));
        let cut = picked - self.picked.len();
        for lane in &mut self.lanes {
            lane.frames.retain(|frame| keep(&frame.header, frame.longest()));
        }
        self.lanes.retain(|lane| !lane.frames.is_empty());
        self.queued_bytes -= bytes;
        self.encode_picked(cut);
        frames
    }

    /// Encodes the picked frames anew after some were removed, because a short header must follow
    /// the frame for which it was made.
    fn encode_picked(&mut self, cut: usize) {
        let mut previous = self.last_begun;
        if let WriterKeys::Sealed(keys) = &mut self.keys {
            keys.take_back(cut + self.picked.len());
        }
        self.picked_bytes = 0;
        for ready in &mut self.picked {
            self.queued_bytes -= ready.len();
            ready.encode(previous.as_ref(), &mut self.keys, &mut self.heads);
            self.queued_bytes += ready.len();
            self.picked_bytes += ready.len();
            if ready.frame.carries_data() {
                previous = Some(ready.frame.header);
            }
        }
    }

    /// Drops everything that waits, because the connection is gone.
    pub fn clear(&mut self) {
        self.begun = None;
        self.control.clear();
        self.control_bytes = 0;
        self.picked.clear();
        self.picked_bytes = 0;
        self.last_begun = None;
        self.lanes.clear();
        self.written.clear();
        self.queued_bytes = 0;
    }

    /// Every payload of vector data that waits, the one that has begun included, for instance to
    /// replace the application's memory by a copy. A replacement has the same length.
    pub fn payloads_mut(&mut self) -> impl Iterator<Item = (&Header, &mut P)> {
        let begun = self.begun.iter_mut().map(|(ready, _)| ready);
        let picked = begun.chain(&mut self.picked).map(|ready| &mut ready.frame);
        let lanes = self.lanes.iter_mut().flat_map(|lane| &mut lane.frames);
        picked.chain(lanes).filter_map(|frame| match &mut frame.content {
            Content::Data(payload) => Some((&frame.header, payload)),
            _ => None,
        })
    }

    /// Bytes written to the socket.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Frames written to the last byte.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Deficit round robin: a group's turn ends when it has had its share of bytes.
    fn pick(&mut self) {
        let picked = self.picked.iter().rev().map(|ready| &ready.frame);
        let mut previous = picked.into_iter().find(|frame| frame.carries_data()).map(|frame| frame.header);
        previous = previous.or(self.last_begun);
        while self.picked_bytes < BATCH_BYTES && self.picked.len() < BATCH_FRAMES {
            let Some(lane) = self.lanes.front_mut() else {
                return;
            };
            let len = lane.frames.front().map_or(0, Frame::longest);
            if lane.deficit < len {
                lane.deficit += QUANTUM;
                self.lanes.rotate_left(1);
                continue;
            }
            lane.deficit -= len;
            if let Some(frame) = lane.frames.pop_front() {
                let ready = frame.encode(previous.as_ref(), &mut self.keys, &mut self.heads);
                if ready.frame.carries_data() {
                    previous = Some(ready.frame.header);
                }
                self.queued_bytes -= len - ready.len();
                self.picked_bytes += ready.len();
                self.picked.push_back(ready);
            }
            if lane.frames.is_empty()
                && let Some(lane) = self.lanes.pop_front()
                && self.spare.len() < SPARE_MAX
            {
                self.spare.push(lane.frames);
            }
        }
    }

    /// Gathers what goes into the next system call; returns how many slices and how many bytes it
    /// has.
    fn gather<'a>(&'a self, slices: &mut [IoSlice<'a>; 2 * BATCH_FRAMES]) -> (usize, usize) {
        let (mut count, mut bytes) = (0, 0);
        let mut add = |part: &'a [u8]| {
            if !part.is_empty() {
                slices[count] = IoSlice::new(part);
                count += 1;
                bytes += part.len();
            }
        };
        let mut room = BATCH_FRAMES;
        if let Some((ready, sent)) = &self.begun {
            add(ready.head().get(*sent..).unwrap_or(&[]));
            add(&ready.frame.payload()[sent.saturating_sub(ready.head().len())..]);
            room -= 1;
        }
        for ready in self.control.iter().chain(&self.picked).take(room) {
            add(ready.head());
            add(ready.frame.payload());
        }
        (count, bytes)
    }

    fn consume(&mut self, sent: usize) {
        self.bytes += sent as u64;
        self.queued_bytes -= sent;
        let mut left = sent;
        while left > 0 {
            let (ready, before) = match self.begun.take() {
                Some(begun) => begun,
                None => (self.next_in_order(), 0),
            };
            let missing = ready.len() - before;
            if left < missing {
                self.begun = Some((ready, before + left));
                return;
            }
            left -= missing;
            self.frames += 1;
            let frame = ready.sent(&mut self.heads);
            if frame.carries_data() {
                self.written.push_back(Written {
                    header: frame.header,
                    payload: match frame.content {
                        Content::Data(payload) => Some(payload),
                        _ => None,
                    },
                });
            }
        }
    }

    fn next_in_order(&mut self) -> Ready<P> {
        if let Some(ready) = self.control.pop_front() {
            self.control_bytes -= ready.memory();
            return ready;
        }
        let ready = self.picked.pop_front().expect("no more bytes were sent than offered");
        self.picked_bytes -= ready.len();
        if ready.frame.carries_data() {
            self.last_begun = Some(ready.frame.header);
        }
        ready
    }
}

/// The largest number of frames in one system call.
const BATCH_FRAMES: usize = 32;
/// Vector data is picked until it has this many bytes: that is enough for a system call to be worth
/// it, and so little that a control frame or another group soon has its turn.
const BATCH_BYTES: usize = 256 * 1024;
/// Bytes of vector data that a group sends before the next one has its turn.
const QUANTUM: usize = 64 * 1024;
/// How many empty queues are kept.
const SPARE_MAX: usize = 16;
