//! What the groups of a node have folded, for people who watch it.

use trib_wire::{GroupIndex, Header, Way};

use super::group::Group;
use crate::Nanos;

/// One group that folds at this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupReport {
    /// Its index here. When this group is gone, another one may have the index.
    pub index: GroupIndex,
    /// The number of ranks of the whole group, with those that are not below this node.
    pub ranks: u32,
    /// The fragments that were folded, which came by datagram.
    pub datagrams: Folded,
    /// The segments that were folded, which came over streams.
    pub streams: Folded,
}

/// The folds of one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Folded {
    /// The number of folds.
    pub count: u64,
    /// The sum of the results' bytes.
    pub bytes: u64,
    /// The sum of the times from a first contribution to the fold.
    pub gathering: Nanos,
}

impl GroupReport {
    pub(super) fn of<B>(group: &Group<B>) -> GroupReport {
        GroupReport {
            index: group.info.index,
            ranks: group.info.size,
            datagrams: group.datagrams.as_ref().map_or_else(Folded::default, |datagrams| datagrams.folded()),
            streams: group.streams.as_ref().map_or_else(Folded::default, |streams| streams.folded()),
        }
    }
}

impl Folded {
    pub(super) fn add(&mut self, head: &Header, gathered: Nanos) {
        self.count += 1;
        self.bytes += result_bytes(head);
        self.gathering = self.gathering + gathered;
    }
}

/// The bytes of the vector in the result of a fragment or segment.
pub(super) fn result_bytes(head: &Header) -> u64 {
    head.signature.layout().bytes(&head.piece(), Way::Down)
}
