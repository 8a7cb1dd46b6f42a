//! The groups of a rank that stream, and which of them share its flight.
//!
//! A group whose results do not come, because one of its ranks is late, has nothing on the link:
//! what it sent lies in the node's staging room. So it is not counted until a result comes again.
//! It stands still if the rank has had many results of other groups since its own last one; there
//! is no clock in it.

use super::output::GroupId;

/// A group that streams.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: GroupId,
    /// The number of the rank's results when the group began or last had one.
    moved: u64,
}

/// The groups of a rank that stream.
#[derive(Debug)]
pub(super) struct Streaming {
    groups: Vec<Entry>,
    /// The number of the rank's results over the stream so far.
    results: u64,
    /// The number of results of others after which a group stands still.
    patience: u64,
}

impl Streaming {
    /// None yet. `flight` is the number of segments that the rank may have in flight.
    pub(super) fn new(flight: u32) -> Streaming {
        Streaming { groups: Vec::new(), results: 0, patience: STILL_AFTER * u64::from(flight) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = GroupId> {
        self.groups.iter().map(|entry| entry.id)
    }

    /// A group begins to stream.
    pub(super) fn add(&mut self, id: GroupId) {
        self.groups.push(Entry { id, moved: self.results });
    }

    /// A group streams no more.
    pub(super) fn remove(&mut self, id: GroupId) {
        self.groups.retain(|entry| entry.id != id);
    }

    /// A result of a group has come.
    pub(super) fn result(&mut self, id: GroupId) {
        self.results += 1;
        if let Some(entry) = self.groups.iter_mut().find(|entry| entry.id == id) {
            entry.moved = self.results;
        }
    }

    /// The number of groups that share the flight when `id` sends: those that move, and itself.
    pub(super) fn sharers(&self, id: GroupId) -> u64 {
        let moves = |entry: &&Entry| self.results - entry.moved <= self.patience;
        1 + self.groups.iter().filter(|entry| entry.id != id).filter(moves).count() as u64
    }
}

/// A group stands still when the rank has had so many flights of results of its other groups since
/// the last one of this group. Groups that take turns are far below it, however long the line.
const STILL_AFTER: u64 = 4;
