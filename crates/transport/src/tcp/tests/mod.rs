mod farewell;
mod foreseen;
mod framing;
mod handshake;
mod schedule;
mod sealed;
mod short;

use trib_wire::{ChildIndex, Epoch, GroupIndex, Header, JobId, Kind, NodeId};

use crate::landing::{Landing, Source};

/// Memory of a test's own, for both directions.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Bytes(Vec<u8>);

impl Landing for Bytes {
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Source for Bytes {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

fn header(kind: Kind, group: u32, payload: usize) -> Header {
    let mut header = Header::new(kind, JobId(1), Epoch(1), NodeId(2), ChildIndex(3));
    header.group = GroupIndex(group);
    header.elements = payload as u32;
    header.payload_len = payload as u32;
    header
}
