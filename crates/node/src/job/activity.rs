//! Whether a logical node has work: how many ranks are here, and how long nothing has been folded,
//! here or over the boards of ranks below. A child node in a rank's process is no rank here, and
//! yet says that there are some.
//!
//! Nothing is recorded for it while frames are handled: from time to time the worker compares the
//! counts of the folds with the earlier ones.

use trib_messages::job::{GrantChild, NodeGrant};
use trib_messages::jobs::Activity;
use trib_proto::Nanos;
use trib_wire::ChildKind;

use super::{Job, JobIo, LinkNumber, PARENT};

/// When the counts last moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoldWatch {
    /// A bit for each child that is a rank.
    ranks: u64,
    /// A bit for each child that is a node in a rank's process.
    in_ranks: u64,
    /// The folds and the operations over boards.
    work: u64,
    moved: Nanos,
}

impl FoldWatch {
    pub(crate) fn new(grant: &NodeGrant, now: Nanos) -> FoldWatch {
        let bits = |is_one: fn(&GrantChild) -> bool| {
            let chosen = grant.children.iter().enumerate().filter(|(_, child)| is_one(child));
            chosen.fold(0, |bits, (position, _)| bits | 1 << position)
        };
        let ranks = bits(|child| matches!(child.kind, ChildKind::Rank(_)));
        let in_ranks = bits(|child| matches!(child.kind, ChildKind::Node(_)) && child.in_rank);
        FoldWatch { ranks, in_ranks, work: 0, moved: now }
    }

    fn look(&mut self, work: u64, now: Nanos) {
        if self.work != work {
            (self.work, self.moved) = (work, now);
        }
    }

    /// How many of these links lead to ranks, and how many to nodes in ranks' processes.
    fn ranks(&self, links: impl Iterator<Item = LinkNumber>) -> (u32, u32) {
        let has = |bits: u64, link: LinkNumber| u32::from(link < 64 && bits & (1 << link) != 0);
        links.fold((0, 0), |(ranks, nodes), link| (ranks + has(self.ranks, link), nodes + has(self.in_ranks, link)))
    }
}

impl Job {
    /// Compares the counts with those of the last call. It is called from time to time.
    pub(crate) fn watch_folds(&mut self, now: Nanos) {
        self.watch.look(self.work(), now);
    }

    /// What the job does here.
    pub(crate) fn activity(&self, now: Nanos) -> Activity {
        let Job { core, io, watch, .. } = self;
        let idle = if self.work() == watch.work { now.since(watch.moved) } else { Nanos(0) };
        Activity {
            groups: core.groups() as u64,
            ranks: watch.ranks(io.links.open_links()).0,
            idle_ms: idle.0 / 1_000_000,
        }
    }

    fn work(&self) -> u64 {
        folds(&self.io).wrapping_add(self.core.at_boards())
    }

    /// How many children are connected that are nodes in ranks' processes.
    pub(crate) fn nodes_in_ranks(&self) -> u32 {
        self.watch.ranks(self.io.links.open_links()).1
    }

    /// Whether no child is connected, and the core knows of all ranks below that they have gone.
    /// One that had died before this epoch never called in it.
    pub(crate) fn is_deserted(&self) -> bool {
        self.io.links.open_links().all(|link| link == PARENT) && self.core.is_deserted()
    }

    /// Whether all children have come to this core, and no rank is left, here or at a node in a
    /// rank's process.
    pub(crate) fn is_spent(&self) -> bool {
        let Job { io, watch, .. } = self;
        !io.links.expects_child() && watch.ranks(io.links.open_links()) == (0, 0)
    }
}

/// The number of fragments and segments that were folded here, or whose result came.
fn folds(io: &JobIo) -> u64 {
    let stages = [&io.latencies.datagrams, &io.latencies.streams];
    stages.into_iter().map(|stages| stages.gather.count() + stages.answer.count()).sum()
}

#[cfg(test)]
mod tests {
    use trib_keys::JobKey;
    use trib_messages::job::Limits;
    use trib_wire::auth::FrameKey;
    use trib_wire::{Epoch, JobId, Mode, NodeId, Placement, Rank, RankList};

    use trib_messages::via::Via;

    use super::*;
    use crate::job::Buffers;

    #[test]
    fn a_pulse_knows_ranks_from_nodes_and_when_the_counts_last_moved() {
        let (key, ranks) = (JobKey([0; 32]), RankList::from_ranks([0]));
        let child = |kind, in_rank| {
            let ranks = ranks.clone();
            GrantChild { kind, candidates: 1, in_rank, ranks, addresses: Vec::new(), via: Via::Tcp }
        };
        let limits = Limits {
            groups: 1,
            window: 1,
            osts: 1,
            payload: 16,
            streams: 1,
            segment: 16,
            staging: 1,
            flight: 1,
            control_memory: 1 << 20,
            stream_threshold: 0,
            lease_operations: 0,
            heartbeat_ms: 100,
            dead_after_ms: 300,
            recovery: trib_messages::policy::Recovery::Retry,
            mode: Mode::Checked,
            faults: false,
        };
        let grant = NodeGrant {
            job: JobId(1),
            epoch: Epoch(1),
            mark: key.mark(JobId(1)),
            key: key.node(JobId(1), NodeId(0), 0),
            root: Some(key.root(JobId(1), NodeId(0))),
            limits,
            world_size: 3,
            node: NodeId(0),
            name: "leaf0".into(),
            lane: 0,
            address: None,
            candidate: 0,
            candidates: vec!["10.0.0.1:4000".parse().unwrap()],
            in_ranks: Vec::new(),
            recovers: false,
            parent: None,
            children: vec![
                child(ChildKind::Node(NodeId(1)), false),
                child(ChildKind::Node(NodeId(2)), true),
                child(ChildKind::Rank(Rank(1)), true),
                child(ChildKind::Rank(Rank(2)), true),
            ],
        };
        let mut watch = FoldWatch::new(&grant, Nanos(5));
        assert_eq!((watch.ranks, watch.in_ranks, watch.moved), (0b1100, 0b10, Nanos(5)));
        watch.look(0, Nanos(7));
        assert_eq!(watch.moved, Nanos(5), "nothing was folded");
        watch.look(3, Nanos(9));
        watch.look(3, Nanos(11));
        assert_eq!(watch.moved, Nanos(9));

        // All children have to come before the node is spent; the link to the parent does not
        // count.
        let mut job =
            Job::new(&grant, &Placement::FIRST, (Buffers::for_grant(&grant).unwrap(), &FrameKey([5; 16])), Nanos(0));
        assert_eq!(watch.ranks([0, 1, 2, 3, PARENT].into_iter()), (2, 1));
        for child in 0..4 {
            assert!(!job.is_spent(), "child {child} has not come");
            job.io.links.close(child);
        }
        assert!(job.is_spent());
    }
}
