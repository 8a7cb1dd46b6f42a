//! Where an event meets a group of this rank: what the group's machines need to handle it.

use trib_wire::{Header, Kind};

use super::group::{Edge, Name};
use super::output::{GroupId, LeafOutput};
use super::rtt::RoundTrip;
use crate::Nanos;

/// One event at one group of one rank.
pub(super) struct At<'a, O> {
    /// The way up.
    pub(super) edge: &'a Edge,
    /// The group, as the node calls it.
    pub(super) name: &'a Name,
    /// The group, as this rank calls it.
    pub(super) group: GroupId,
    /// When.
    pub(super) now: Nanos,
    /// How long the way up and back takes.
    pub(super) round_trip: &'a mut RoundTrip,
    /// Who carries out what follows.
    pub(super) out: &'a mut O,
}

impl<O: LeafOutput> At<'_, O> {
    /// Header of a frame of the group.
    pub(super) fn header(&self, kind: Kind) -> Header {
        self.edge.group_header(self.name, kind)
    }
}
