//! Where the logical nodes of a job's tree are: which of its candidates each of them has come to.
//!
//! Every logical node has a list of candidates, processes that may host it, which is the same for
//! all. A placement says how often each node has moved on in its list. A rank or node that finds a
//! node dead counts one move for it, and one that hears of another placement takes the larger count
//! of each node. So all that speak with each other come to the same placement in whatever order the
//! news travel, and nothing has to decide. The epoch is the first one plus all moves: a placement
//! that follows another has a higher epoch.
//!
//! ```text
//! placement  entries u16 | entries x ( node u16 | moves u16 )
//! ```

use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::error::ParseError;
use crate::ids::{Epoch, NodeId};

/// The largest number of nodes of one tree that may have moved: as many as a tree may have, whose
/// numbers are below this.
pub const MOVED_MAX: usize = 65_535;

/// How often each logical node of one tree has moved to its next candidate.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Placement {
    /// The nodes that have moved, by number, and how often. No count is 0.
    moves: Vec<(NodeId, u16)>,
}

impl Placement {
    /// Every node is at its first candidate.
    pub const FIRST: Placement = Placement { moves: Vec::new() };

    /// How often a node has moved.
    pub fn moves_of(&self, node: NodeId) -> u16 {
        self.moves.binary_search_by_key(&node, |(n, _)| *n).map_or(0, |at| self.moves[at].1)
    }

    /// The nodes that have moved, and how often.
    pub fn moves(&self) -> impl Iterator<Item = (NodeId, u16)> {
        self.moves.iter().copied()
    }

    /// Which of a node's candidates hosts it. The list begins anew behind its end, because the
    /// first one may be there again.
    pub fn candidate(&self, node: NodeId, candidates: usize) -> usize {
        usize::from(self.moves_of(node)) % candidates.max(1)
    }

    /// The epoch of the placement, if that of the first one is `first`.
    pub fn epoch(&self, first: Epoch) -> Epoch {
        Epoch(self.moves().fold(first.0, |epoch, (_, moves)| epoch.saturating_add(u32::from(moves))))
    }

    /// The placement after a node was found dead where it is.
    #[must_use]
    pub fn without(&self, node: NodeId) -> Placement {
        let mut moves = self.moves.clone();
        match moves.binary_search_by_key(&node, |(n, _)| *n) {
            Ok(at) => moves[at].1 = moves[at].1.saturating_add(1),
            Err(at) => moves.insert(at, (node, 1)),
        }
        Placement { moves }
    }

    /// The first placement that knows every move of both.
    #[must_use]
    pub fn with(&self, other: &Placement) -> Placement {
        let mut moves = self.moves.clone();
        for (node, count) in other.moves() {
            match moves.binary_search_by_key(&node, |(n, _)| *n) {
                Ok(at) => moves[at].1 = moves[at].1.max(count),
                Err(at) => moves.insert(at, (node, count)),
            }
        }
        Placement { moves }
    }

    /// Whether it knows every move that the other knows.
    pub fn covers(&self, other: &Placement) -> bool {
        other.moves().all(|(node, moves)| self.moves_of(node) >= moves)
    }

    /// The length in a frame, in bytes.
    pub fn wire_len(&self) -> usize {
        2 + 4 * self.moves.len()
    }

    /// The number of entries, which stands before them.
    pub(crate) fn entries(&self) -> u16 {
        self.moves.len() as u16
    }

    pub(crate) fn emit(&self, w: &mut Writer<'_>) {
        w.u16(self.entries());
        self.emit_entries(w);
    }

    pub(crate) fn emit_entries(&self, w: &mut Writer<'_>) {
        for (node, moves) in self.moves() {
            w.u16(node.0);
            w.u16(moves);
        }
    }

    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Placement, ParseError> {
        let entries = r.u16()?;
        Placement::parse_entries(r, entries)
    }

    /// The bytes of so many entries.
    pub(crate) fn entries_len(entries: u16) -> usize {
        4 * usize::from(entries)
    }

    pub(crate) fn parse_entries(r: &mut Reader<'_>, entries: u16) -> Result<Placement, ParseError> {
        // Memory is taken for what is there, and not for what is announced.
        if r.left() < Placement::entries_len(entries) {
            return Err(ParseError::Truncated);
        }
        let mut moves: Vec<(NodeId, u16)> = Vec::with_capacity(entries.into());
        for _ in 0..entries {
            let entry = (NodeId(r.u16()?), r.u16()?);
            let is_node = usize::from(entry.0.0) < MOVED_MAX;
            if !is_node || entry.1 == 0 || moves.last().is_some_and(|last| last.0 >= entry.0) {
                return Err(ParseError::BadField("placement"));
            }
            moves.push(entry);
        }
        Ok(Placement { moves })
    }
}
