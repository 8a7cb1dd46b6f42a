//! What the driver remembers of a posted operation, and the memory its frames are sent from and read into.

use std::sync::Arc;

use trib_proto::Path;
use trib_proto::leaf::{GroupId, Slice};
use trib_transport::landing::{Landing, Source, UserLanding, UserSource};
use trib_wire::directory::ordinal;
use trib_wire::{Generation, GroupIndex, Header};

use crate::memory::Memory;
use crate::request::Completion;

/// One operation from post to completion.
pub(crate) struct Operation {
    pub(crate) group: GroupId,
    pub(crate) memory: Memory,
    pub(crate) completion: Arc<Completion>,
    /// How its frames are known, once one was sent or came.
    pub(crate) trace: Option<Trace>,
}

/// Where an operation's frames stand in the sequence of its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Trace {
    pub(crate) path: Path,
    index: GroupIndex,
    generation: Generation,
    op_seq: u64,
    /// One more than the largest fragment or segment number seen.
    pub(crate) end_seq: u64,
}

impl Operation {
    /// What it is and which of its group's: `allreduce of 1024 float64 (sum), the 3rd operation`.
    pub(crate) fn words(&self) -> Option<String> {
        let what = self.completion.what()?.words();
        let which = self.trace.map(|trace| format!(", the {} operation", ordinal(trace.op_seq)));
        Some(what + &which.unwrap_or_default())
    }

    /// Notes a frame of the operation.
    pub(crate) fn saw(&mut self, path: Path, header: &Header) {
        let end_seq = self.trace.map_or(0, |trace| trace.end_seq).max(header.seq + 1);
        let Header { group: index, generation, op_seq, .. } = *header;
        self.trace = Some(Trace { path, index, generation, op_seq, end_seq });
    }
}

impl Trace {
    /// Whether a frame belongs to the operation.
    pub(crate) fn covers(&self, header: &Header) -> bool {
        (self.index, self.generation, self.op_seq) == (header.group, header.generation, header.op_seq)
    }
}

/// Payload of a queued stream frame.
pub(crate) enum Outgoing {
    /// In the caller's memory, while its operation runs.
    User(UserSource),
    /// A copy: the operation has failed while the frame was half written.
    Copy(Vec<u8>),
}

impl Outgoing {
    /// Lets go of the caller's memory.
    pub(crate) fn detach(&mut self) {
        if let Outgoing::User(source) = self {
            *self = Outgoing::Copy(source.bytes().to_vec());
        }
    }
}

impl Source for Outgoing {
    fn bytes(&self) -> &[u8] {
        match self {
            Outgoing::User(source) => source.bytes(),
            Outgoing::Copy(bytes) => bytes,
        }
    }
}

/// Where the payload of a stream frame is read to.
pub(crate) enum Incoming {
    /// Straight to its place in the result.
    Placed(Slice, UserLanding),
    /// Aside, for a frame that the core had no place for when its header came.
    Aside(Vec<u8>),
}

impl Landing for Incoming {
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Incoming::Placed(_, landing) => landing.bytes_mut(),
            Incoming::Aside(bytes) => bytes,
        }
    }
}
