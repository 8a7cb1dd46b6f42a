//! An event at a group of this rank, with what the group's machines need to handle it.

use trib_wire::{Header, Kind};

use super::group::{Edge, Name};
use super::output::{GroupId, LeafOutput};
use super::rtt::RoundTrip;
use crate::Nanos;

/// One event at one group of one rank.
pub(super) struct At<'a, O> {
    /// The rank's link to its node.
    pub(super) edge: &'a Edge,
    /// The group, as the node calls it.
    pub(super) name: &'a Name,
    /// The group, as this rank calls it.
    pub(super) group: GroupId,
    /// When the event happened.
    pub(super) now: Nanos,
    /// The estimate of how long a probe to the node and its answer take.
    pub(super) round_trip: &'a mut RoundTrip,
    /// The driver, which carries out what follows from the event.
    pub(super) out: &'a mut O,
}

impl<O: LeafOutput> At<'_, O> {
    /// The header of a frame of this group.
    pub(super) fn header(&self, kind: Kind) -> Header {
        self.edge.group_header(self.name, kind)
    }
}
