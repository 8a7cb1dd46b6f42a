//! A frame on its way through a node.

use core::ops::Range;

use trib_wire::header::{FLAG_REPLAYED, FLAG_STREAM};
use trib_wire::{Body, Header, Kind};

use super::output::Part;
use crate::Path;

/// An authenticated frame, as the driver hands it in.
#[derive(Debug)]
pub struct Frame<'a, B> {
    /// The path on which it came.
    pub path: Path,
    /// Its header.
    pub header: &'a Header,
    /// The typed body, or `Body::None` if the frame carries vector data.
    pub body: &'a Body,
    /// The vector data: `Some` exactly if the frame carries some and `header.payload_len > 0`. The
    /// buffer is the core's from now on.
    pub data: Option<B>,
}

/// The header of a frame about the fragment or segment of `head`, over the edge that `edge` names:
/// what the piece is, and how far the ranks that the mark is about have come. Of its flags those go
/// on that have a meaning there, whatever a child has set.
pub(super) fn about_piece(head: &Header, mark: u64, edge: Header) -> Header {
    let replayed = if edge.kind == Kind::Contribution { FLAG_REPLAYED } else { 0 };
    Header {
        flags: head.flags & (FLAG_STREAM | replayed),
        lane: head.lane,
        signature: head.signature,
        witness: head.witness,
        op_seq: head.op_seq,
        seq: head.seq,
        first: head.first,
        elements: head.elements,
        mark,
        ..edge
    }
}

impl<B> Frame<'_, B> {
    /// The vector data, which was found to be these elements.
    pub(super) fn into_part(self, elements: Range<u64>) -> Option<Part<B>> {
        let bytes = self.header.payload_len;
        self.data.map(|buffer| Part { buffer, elements, bytes })
    }
}

#[cfg(test)]
mod tests {
    use trib_wire::{ChildIndex, Epoch, JobId, NodeId};

    use super::*;

    #[test]
    fn flags_without_a_meaning_end_at_the_node_to_which_they_came() {
        let head =
            Header { flags: u16::MAX, ..Header::new(Kind::Contribution, JobId(1), Epoch(1), NodeId(2), ChildIndex(0)) };
        let on =
            |kind: Kind| about_piece(&head, 0, Header::new(kind, JobId(1), Epoch(1), NodeId(1), ChildIndex(1))).flags;
        let flags = [Kind::Contribution, Kind::Probe, Kind::Result].map(on);
        assert_eq!(flags, [FLAG_STREAM | FLAG_REPLAYED, FLAG_STREAM, FLAG_STREAM]);
    }
}
