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

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

use trib_wire::auth::{FrameKey, payload_crc};
use trib_wire::header::{FLAG_CRC, FLAG_SEALED, HEADER_LEN};
use trib_wire::mode::{SEAL_LEN, Seal};
use trib_wire::short::SHORT_LEN;
use trib_wire::{GroupIndex, Header, ShortHeader};

use crate::landing::Source;
use crate::sealing::{SealingKeys, WriterKeys};

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
    control_max: usize,
    /// The memory of the control frames that have not begun, in bytes.
    control_bytes: usize,
    /// The frame of which some bytes are sent, and how many.
    begun: Option<(Frame<P>, usize)>,
    control: VecDeque<Frame<P>>,
    /// Frames that were chosen to go next and have not begun.
    picked: VecDeque<Frame<P>>,
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

#[derive(Debug)]
struct Frame<P> {
    header: Header,
    /// The header as it travels: `head_len` bytes, long or short.
    head: [u8; HEADER_LEN],
    head_len: usize,
    /// The same with the seal behind it, instead, if the frame has one; and the seal.
    sealed: Option<Box<SealedHead>>,
    content: Content<P>,
}

#[derive(Debug)]
struct SealedHead {
    bytes: [u8; HEADER_LEN + SEAL_LEN],
    seal: [u8; SEAL_LEN],
}

#[derive(Debug)]
enum Content<P> {
    None,
    Body(Box<[u8]>),
    Data(P),
}

/// The queue of one group.
#[derive(Debug)]
struct Lane<P> {
    group: GroupIndex,
    frames: VecDeque<Frame<P>>,
    /// Bytes that the group may still send in this round.
    deficit: usize,
}

impl<P: Source> Frame<P> {
    /// A frame whose header is still to be encoded.
    fn new(header: Header, content: Content<P>, seal: Option<[u8; SEAL_LEN]>) -> Frame<P> {
        let mut frame = Frame { header, head: [0; HEADER_LEN], head_len: HEADER_LEN, sealed: None, content };
        if let Some(seal) = seal {
            frame.set_seal(seal);
        }
        frame
    }

    fn set_seal(&mut self, seal: [u8; SEAL_LEN]) {
        self.sealed = Some(Box::new(SealedHead { bytes: [0; HEADER_LEN + SEAL_LEN], seal }));
        self.head_len = HEADER_LEN + SEAL_LEN;
    }

    /// Gives a control frame what covers its body in the mode of these keys, and its tag. Until
    /// then the body is as it was given.
    fn protect(&mut self, keys: &mut WriterKeys) {
        self.header.flags &= !(FLAG_CRC | FLAG_SEALED);
        self.header.payload_crc = 0;
        if let Content::Body(body) = &mut self.content {
            match keys {
                WriterKeys::Checked(_) => {
                    self.header.flags |= FLAG_CRC;
                    self.header.payload_crc = payload_crc(body);
                }
                WriterKeys::Sealed(keys) => {
                    self.header.flags |= FLAG_SEALED;
                    let seal = keys.seal_body(body).to_bytes();
                    self.set_seal(seal);
                }
            }
        }
        self.encode(None, keys);
    }

    fn payload(&self) -> &[u8] {
        match &self.content {
            Content::None => &[],
            Content::Body(body) => body,
            Content::Data(payload) => payload.bytes(),
        }
    }

    fn head(&self) -> &[u8] {
        match &self.sealed {
            None => &self.head[..self.head_len],
            Some(sealed) => &sealed.bytes[..self.head_len],
        }
    }

    fn len(&self) -> usize {
        self.head_len + self.header.payload_len as usize
    }

    /// The memory that it takes while it waits, its vector data apart.
    fn memory(&self) -> usize {
        let body = if let Content::Body(body) = &self.content { body.len() } else { 0 };
        size_of::<Frame<P>>() + body
    }

    /// Gives the header the shortest form that can follow the data frame `previous`, and its tag.
    fn encode(&mut self, previous: Option<&Header>, keys: &mut WriterKeys) {
        let short = previous.and_then(|previous| ShortHeader::between(previous, &self.header));
        match keys {
            WriterKeys::Checked(key) => self.encode_checked(short, key),
            WriterKeys::Sealed(keys) => self.encode_sealed(short, keys),
        }
    }

    fn encode_checked(&mut self, short: Option<ShortHeader>, key: &FrameKey) {
        match short {
            Some(short) => {
                let mut bytes = [0; SHORT_LEN];
                short.seal(&self.header, key, &mut bytes);
                self.head[..SHORT_LEN].copy_from_slice(&bytes);
                self.head_len = SHORT_LEN;
            }
            None => {
                key.seal(&self.header, &mut self.head);
                self.head_len = HEADER_LEN;
            }
        }
    }

