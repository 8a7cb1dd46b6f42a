//! What the node is told of a group whose operations go over a board, where no node sees them.

use trib_wire::body::{LATE_MAX, Late};
use trib_wire::{Body, Header, Kind, RankList, Signature};

use super::group::{Edge, Name};
use super::output::{LeafOutput, Payload};
use crate::Path;
use crate::time::Nanos;

/// An operation over a board that does not go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standstill {
    /// The operation, counted from the first that the program has posted, 1.
    pub operation: u64,
    /// What this rank has called.
    pub signature: Signature,
    /// Since when this rank waits.
    pub since: Nanos,
    /// For which ranks of the job, the lowest of them.
    pub late: RankList,
}

impl Standstill {
    /// For which ranks one waits, as far as the node is told.
    pub fn late(mut ranks: Vec<u32>) -> RankList {
        ranks.sort_unstable();
        RankList::from_ranks(ranks.into_iter().take(LATE_MAX as usize))
    }
}

/// The board of a group, as this rank tells of it.
#[derive(Default)]
pub(super) struct Board {
    /// Whether there is one.
    is_there: bool,
    standstill: Option<Standstill>,
}

impl Board {
    /// There is one, and this is how it stands there.
    pub(super) fn set(&mut self, standstill: Option<Standstill>) {
        *self = Board { is_there: true, standstill };
    }

    /// Tells the node, which has not heard it yet.
    pub(super) fn tell(&self, edge: &Edge, name: &Name, now: Nanos, out: &mut impl LeafOutput) {
        if !self.is_there || name.is_none() {
            return;
        }
        let bare = edge.group_header(name, Kind::Late);
        let (header, late) = match &self.standstill {
            None => (bare, Late { waited_ms: 0, ranks: RankList::EMPTY }),
            Some(Standstill { operation, signature, since, late }) => {
                let waited_ms = u32::try_from(now.since(*since).0 / 1_000_000).unwrap_or(u32::MAX);
                let header = Header { op_seq: *operation, signature: *signature, ..bare };
                (header, Late { waited_ms, ranks: late.clone() })
            }
        };
        out.transmit(Path::Stream, &header, Payload::Body(&Body::Late(late)));
    }
}
