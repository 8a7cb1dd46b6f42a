//! Where the logical nodes of a job are.

use std::collections::{BTreeMap, BTreeSet};

use trib_messages::recovery::Dwelling;
use trib_messages::reply::{Home, JobStatus};
use trib_wire::NodeId;
use trib_wire::ids::Rank;

use crate::fabric::Fabric;

/// How often each node has moved, put together from what several processes know, some of which may
/// be behind.
#[derive(Clone, Default)]
pub(super) struct Moves(BTreeMap<NodeId, u16>);

impl Moves {
    /// One more process knows these.
    pub(super) fn learn(&mut self, moves: &[(NodeId, u16)]) {
        for (node, count) in moves {
            let known = self.0.entry(*node).or_default();
            *known = (*known).max(*count);
        }
    }

    /// The epochs after the first, of all trees together.
    pub(super) fn epochs(&self) -> u64 {
        self.0.values().map(|moves| u64::from(*moves)).sum()
    }
}

/// Where each logical node of the job is.
pub(super) fn all(fabric: &Fabric, status: &JobStatus, moves: &Moves) -> Vec<Dwelling> {
    let known = |node: &NodeId| moves.0.get(node).copied().unwrap_or(0);
    let ranks: BTreeSet<Rank> = status.deputies.iter().flatten().map(|rank| Rank(*rank)).collect();
    let hosts: BTreeMap<Rank, String> =
        fabric.jobs.processes(status.id, &ranks).into_iter().map(|(rank, process)| (rank, process.host)).collect();
    let sessions = fabric.deputies.of(status.id);
    let at_rank = |rank: u32| match hosts.get(&Rank(rank)) {
        Some(host) => format!("rank {rank} on {host}"),
        // An earlier manager knew the host; the rank itself has told it, if it hosts something.
        None => {
            let bare = format!("rank {rank}");
            let told = sessions.iter().map(|session| &session.name);
            told.into_iter().find(|name| name.starts_with(&format!("{bare} "))).cloned().unwrap_or(bare)
        }
    };
    let dwelling = |(node, name): (NodeId, String)| {
        let moves = known(&node);
        let at = match status.home_of(node, moves)? {
            Home::Node(process) => process.to_owned(),
            Home::Rank(rank) => at_rank(rank),
        };
        Some(Dwelling { node, name, lane: status.lane_of(node).unwrap_or(0) as u32, at, moves })
    };
    status.node_names().into_iter().filter_map(dwelling).collect()
}

/// The same of those that have moved.
pub(super) fn moved(fabric: &Fabric, status: &JobStatus, moves: &Moves) -> Vec<Dwelling> {
    if moves.0.is_empty() {
        return Vec::new();
    }
    all(fabric, status, moves).into_iter().filter(|home| home.moves > 0).collect()
}
