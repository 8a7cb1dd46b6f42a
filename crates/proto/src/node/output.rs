//! What a node core asks of its driver.

use trib_wire::{Body, ChildIndex, Fault, Header, Signature};

use crate::{Nanos, Path, Token};

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Up.
    Parent,
    /// Down to one child.
    Child(ChildIndex),
    /// Down to every child whose bit is set, the same bytes to each (`header.child` is `ALL`).
    Children(u64),
}

/// What follows the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload<'a> {
    /// Nothing.
    None,
    /// A typed body.
    Body(&'a Body),
    /// `header.payload_len` bytes of a buffer, from byte `from` of it.
    Data {
        /// The buffer; stays the core's.
        token: Token,
        /// First byte within the buffer.
        from: u32,
    },
}

/// One child's piece of a fragment, in fold order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The buffer that holds it, from its first byte.
    pub token: Token,
    /// First byte, relative to the fragment.
    pub window: u32,
    /// Bytes, at least 1.
    pub len: u32,
}

/// How parts become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fold {
    /// Type and operator.
    pub signature: Signature,
    /// First byte of the result, relative to the fragment.
    pub window: u32,
    /// Bytes of the result.
    pub len: u32,
    /// True: all parts cover the whole result and are reduced, left to right. False: the parts are pieces of the
    /// vector, laid over zeros with a bitwise or.
    pub reduce: bool,
}

/// What happened, for counters and logs; never needed for correctness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Note {
    /// A fragment was folded.
    FragmentFolded,
    /// A segment was folded.
    SegmentFolded,
    /// A contribution came twice.
    Duplicate,
    /// A datagram older than anything kept.
    Stale,
    /// Group, generation, epoch or node in the frame is not one of ours.
    UnknownGroup,
    /// A frame that no correct peer sends now.
    Violation,
    /// Two ranks called different operations.
    Disagreement,
    /// A probe from below was answered.
    Probe,
    /// The aggregate was sent up again.
    Resent,
    /// A group was made.
    GroupMade,
    /// A group is gone, its index free.
    GroupFreed,
    /// A group creation was refused.
    GroupRefused,
    /// A group failed.
    GroupFailed,
    /// A stream context was granted.
    LeaseGranted,
    /// A lease was revoked.
    LeaseRevoked,
}

/// What of a fragment's or segment's stay at a node took its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// From its first contribution to its fold: how far the children are apart.
    Gather,
    /// From its fold to the result from above. A group's root, where sums become results, has none of it.
    Answer,
}

/// The driver of a node core. Calls are made in the order in which their effects must happen.
pub trait NodeOutput {
    /// Sends a frame. The driver fills in checksum and tag. Datagrams may be dropped; stream frames are queued in order
    /// (control frames of a link before its queued data), also while the link is not up yet. The driver keeps the
    /// buffer's bytes alive until its own writes are done, even past `release`. For each `Kind::Result` stream
    /// frame it calls `NodeCore::on_written` once per child when the bytes are in the socket.
    fn transmit(&mut self, target: Target, path: Path, header: &Header, payload: Payload<'_>);

    /// Folds the parts, in order, into one buffer. All parts' tokens are the driver's again; the result is the core's.
    fn fold(&mut self, fold: &Fold, parts: &[Part]) -> Token;

    /// The core is done with a buffer.
    fn release(&mut self, token: Token);

    /// Something worth counting happened.
    fn note(&mut self, note: Note);

    /// A group cannot go on. For who watches over the node; its members are told by frames.
    fn failed(&mut self, _fault: &Fault) {}

    /// A fragment (by datagram) or segment (over streams) has been through a stage, in so much time of the driver's clock.
    /// For who watches over the node; never needed for correctness.
    fn took(&mut self, _path: Path, _stage: Stage, _span: Nanos) {}
}
