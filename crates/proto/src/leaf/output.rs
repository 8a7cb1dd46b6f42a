//! What a leaf core asks of its driver, and the names it uses.

use core::ops::Range;

use trib_wire::body::Fault;
use trib_wire::{Body, Header};

use crate::Path;

/// A group of this rank, as long as the driver keeps it; never reused by one core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(pub u64);

/// A posted operation; never reused by one core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId(pub u64);

/// Bytes of a posted operation's vector (see `window` for how the vector maps to the user's buffers).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// The operation.
    pub op: OpId,
    /// First byte in its vector.
    pub from: u64,
    /// Bytes.
    pub len: u32,
}

/// What follows the header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload<'a> {
    /// Nothing.
    None,
    /// A typed body.
    Body(&'a Body),
    /// Bytes of an operation's input.
    Data(Slice),
}

/// What happened, for counters; never needed for correctness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Note {
    /// A contribution was sent again.
    Resent,
    /// A probe was sent.
    Probe,
    /// A result came twice, or for an operation that is gone.
    Duplicate,
    /// A frame that no correct node sends now.
    Violation,
}

/// The driver of a leaf core. Calls are made in the order in which their effects must happen.
pub trait LeafOutput {
    /// Sends a frame to the node. The driver fills in checksum and tag. Datagrams may be dropped; stream frames
    /// are queued in order (control before data), also while the link is not up yet. A `Payload::Data`
    /// refers to the user's memory: the driver reads it before `complete` of that operation returns at the latest; what
    /// is then still queued (only possible after a failure) is cut off or copied by the driver.
    fn transmit(&mut self, path: Path, header: &Header, payload: Payload<'_>);

    /// The payload of the frame being handled is this part of the operation's result.
    fn deliver(&mut self, slice: Slice);

    /// The operation is over. On success it names the part of the vector (bytes) whose result some
    /// member may still lack, until `stable` says otherwise.
    fn complete(&mut self, op: OpId, result: Result<Range<u64>, Fault>);

    /// Every member holds the result of every fragment (datagram) or segment (stream) below `seq` of
    /// the group. For a driver that keeps results which somebody may lack.
    fn stable(&mut self, _group: GroupId, _path: Path, _seq: u64) {}

    /// The group exists everywhere.
    fn group_ready(&mut self, group: GroupId);

    /// The group was refused or has failed; its operations have been completed with the same fault just before.
    fn group_failed(&mut self, group: GroupId, fault: Fault);

    /// Something worth counting happened.
    fn note(&mut self, note: Note);
}
