//! The memory of one edge, and what stands where in it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use super::file;
use crate::mapping::Mapping;

/// An end of the edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Child,
    Node,
}

/// What a ring is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    Stream,
    Records,
}

impl End {
    pub(super) fn far(self) -> End {
        match self {
            End::Child => End::Node,
            End::Node => End::Child,
        }
    }
}

/// The memory, mapped.
pub(super) struct Segment {
    mapping: Mapping,
}

impl Segment {
    /// A segment of zeros, and the descriptor with which the far end maps it.
    pub(super) fn create() -> io::Result<(Segment, OwnedFd)> {
        let memory = file::create("tributary-edge", LEN)?;
        Ok((Segment::map(&memory)?, memory))
    }

    /// Maps what the far end has sent.
    pub(super) fn open(memory: &OwnedFd) -> io::Result<Segment> {
        file::check(memory, LEN)?;
        Segment::map(memory)
    }

    fn map(memory: &OwnedFd) -> io::Result<Segment> {
        Ok(Segment { mapping: Mapping::shared(memory.as_fd(), LEN)? })
    }

    /// Whether this end is asleep, and for what: see `line`.
    pub(super) fn asleep(&self, end: End) -> &AtomicU64 {
        self.word(match end {
            End::Child => 0,
            End::Node => LINE,
        })
    }

    /// How many bytes this end has put into a ring since the beginning. The counts of its two rings
    /// share a cache line, so that who looks for either touches one line.
    pub(super) fn put(&self, from: End, kind: Use) -> &AtomicU64 {
        self.word(2 * LINE + 2 * LINE * (from as usize) + 8 * (kind as usize))
    }

    /// How many bytes of a ring its far end has taken out of what `from` has put in.
    pub(super) fn taken(&self, from: End, kind: Use) -> &AtomicU64 {
        self.word(3 * LINE + 2 * LINE * (from as usize) + 8 * (kind as usize))
    }

    /// The first byte of the ring into which `from` writes.
    pub(super) fn ring(&self, from: End, kind: Use) -> *mut u8 {
        let at = match kind {
            Use::Stream => CONTROL + STREAM * (from as usize),
            Use::Records => CONTROL + 2 * STREAM + RECORDS * (from as usize),
        };
        self.mapping.at(at)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(8) && at < CONTROL);
        // SAFETY: the word lies inside the mapping, which lives as long as `self`, is aligned, and
        // is never accessed but as an atomic.
        unsafe { AtomicU64::from_ptr(self.mapping.at(at).cast()) }
    }
}

/// The length of a ring in bytes, a power of two.
pub(super) const fn ring_len(kind: Use) -> usize {
    match kind {
        Use::Stream => STREAM,
        Use::Records => RECORDS,
    }
}

/// Two cache lines, because processors fetch them in pairs.
const LINE: usize = 128;
const CONTROL: usize = 4096;
/// Both rings of bytes fit into a core's own cache, and a segment of the stream path fits into one.
const STREAM: usize = 256 * 1024;
const RECORDS: usize = 64 * 1024;
pub(super) const LEN: usize = CONTROL + 2 * STREAM + 2 * RECORDS;
