//! What both ends of an edge look at: the segment, who is asleep, and the bells.
//!
//! ```text
//!   awake (0) --- fall_asleep: word set, fence, nothing is there ---> asleep (mark, wants room?)
//!     ^  ^                                                                    |
//!     |  '------------------- wake_up: its own poll returned -----------------|
//!     '---- ring: the far end has put or taken something, fence, word read ---'
//! ```
//! How the two meet is in `asleep`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32};

use rustix::event::{EventfdFlags, eventfd};

use super::asleep;
use super::segment::{End, Segment, Use, ring_len};

/// One end's view of the edge.
pub(super) struct Line {
    pub(super) segment: Segment,
    pub(super) end: End,
    own_bell: OwnedFd,
    far_bell: OwnedFd,
    /// How many bytes of the stream wake this end.
    mark: AtomicU32,
    /// A write of this end has found the stream's ring full.
    wants_room: AtomicBool,
    /// The stream is not read for now, so that this end does not look for its bytes.
    held: AtomicBool,
}

/// What the child hands over: the segment, the child's bell and the node's.
pub(crate) type Offer = [OwnedFd; 3];

impl Line {
    /// The child's end of a new edge, and what the node is to get.
    pub(super) fn create() -> io::Result<(Line, Offer)> {
        let (segment, memory) = Segment::create()?;
        let (child, node) = (bell()?, bell()?);
        let offer = [memory, child.try_clone()?, node.try_clone()?];
        Ok((Line::new(segment, End::Child, child, node), offer))
    }

    /// The node's end.
    pub(super) fn accept([memory, child, node]: Offer) -> io::Result<Line> {
        // A thread that rings a bell must never wait for it, whatever the child has sent as one.
        for bell in [&child, &node] {
            rustix::io::ioctl_fionbio(bell, true)?;
        }
        Ok(Line::new(Segment::open(&memory)?, End::Node, node, child))
    }

    fn new(segment: Segment, end: End, own_bell: OwnedFd, far_bell: OwnedFd) -> Line {
        let (mark, wants_room, held) = (AtomicU32::new(1), AtomicBool::new(false), AtomicBool::new(false));
        Line { segment, end, own_bell, far_bell, mark, wants_room, held }
    }

    /// The bell of this end.
    pub(super) fn bell(&self) -> RawFd {
        self.own_bell.as_raw_fd()
    }

    /// Forgets earlier rings.
    pub(super) fn clear_bell(&self) {
        // It fails when the bell was not rung.
        let _ = rustix::io::read(&self.own_bell, &mut [0; 8]);
    }

    pub(super) fn set_mark(&self, bytes: u32) {
        self.mark.store(bytes.clamp(1, HALF), Relaxed);
    }

    pub(super) fn set_wants_room(&self, wants: bool) {
        self.wants_room.store(wants, Relaxed);
    }

    pub(super) fn set_held(&self, held: bool) {
        self.held.store(held, Relaxed);
    }

    /// The far end has something new to read.
    pub(super) fn ring_for_bytes(&self) {
        self.ring(|asleep| self.waiting(self.end, Use::Stream) >= asleep & MARK);
    }

    /// The far end has a datagram to take.
    pub(super) fn ring_for_record(&self) {
        self.ring(|_| true);
    }

    /// The far end has more room to write.
    pub(super) fn ring_for_room(&self) {
        let waiting = || self.waiting(self.end.far(), Use::Stream);
        self.ring(|asleep| asleep & ROOM != 0 && waiting() <= u64::from(HALF));
    }

    fn ring(&self, wakes: impl Fn(u64) -> bool) {
        if asleep::is_to_wake(self.segment.asleep(self.end.far()), wakes) {
            ring(&self.far_bell);
        }
    }

    fn ring_own(&self) {
        ring(&self.own_bell);
    }

