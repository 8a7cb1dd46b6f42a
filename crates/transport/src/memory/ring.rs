//! A ring of bytes with one writer and one reader, each in a process of its own.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::copy::copy_bytes;
use super::line::Line;
use super::segment::{End, Use, ring_len};

/// The writing end.
pub(super) struct Writer {
    line: Arc<Line>,
    kind: Use,
    /// The bytes written since the beginning. The count in the segment is for the far end alone.
    put: u64,
}

/// The reading end.
pub(super) struct Reader {
    line: Arc<Line>,
    kind: Use,
    taken: u64,
}

impl Writer {
    pub(super) fn new(line: Arc<Line>, kind: Use) -> Writer {
        Writer { line, kind, put: 0 }
    }

    /// How many bytes there is room for.
    pub(super) fn room(&self) -> io::Result<usize> {
        let taken = self.line.segment.taken(self.line.end, self.kind).load(Acquire);
        let inside = self.put.wrapping_sub(taken);
        match ring_len(self.kind).checked_sub(inside as usize) {
            Some(room) if inside <= ring_len(self.kind) as u64 => Ok(room),
            _ => Err(damaged()),
        }
    }

    /// Writes as many of the bytes as there is room for, and shows them to the far end. Returns
    /// their number.
    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let (mut room, mut written) = (self.room()?, 0);
        for slice in slices {
            let mut rest = &slice[..slice.len().min(room)];
            room -= rest.len();
            written += rest.len();
            // The far end begins with the first pieces of a long slice while the next are copied.
            while !rest.is_empty() {
                let piece = rest.len().min(PIECE);
                self.copy_in(&rest[..piece]);
                rest = &rest[piece..];
                if piece == PIECE {
                    self.show();
                }
            }
            if room == 0 {
                break;
            }
        }
        self.show();
        Ok(written)
    }

    /// Copies bytes for which there is room. The far end does not see them yet.
    pub(super) fn copy_in(&mut self, bytes: &[u8]) {
        let len = ring_len(self.kind);
        let at = self.put as usize & (len - 1);
        let (first, second) = bytes.split_at(bytes.len().min(len - at));
        let ring = self.line.segment.ring(self.line.end, self.kind);
        // SAFETY: both targets lie inside the ring. The far end does not read there before `show`;
        // should it do so all the same, it reads what it must not rely on, and we do not.
        unsafe {
            copy_bytes(first.as_ptr(), ring.add(at), first.len());
            copy_bytes(second.as_ptr(), ring, second.len());
        }
        self.put = self.put.wrapping_add(bytes.len() as u64);
    }

    /// Shows the far end what was copied.
    pub(super) fn show(&self) {
        self.line.segment.put(self.line.end, self.kind).store(self.put, Release);
    }
}

impl Reader {
    pub(super) fn new(line: Arc<Line>, kind: Use) -> Reader {
        Reader { line, kind, taken: 0 }
    }

    fn from(&self) -> End {
        self.line.end.far()
    }

    /// How many bytes wait.
    pub(super) fn waiting(&self) -> io::Result<usize> {
        let put = self.line.segment.put(self.from(), self.kind).load(Acquire);
        let waiting = put.wrapping_sub(self.taken);
        if waiting > ring_len(self.kind) as u64 {
            return Err(damaged());
        }
        Ok(waiting as usize)
    }

    /// Reads what waits, as far as there is memory for it. Returns the number of bytes.
    pub(super) fn read(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let (mut waiting, mut read) = (self.waiting()?, 0);
        for slice in slices {
            let len = slice.len().min(waiting);
            self.copy_out(&mut slice[..len]);
            waiting -= len;
            read += len;
            if waiting == 0 {
                break;
            }
        }
        self.release();
        Ok(read)
    }

    /// Copies bytes that wait. The far end may not overwrite them yet.
    pub(super) fn copy_out(&mut self, bytes: &mut [u8]) {
        let len = ring_len(self.kind);
        let at = self.taken as usize & (len - 1);
        let (first, second) = bytes.split_at_mut(bytes.len().min(len - at));
        let ring = self.line.segment.ring(self.from(), self.kind);
        // SAFETY: both sources lie inside the ring. The far end does not write there before
        // `release`; should it do so all the same, the bytes are any bytes, as from a socket.
        unsafe {
            copy_bytes(ring.add(at), first.as_mut_ptr(), first.len());
            copy_bytes(ring, second.as_mut_ptr(), second.len());
        }
        self.taken = self.taken.wrapping_add(bytes.len() as u64);
    }

    /// Passes over bytes that wait.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.taken = self.taken.wrapping_add(bytes as u64);
    }

    /// Passes over all that the far end says it has put, whether that can be or not.
    pub(super) fn skip_all(&mut self) {
        self.taken = self.line.segment.put(self.from(), self.kind).load(Acquire);
        self.release();
    }

    /// Gives the far end back what was copied.
    pub(super) fn release(&self) {
        self.line.segment.taken(self.from(), self.kind).store(self.taken, Release);
    }
}

pub(super) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the far end has spoilt the memory that it shares")
}

/// As much is shown at once.
const PIECE: usize = 32 * 1024;
