//! What has come of the far end's stream and was not read yet.
//!
//! Each message says where in the stream its bytes belong. They usually come in order, but UCX does
//! not promise it where it uses several devices, and the payload of a long message comes some time
//! after its head. What a message says is checked before a byte of it is taken.

use std::ffi::c_void;
use std::io::{self, IoSliceMut};

use super::{PIECE, WINDOW};
use crate::mapping::Mapping;

/// The ring, and what lies in it.
pub(super) struct Incoming {
    memory: Mapping,
    /// Bytes read since the beginning.
    read: u64,
    /// Bytes that are there in one piece from the beginning.
    come: u64,
    /// What is there behind these, or on its way, in the stream's order.
    apart: Vec<Piece>,
    /// How many read bytes the far end knows of.
    told: u64,
}

struct Piece {
    at: u64,
    end: u64,
    /// UCX's request that brings it, as an address; 0 when it is there.
    request: usize,
}

impl Incoming {
    pub(super) fn new() -> io::Result<Incoming> {
        let memory = Mapping::new(WINDOW).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Incoming { memory, read: 0, come: 0, apart: Vec::with_capacity(APART_MAX), told: 0 })
    }

    /// Bytes that wait to be read.
    pub(super) fn waiting(&self) -> u64 {
        self.come - self.read
    }

    /// Whether the stream is there up to this position.
    pub(super) fn has_come_to(&self, end: u64) -> bool {
        self.come >= end
    }

    /// Makes room for bytes of the stream. Returns where they go, or what is wrong with them.
    pub(super) fn expect(&mut self, at: u64, len: usize) -> Result<*mut u8, &'static str> {
        if len == 0 || len > PIECE {
            return Err("a piece of the stream has no bytes, or too many");
        }
        let end = at.checked_add(len as u64).ok_or("a piece of the stream lies behind its end")?;
        let offset = (at % WINDOW as u64) as usize;
        if at < self.come || end > self.read + WINDOW as u64 || offset + len > WINDOW {
            return Err("a piece of the stream lies where there is no room for it");
        }
        let next = self.apart.partition_point(|piece| piece.at < at);
        let overlaps = |piece: &Piece| piece.at < end && at < piece.end;
        if self.apart.len() == APART_MAX || self.apart[next.saturating_sub(1)..].iter().take(2).any(overlaps) {
            return Err("pieces of the stream overlap, or there are too many");
        }
        self.apart.insert(next, Piece { at, end, request: usize::MAX });
        Ok(self.memory.at(offset))
    }

    /// Where expected bytes go.
    pub(super) fn address_of(&self, at: u64) -> Option<*mut u8> {
        let is_expected = self.apart.iter().any(|piece| piece.at == at && piece.request == usize::MAX);
        is_expected.then(|| self.memory.at((at % WINDOW as u64) as usize))
    }

    /// UCX brings the bytes at this position with this request.
    pub(super) fn is_requested(&mut self, at: u64, request: *mut c_void) {
        if let Some(piece) = self.apart.iter_mut().find(|piece| piece.at == at) {
            piece.request = request as usize;
        }
    }

    /// The position of the bytes that this request brings.
    pub(super) fn find(&self, request: *mut c_void) -> Option<u64> {
        self.apart.iter().find(|piece| piece.request == request as usize).map(|piece| piece.at)
    }

    /// The expected bytes at this position are there.
    pub(super) fn is_there(&mut self, at: u64) {
        if let Some(piece) = self.apart.iter_mut().find(|piece| piece.at == at) {
            piece.request = 0;
        }
        let whole = self.apart.iter().take_while(|piece| {
            let follows = piece.at == self.come && piece.request == 0;
            if follows {
                self.come = piece.end;
            }
            follows
        });
        let whole = whole.count();
        self.apart.drain(..whole);
    }

    /// Reads what waits, as far as there is memory for it. Returns the number of bytes.
    pub(super) fn read(&mut self, slices: &mut [IoSliceMut<'_>]) -> usize {
        let before = self.read;
        for slice in slices {
            let mut rest = &mut slice[..];
            while !rest.is_empty() && self.waiting() > 0 {
                let offset = (self.read % WINDOW as u64) as usize;
                let here = rest.len().min(self.waiting() as usize).min(WINDOW - offset);
                // SAFETY: the source lies inside the ring, and nothing writes to bytes that are
                // there and were not read.
                unsafe { core::ptr::copy_nonoverlapping(self.memory.at(offset), rest.as_mut_ptr(), here) };
                self.read += here as u64;
                rest = &mut rest[here..];
            }
        }
        (self.read - before) as usize
    }

    /// Whether so much was read that the far end should know.
    pub(super) fn owes_word(&self) -> bool {
        self.read - self.told >= WINDOW as u64 / 4
    }

    /// The far end is told how much was read.
    pub(super) fn tell(&mut self) -> u64 {
        self.told = self.read;
        self.read
    }
}

