//! The way of frames from a connection into the core.

use trib_proto::node::{Frame, Link};
use trib_proto::{Nanos, NodeCore, Path};
use trib_transport::tcp::{Arrived, Destination, FrameSink, StreamError};
use trib_wire::{Body, ChildIndex, Header, Kind};

use super::{Identity, JobBuffer, LinkNumber, Output};

/// Takes the frames of one link of one job.
pub(crate) struct Sink<'a> {
    pub core: &'a mut NodeCore<JobBuffer>,
    pub out: Output<'a>,
    pub link: Link,
    pub number: LinkNumber,
    pub now: Nanos,
    /// How much work the frames of this turn may still make, as bytes of vector.
    pub allowance: u64,
}

impl FrameSink for Sink<'_> {
    type Buffer = JobBuffer;

    fn place(&mut self, header: &Header) -> Destination<JobBuffer> {
        if !belongs(&self.out.io.identity, self.link, header) {
            return Destination::Refuse("a frame of another edge");
        }
        let data_kind = if self.link == Link::Parent { Kind::Result } else { Kind::Contribution };
        if header.kind != data_kind {
            return Destination::Refuse("vector data in the wrong direction");
        }
        match self.out.io.buffers.take(Path::Stream, header.payload_len as usize) {
            Some(buffer) => Destination::Into(buffer),
            None => {
                self.out.tally.pool_exhausted += 1;
                Destination::Refuse("more vector data than the grant allows")
            }
        }
    }

    fn foresee(&mut self, header: &Header) -> Option<JobBuffer> {
        self.out.io.buffers.take(Path::Stream, header.payload_len as usize)
    }

    fn goes_on(&self) -> bool {
        self.allowance > 0 && !self.out.io.links.is_held(self.number)
    }

    fn frame(&mut self, header: &Header, payload: Arrived<'_, JobBuffer>) -> Result<(), StreamError> {
        if !belongs(&self.out.io.identity, self.link, header) {
            return Err(StreamError::Refused("a frame of another edge"));
        }
        self.out.tally.frames_in += 1;
        let weight = if header.kind.carries_data() { u64::from(header.payload_len) } else { CONTROL_WEIGHT };
        self.allowance = self.allowance.saturating_sub(weight.max(DATA_WEIGHT));
        let (body, data) = match payload {
            Arrived::None => (Body::parse(header.kind, &[])?, None),
            Arrived::Body(bytes) => (Body::parse(header.kind, bytes)?, None),
            Arrived::Data(buffer) => {
                self.out.tally.payload_bytes_in += buffer.len() as u64;
                (Body::None, Some(buffer))
            }
            Arrived::Discarded => return Err(StreamError::Refused("vector data that nobody wanted")),
        };
        let frame = Frame { path: Path::Stream, header, body: &body, data };
        self.core.on_frame(self.now, self.link, frame, &mut self.out);
        Ok(())
    }
}

/// What a control frame weighs beside vector data, in bytes: about as many are folded in the time
/// that a node needs for one.
const CONTROL_WEIGHT: u64 = 16 << 10;

/// The least that a frame with vector data weighs.
const DATA_WEIGHT: u64 = 1 << 10;

/// Whether the header names the edge over which it came.
pub(crate) fn belongs(identity: &Identity, link: Link, header: &Header) -> bool {
    match (link, identity.parent) {
        (Link::Child(child), _) => header.node == identity.node && header.child == child,
        (Link::Parent, Some((parent, child))) => {
            header.node == parent && (header.child == child || header.child == ChildIndex::ALL)
        }
        (Link::Parent, None) => false,
    }
}
