//! What a leaf core asks of its driver, and the names it uses.

use core::ops::Range;

use trib_wire::body::Fault;
use trib_wire::{Body, Header, Placement};

use crate::Path;

/// A group of this rank, as long as the driver keeps it. A core never uses the number again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(pub u64);

/// A posted operation. A core never uses the number again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId(pub u64);

/// Elements of a posted operation's vector, and the payload that has them. The module `window` says
/// how the vector maps to the program's buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// The operation.
    pub op: OpId,
    /// The first element in its vector.
    pub first: u64,
    /// The number of elements.
    pub elements: u32,
    /// The number of bytes that these take in the payload.
    pub bytes: u32,
}

impl Slice {
    /// The elements.
    pub fn range(&self) -> Range<u64> {
        self.first..self.first + u64::from(self.elements)
    }
}

/// What follows the header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload<'a> {
    /// Nothing.
    None,
    /// A typed body.
    Body(&'a Body),
    /// Elements of an operation's input.
    Data(Slice),
}

/// What happened, for counters. Nothing depends on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Note {
    /// A contribution was sent again in the same epoch.
    Resent,
    /// A probe was sent.
    Probe,
    /// A result came twice, or for an operation that is gone.
    Duplicate,
    /// A frame came that no correct node sends now.
    Violation,
    /// A contribution was sent that this rank had sent in an earlier epoch, too.
    Replayed,
}

/// The driver of a leaf core. The calls come in the order in which their effects must happen.
pub trait LeafOutput {
    /// Sends a frame to the node. The driver fills in checksum and tag. Datagrams may be dropped.
    /// Stream frames are queued in order, control frames before data, also while the link is not up
    /// yet. A `Payload::Data` refers to the program's memory, which the driver may read until
    /// `complete` of that operation returns. What is still queued then, which happens only after a
    /// failure, the driver cuts off or copies.
    fn transmit(&mut self, path: Path, header: &Header, payload: Payload<'_>);

    /// The payload of the frame that is being handled is this part of the operation's result.
    fn deliver(&mut self, slice: Slice);

    /// The operation is over. On success it names the elements of the vector of which this rank's
    /// contribution may be needed again, until `forget`. If there are any, the driver keeps a copy
    /// of them from which it sends, because the program may change its input now.
    fn complete(&mut self, op: OpId, result: Result<Range<u64>, Fault>);

    /// The contribution to an operation that is over is not needed any more.
    fn forget(&mut self, op: OpId);

    /// Every member holds the result of every fragment (datagram) or segment (stream) below `seq`
    /// of the group. This is for those who watch.
    fn stable(&mut self, _group: GroupId, _path: Path, _seq: u64) {}

    /// The job's tree has this placement now. The driver gives up the connection that it has, and
    /// calls the node where it is in that placement.
    fn move_to(&mut self, placement: &Placement);

    /// The group exists everywhere.
    fn group_ready(&mut self, group: GroupId);

    /// The group was refused or has failed. Its operations have been completed with the same fault
    /// just before.
    fn group_failed(&mut self, group: GroupId, fault: Fault);

    /// Something worth counting happened.
    fn note(&mut self, note: Note);
}