    fn encode_sealed(&mut self, short: Option<ShortHeader>, keys: &mut SealingKeys) {
        let tag = keys.next_tag(&self.header, self.sealed.as_ref().map(|sealed| &sealed.seal));
        self.head_len = match short {
            Some(short) => {
                let mut bytes = [0; SHORT_LEN];
                short.emit(tag, &mut bytes);
                self.head[..SHORT_LEN].copy_from_slice(&bytes);
                SHORT_LEN
            }
            None => {
                self.header.emit(tag, &mut self.head);
                HEADER_LEN
            }
        };
        if let Some(sealed) = &mut self.sealed {
            sealed.bytes[..self.head_len].copy_from_slice(&self.head[..self.head_len]);
            sealed.bytes[self.head_len..self.head_len + SEAL_LEN].copy_from_slice(&sealed.seal);
            self.head_len += SEAL_LEN;
        }
    }
}

impl<P: Source> StreamWriter<P> {
    /// A writer that tags with `key` and lets control frames wait that take at most `control_max`
    /// bytes, or a single one that takes more.
    pub fn new(key: FrameKey, control_max: usize) -> StreamWriter<P> {
        StreamWriter {
            keys: WriterKeys::Checked(key),
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
        for frame in &mut self.control {
            self.queued_bytes -= frame.len();
            frame.protect(&mut self.keys);
            self.queued_bytes += frame.len();
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
        let memory = size_of::<Frame<P>>() + body.len();
        if self.control_bytes > 0 && self.control_bytes + memory > self.control_max {
            return Err(QueueFull(self.control_bytes));
        }
        let mut header = *header;
        header.payload_len = body.len() as u32;
        let content = if body.is_empty() { Content::None } else { Content::Body(body.into()) };
        let mut frame = Frame::new(header, content, None);
        frame.protect(&mut self.keys);
        self.queued_bytes += frame.len();
        self.control_bytes += frame.memory();
        self.control.push_back(frame);
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
        let mut header = *header;
        header.flags &= !(FLAG_CRC | FLAG_SEALED);
        if seal.is_some() {
            header.flags |= FLAG_SEALED;
        }
        header.payload_crc = 0;
        let group = header.group;
        let frame = Frame::new(header, payload.map_or(Content::None, Content::Data), seal.map(Seal::to_bytes));
        self.queued_bytes += frame.len();
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
        let mut keep = |frame: &Frame<P>| {
            let cut = unwanted(&frame.header);
            if cut {
                frames += 1;
                bytes += frame.len();
            }
            !cut
        };
        let picked = self.picked.len();
        self.picked.retain(&mut keep);
        let cut = picked - self.picked.len();
        for lane in &mut self.lanes {
            lane.frames.retain(&mut keep);
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
        for frame in &mut self.picked {
            self.queued_bytes -= frame.len();
            frame.encode(previous.as_ref(), &mut self.keys);
            self.queued_bytes += frame.len();
            self.picked_bytes += frame.len();
            if frame.header.kind.carries_data() {
                previous = Some(frame.header);
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
        let begun = self.begun.iter_mut().map(|(frame, _)| frame);
        let lanes = self.lanes.iter_mut().flat_map(|lane| &mut lane.frames);
        begun.chain(&mut self.picked).chain(lanes).filter_map(|frame| match &mut frame.content {
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
        let mut previous =
            self.picked.iter().rev().find(|frame| frame.header.kind.carries_data()).map(|frame| frame.header);
        previous = previous.or(self.last_begun);
        while self.picked_bytes < BATCH_BYTES && self.picked.len() < BATCH_FRAMES {
            let Some(lane) = self.lanes.front_mut() else {
                return;
            };
            let len = lane.frames.front().map_or(0, Frame::len);
            if lane.deficit < len {
                lane.deficit += QUANTUM;
                self.lanes.rotate_left(1);
                continue;
            }
            lane.deficit -= len;
            if let Some(mut frame) = lane.frames.pop_front() {
                frame.encode(previous.as_ref(), &mut self.keys);
                if frame.header.kind.carries_data() {
                    previous = Some(frame.header);
                }
                self.queued_bytes -= len - frame.len();
                self.picked_bytes += frame.len();
                self.picked.push_back(frame);
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
        if let Some((frame, sent)) = &self.begun {
            add(frame.head().get(*sent..).unwrap_or(&[]));
            add(&frame.payload()[sent.saturating_sub(frame.head_len)..]);
            room -= 1;
        }
        for frame in self.control.iter().chain(&self.picked).take(room) {
            add(frame.head());
            add(frame.payload());
        }
        (count, bytes)
    }

    fn consume(&mut self, sent: usize) {
        self.bytes += sent as u64;
        self.queued_bytes -= sent;
        let mut left = sent;
        while left > 0 {
            let (frame, before) = match self.begun.take() {
                Some(begun) => begun,
                None => (self.next_in_order(), 0),
            };
            let missing = frame.len() - before;
            if left < missing {
                self.begun = Some((frame, before + left));
                return;
            }
            left -= missing;
            self.frames += 1;
            if frame.header.kind.carries_data() {
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

    fn next_in_order(&mut self) -> Frame<P> {
        if let Some(frame) = self.control.pop_front() {
            self.control_bytes -= frame.memory();
            return frame;
        }
        let frame = self.picked.pop_front().expect("no more bytes were sent than offered");
        self.picked_bytes -= frame.len();
        if frame.header.kind.carries_data() {
            self.last_begun = Some(frame.header);
        }
        frame
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
