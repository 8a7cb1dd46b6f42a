//! A frame on its way through a node.

use trib_wire::{Body, Header};

use super::output::Part;
use crate::{Path, Token};

/// An authenticated frame, as the driver hands it in.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The path on which it came.
    pub path: Path,
    /// Its header.
    pub header: &'a Header,
    /// The typed body, or `Body::None` if the frame carries vector data.
    pub body: &'a Body,
    /// The vector data: `Some` exactly if the frame carries some and `header.payload_len > 0`. The
    /// buffer is the core's from now on.
    pub data: Option<Token>,
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
        offset: head.offset,
        extent: head.extent,
        mark,
        ..edge
    }
}

impl Frame<'_> {
    /// The vector data, with the part of the fragment that it covers.
    pub(super) fn part(&self) -> Option<Part> {
        self.data.map(|token| Part { token, window: self.header.window, len: self.header.payload_len })
    }
}
