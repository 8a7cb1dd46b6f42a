//! An event at a group, with what every machine of the group needs to handle it.

use trib_wire::{ChildIndex, Fault, Header, Kind, Rank, Reason};

use super::identity::Identity;
use super::info::GroupInfo;
use crate::Nanos;

/// One event at one group of one node. It is made when the core has found the group, and is passed
/// down from there.
pub(super) struct At<'a, O> {
    /// The node: its configuration and its children.
    pub(super) identity: &'a Identity,
    /// The group.
    pub(super) info: &'a GroupInfo,
    /// When the event happened.
    pub(super) now: Nanos,
    /// The driver, which carries out what follows from the event.
    pub(super) out: &'a mut O,
}

impl<O> At<'_, O> {
    /// The header of a frame of the group to a child, or to all with `ChildIndex::ALL`.
    pub(super) fn down(&self, kind: Kind, child: ChildIndex) -> Header {
        self.info.down(self.identity, kind, child)
    }

    /// The header of a frame of the group to the parent; `None` at the root of the tree.
    pub(super) fn up(&self, kind: Kind) -> Option<Header> {
        self.info.up(self.identity, kind)
    }

    /// A fault about one rank, or about the lowest rank below a child.
    pub(super) fn about(&self, reason: Reason, rank: Rank) -> Fault {
        self.identity.about(reason, rank)
    }

    /// The member at this position has broken the protocol.
    pub(super) fn violation(&self, position: usize) -> Fault {
        self.about(Reason::Protocol, self.info.members[position].first)
    }
}
