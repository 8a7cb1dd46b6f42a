mod farewell;
mod foreseen;
mod framing;
mod handshake;
mod schedule;
mod sealed;
mod short;

use std::io::{self, IoSliceMut, Read};

use trib_wire::{ChildIndex, Epoch, GroupIndex, Header, JobId, Kind, NodeId};

/// A stream that gives its bytes as they were cut: each call gives one piece.
struct Cut<'a> {
    bytes: &'a [u8],
    cuts: std::iter::Cycle<std::slice::Iter<'a, usize>>,
}

impl Read for Cut<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(bytes)])
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut left = *self.cuts.next().unwrap();
        let before = self.bytes.len();
        for slice in slices {
            let here = left.min(slice.len()).min(self.bytes.len());
            slice[..here].copy_from_slice(&self.bytes[..here]);
            self.bytes = &self.bytes[here..];
            left -= here;
        }
        Ok(before - self.bytes.len())
    }
}

fn header(kind: Kind, group: u32, payload: usize) -> Header {
    let mut header = Header::new(kind, JobId(1), Epoch(1), NodeId(2), ChildIndex(3));
    header.group = GroupIndex(group);
    header.elements = payload as u32;
    header.payload_len = payload as u32;
    header
}