/// The number of pieces that may be there, or on their way, behind a gap.
const APART_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn put(come: &mut Incoming, at: u64, bytes: &[u8]) -> Result<(), &'static str> {
        let address = come.expect(at, bytes.len())?;
        // SAFETY: there is room for as many bytes.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), address, bytes.len()) };
        come.is_there(at);
        Ok(())
    }

    fn read(come: &mut Incoming, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let read = come.read(&mut [IoSliceMut::new(&mut bytes)]);
        bytes.truncate(read);
        bytes
    }

    #[test]
    fn what_is_said_of_pieces_is_checked() {
        let mut come = Incoming::new().unwrap();
        for (at, len) in
            [(0, 0), (0, PIECE + 1), (WINDOW as u64 - 8, 9), (WINDOW as u64, 1), (u64::MAX, 1), (u64::MAX - 8, 64)]
        {
            assert!(come.expect(at, len).is_err(), "{len} bytes at {at}");
        }
        put(&mut come, 100, &[1; 50]).unwrap();
        for (at, len) in [(100, 50), (99, 2), (149, 1), (60, 200), (120, 1)] {
            assert!(come.expect(at, len).is_err(), "{len} bytes at {at}");
        }
        assert_eq!(come.waiting(), 0);
        put(&mut come, 0, &[2; 100]).unwrap();
        assert_eq!(come.waiting(), 150);
        assert!(come.expect(149, 1).is_err(), "it is there already");
        let mut many = Incoming::new().unwrap();
        let taken = (0..).take_while(|at| many.expect(1 + 2 * at, 1).is_ok()).count();
        assert_eq!(taken, APART_MAX);
    }

    proptest! {
        /// In whatever order pieces come, they are read in the stream's order.
        #[test]
        fn pieces_are_read_in_order(lens in prop::collection::vec(1usize..PIECE, 1..60), seed: u64) {
            let byte = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
            let mut come = Incoming::new().unwrap();
            let (mut put_to, mut read_to, mut draw) = (0u64, 0u64, seed);
            let mut lens = lens.into_iter().peekable();
            while lens.peek().is_some() || read_to < put_to {
                // As many pieces as there is room for, in a drawn order.
                let mut batch = Vec::new();
                while let Some(len) = lens.peek().copied() {
                    let len = len.min(WINDOW - (put_to % WINDOW as u64) as usize);
                    if put_to + len as u64 > read_to + WINDOW as u64 || batch.len() == APART_MAX {
                        break;
                    }
                    batch.push((put_to, len));
                    put_to += len as u64;
                    lens.next();
                }
                while !batch.is_empty() {
                    draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let (at, len) = batch.swap_remove((draw >> 33) as usize % batch.len());
                    let bytes: Vec<u8> = (at..at + len as u64).map(byte).collect();
                    prop_assert_eq!(put(&mut come, at, &bytes), Ok(()));
                }
                let bytes = read(&mut come, 1 + (draw >> 20) as usize % WINDOW);
                prop_assert!(!bytes.is_empty());
                for found in bytes {
                    prop_assert_eq!(found, byte(read_to));
                    read_to += 1;
                }
            }
        }
    }
}
