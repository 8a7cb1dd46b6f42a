//! Whether a job has ranks left, by what the processes tell that may host its nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use trib_messages::jobs::JobActivity;
use trib_messages::reply::JobStatus;
use trib_wire::ids::NodeId;

/// What is known at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Presence {
    /// A rank is there, or it is not known whether one is.
    There,
    /// No rank is there, and a logical node waits for some: before the first of them comes, after
    /// the last has gone, or when they are on their way to another candidate.
    Awaited,
    /// No process hosts anything of the job.
    Nowhere,
    /// All ranks have come to their nodes, and have gone.
    Gone,
}

impl Presence {
    /// What all these processes tell of the job: everyone that may host a node of it, but ranks.
    pub(super) fn of(job: &JobStatus, told: &[JobActivity]) -> Presence {
        if told.iter().any(|part| part.activity.ranks > 0 || part.nodes_in_ranks > 0) {
            return Presence::There;
        }
        if told.is_empty() {
            return Presence::Nowhere;
        }
        let mut moves: BTreeMap<NodeId, u16> = BTreeMap::new();
        for (node, count) in told.iter().flat_map(|part| &part.moves) {
            let known = moves.entry(*node).or_default();
            *known = (*known).max(*count);
        }
        // A process may not have heard yet that a tree has gone on elsewhere.
        let is_current = |part: &JobActivity, of: NodeId| {
            let mut moved = moves.iter().filter(|(node, _)| job.lane_of(**node) == job.lane_of(of));
            moved.all(|(node, count)| part.moves.contains(&(*node, *count)))
        };
        let current = |part| move |node: &&NodeId| is_current(part, **node);
        let spent: BTreeSet<NodeId> =
            told.iter().flat_map(|part| part.spent.iter().filter(current(part))).copied().collect();
        // Those that ranks host are children of others, and count as ranks there.
        let in_ranks: BTreeSet<NodeId> = job.in_ranks.iter().map(|(node, _)| *node).collect();
        let mut all = (0..job.homes.len()).map(|node| NodeId(node as u16)).filter(|node| !in_ranks.contains(node));
        let is_known = !job.homes.is_empty();
        if is_known && all.all(|node| spent.contains(&node)) { Presence::Gone } else { Presence::Awaited }
    }

    /// How long it has to be so until the job is over; `None`: it goes on.
    pub(super) fn patience(self) -> Option<Duration> {
        match self {
            Presence::There => None,
            Presence::Awaited => Some(AWAITED),
            Presence::Nowhere => Some(NOWHERE),
            Presence::Gone => Some(GONE),
        }
    }
}

/// All ranks that have lost a living node at once come to the next candidate within this time.
const GONE: Duration = Duration::from_secs(1);
/// The same when the node has died, and for ranks that host nodes and have to call the manager.
const NOWHERE: Duration = Duration::from_secs(5);
/// A program that got its ticket goes to its nodes at once. On a machine with far too much to do
/// that takes seconds.
const AWAITED: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
