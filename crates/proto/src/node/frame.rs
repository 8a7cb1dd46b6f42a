//! A frame on its way through a node.

use core::ops::Range;

use trib_wire::{Body, Header};

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
/// what the piece is, and how far the ranks that the mark is about have come.
pub(super) fn about_piece(head: &Header, mark: u64, edge: Header) -> Header {
    Header {
        flags: head.flags,
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