    /// Says that this end is about to sleep on its bell. Returns false if it should not, because
    /// something is there.
    pub(super) fn fall_asleep(&self) -> bool {
        let room = if self.wants_room.load(Relaxed) { ROOM } else { 0 };
        // More bytes than there is room for never come.
        let mark = if self.held.load(Relaxed) { u32::MAX } else { self.mark.load(Relaxed) };
        let reason = u64::from(mark) | room;
        let is_there = || self.has_records() || self.has_bytes(mark) || self.has_room();
        asleep::fall_asleep(self.segment.asleep(self.end), reason, is_there)
    }

    /// This end looks for itself.
    pub(super) fn wake_up(&self) {
        asleep::wake_up(self.segment.asleep(self.end));
    }

    /// Whether a write waits for room that is there now.
    fn has_room(&self) -> bool {
        self.wants_room.load(Relaxed) && self.waiting(self.end, Use::Stream) <= u64::from(HALF)
    }

    pub(super) fn has_records(&self) -> bool {
        self.waiting(self.end.far(), Use::Records) > 0
    }

    /// Whether any byte waits that is to be read now.
    fn is_to_read(&self) -> bool {
        self.has_bytes(1) && !self.held.load(Relaxed)
    }

    fn has_bytes(&self, at_least: u32) -> bool {
        self.waiting(self.end.far(), Use::Stream) >= u64::from(at_least)
    }

    /// Bytes in a ring, as the segment says, which both ends can write.
    fn waiting(&self, from: End, kind: Use) -> u64 {
        let put = self.segment.put(from, kind).load(Acquire);
        put.wrapping_sub(self.segment.taken(from, kind).load(Relaxed))
    }
}

/// A look at an edge for a thread that must not hold its ends meanwhile.
#[derive(Clone)]
pub struct NearGlance {
    line: Arc<Line>,
}

impl NearGlance {
    pub(super) fn new(line: Arc<Line>) -> NearGlance {
        NearGlance { line }
    }

    /// Whether datagrams wait.
    #[inline]
    pub fn has_records(&self) -> bool {
        self.line.has_records()
    }

    /// Whether datagrams wait, or any byte of the stream that is to be read now, or room for which
    /// a write waits. The low-water mark is for sleepers alone.
    #[inline]
    pub fn has_come(&self) -> bool {
        self.line.has_records() || self.line.is_to_read() || self.line.has_room()
    }

    /// Whether there is room now for a write that has waited for it. It does not wait any more.
    pub fn has_room(&self) -> bool {
        let has_room = self.line.has_room();
        if has_room {
            self.line.set_wants_room(false);
        }
        has_room
    }

    /// Whether any byte of the stream waits that is to be read now.
    pub fn has_bytes(&self) -> bool {
        self.line.is_to_read()
    }

    /// Says that this end is about to sleep until its bell is rung. Returns false if something is
    /// there already; then this end is awake.
    pub fn fall_asleep(&self) -> bool {
        self.line.fall_asleep()
    }

    /// Says that this end looks for itself. Until the next `fall_asleep` its bell is not rung.
    pub fn wake_up(&self) {
        self.line.wake_up();
    }

    /// The same for a thread that sleeps in any case: if something is there, its own bell wakes it.
    pub fn fall_asleep_or_ring(&self) {
        if !self.line.fall_asleep() {
            self.line.ring_own();
        }
    }

    /// Forgets that the bell was rung.
    pub fn clear_bell(&self) {
        self.line.clear_bell();
    }

    /// The descriptor on which this end sleeps.
    pub fn bell(&self) -> RawFd {
        self.line.bell()
    }
}

fn ring(bell: &OwnedFd) {
    // It only fails when the bell was rung 2^64 times.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

fn bell() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Who waits for room is woken when half of the ring is free, and who waits for bytes when half of
/// it is full, so that the two never wait for each other.
const HALF: u32 = (ring_len(Use::Stream) / 2) as u32;
/// The part of the word that says how many bytes of the stream wake an end that is asleep.
const MARK: u64 = u32::MAX as u64;
/// The bit that says that room for a write wakes it, too.
const ROOM: u64 = 1 << 32;
