//! What the groups of a node have folded, for who watches over it.

use trib_wire::{GroupIndex, Header};

use super::group::Group;
use crate::Nanos;

/// One group that folds at this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupReport {
    /// Its index here; another group may have it when this one is gone.
    pub index: GroupIndex,
    /// Ranks of the whole group, also of those that are not below this node.
    pub ranks: u32,
    /// Fragments, by datagram.
    pub datagrams: Folded,
    /// Segments, over streams.
    pub streams: Folded,
}

/// Folds of one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Folded {
    /// How many.
    pub count: u64,
    /// Bytes of the results.
    pub bytes: u64,
    /// Sum of the times from a first contribution to the fold.
    pub gathering: Nanos,
}

impl GroupReport {
    pub(super) fn of(group: &Group) -> GroupReport {
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
        self.bytes += u64::from(head.extent);
        self.gathering = self.gathering + gathered;
    }
}
