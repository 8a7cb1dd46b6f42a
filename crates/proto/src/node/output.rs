//! What a node core asks of its driver.

use core::ops::Range;

use trib_wire::{Body, ChildIndex, Fault, Header, NodeId, Placement, Signature};

use crate::{Nanos, Path};

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// To the parent.
    Parent,
    /// To one child.
    Child(ChildIndex),
    /// To every child whose bit is set. All get the same bytes (`header.child` is `ALL`).
    Children(u64),
}

/// What follows the header.
#[derive(Debug)]
pub enum Payload<'a, B> {
    /// Nothing.
    None,
    /// A typed body.
    Body(&'a Body),
    /// `header.payload_len` bytes of a buffer, from byte `from` of it.
    Data {
        /// The buffer, which stays the core's.
        buffer: &'a B,
        /// The first byte within the buffer.
        from: u32,
    },
}

/// Elements of a fragment or segment, in a buffer.
#[derive(Debug)]
pub struct Part<B> {
    /// The buffer, which holds them from its first byte on.
    pub buffer: B,
    /// Which elements of the vector they are, at least one.
    pub elements: Range<u64>,
    /// The number of bytes that they take in the buffer.
    pub bytes: u32,
}

/// How several parts become one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fold {
    /// The type, the operator and the wire format.
    pub signature: Signature,
    /// The elements of the vector that the result has.
    pub elements: Range<u64>,
    /// The number of bytes of the result.
    pub bytes: u32,
    /// If true, every part covers the whole result, and they are reduced from left to right. If
    /// false, the parts are different elements, which are laid over zeros with a bitwise or.
    pub reduce: bool,
}

/// What happened, for counters and logs. Nothing depends on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Note {
    /// A fragment was folded.
    FragmentFolded,
    /// A segment was folded.
    SegmentFolded,
    /// A contribution came twice.
    Duplicate,
    /// A datagram came that is older than anything kept.
    Stale,
    /// A frame came whose group, generation, epoch or node is not one of ours.
    UnknownGroup,
    /// A frame came that no correct peer sends now.
    Violation,
    /// Two ranks called different operations.
    Disagreement,
    /// A probe from below was answered.
    Probe,
    /// An aggregate was sent up again.
    Resent,
    /// A group was made.
    GroupMade,
    /// A group is gone, and its index is free.
    GroupFreed,
    /// The creation of a group was refused.
    GroupRefused,
    /// A group failed.
    GroupFailed,
    /// A stream context was granted.
    LeaseGranted,
    /// A lease was revoked.
    LeaseRevoked,
    /// The far end of a link has been silent for too long.
    LinkSilent,
}

/// The stages of a fragment's or segment's stay at a node, whose times are measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// From the first contribution to the fold: how far the children are apart.
    Gather,
    /// From the fold to the result from above. It does not occur at a group's root, where
    /// aggregates become results.
    Answer,
}

/// The driver of a node core. The calls come in the order in which their effects must happen.
pub trait NodeOutput {
    /// What holds the bytes of a vector. The core never looks inside. It owns each buffer that
    /// comes in with a frame, and moves it until it is folded or dropped: dropping it gives its
    /// memory back.
    type Buffer;

    /// Sends a frame. The driver fills in checksum and tag. Datagrams may be dropped. Stream frames
    /// are queued in order (a link's control frames before its queued data), also while the link is
    /// not up yet. A driver that needs a buffer's bytes after the call keeps a share of its own
    /// of them, because the core may drop the buffer before they are written. For each stream frame
    /// of `Kind::Result` it calls `NodeCore::on_written` once per child, when the bytes have been
    /// written to the socket.
    fn transmit(&mut self, target: Target, path: Path, header: &Header, payload: Payload<'_, Self::Buffer>);

    /// Folds the parts, in order, into one buffer. The parts, which are two or more, are the
    /// driver's from now on, and the result is the core's.
    fn fold(&mut self, fold: &Fold, parts: impl Iterator<Item = Part<Self::Buffer>>) -> Self::Buffer;

    /// Something worth counting happened.
    fn note(&mut self, note: Note);

    /// The node at the other end of a link is gone, so the job's tree needs another placement.
    fn suspect(&mut self, node: NodeId);

    /// The job's tree has this placement now.
    fn move_to(&mut self, placement: &Placement);

    /// A group cannot go on. This is for people who watch the node; the group's members are told by
    /// frames.
    fn failed(&mut self, _fault: &Fault) {}

    /// A fragment (by datagram) or segment (over streams) has been through a stage, which took this
    /// long by the driver's clock. This is for people who watch the node; nothing depends on it.
    fn took(&mut self, _path: Path, _stage: Stage, _span: Nanos) {}

    /// A fragment or segment has become a result, with this many bytes of the vector, to which some
    /// rank had sent its contribution in an earlier epoch, too. Only the group's root says so. This
    /// is for people who watch the node; nothing depends on it.
    fn replayed(&mut self, _path: Path, _bytes: u64) {}
}
