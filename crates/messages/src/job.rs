//! What the manager hands out when it admits a job: a ticket for the ranks and a grant for each
//! node.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use trib_keys::{EdgeKey, EdgeKeys, JobKey, JobMark, NodeKey, RootKey};
use trib_wire::{ChildIndex, ChildKind, Epoch, JobId, Mode, NodeId, Placement, Rank, RankList};

use crate::candidates::{self, Candidate};
use crate::policy::Recovery;
use crate::prediction::Prediction;
use crate::processes::Processes;
use crate::via::Via;

/// What one job may use, the same at every node and rank of the job; nodes enforce it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// Groups alive at once at one node.
    pub groups: u32,
    /// LLT slots (outstanding transactions) of one group, W: 1..=64.
    pub window: u32,
    /// LLT slots of all groups together at one node.
    pub osts: u32,
    /// Bytes of vector in one LLT fragment, at most: a multiple of 8, 16 or more.
    pub payload: u32,
    /// Stream contexts at one node: groups that may stream at once.
    pub streams: u32,
    /// Bytes of vector in one SAT segment, at most: a multiple of 8, 16 or more.
    pub segment: u32,
    /// SAT segments that a child may be ahead of the fold, per child.
    pub staging: u32,
    /// SAT segments between fold and delivered result, per group.
    pub flight: u32,
    /// Bytes that a node keeps of groups, of creations that are not complete, and of control frames
    /// that wait to be sent.
    pub control_memory: u32,
    /// Operations whose vector has more bytes than this are streamed.
    pub stream_threshold: u64,
    /// How many streaming operations one lease on a stream context allows; 0: any number, until
    /// other groups want the context.
    pub lease_operations: u32,
    /// How often a silent side sends a heartbeat, milliseconds.
    pub heartbeat_ms: u32,
    /// How long a side may say nothing before it counts as dead, milliseconds.
    pub dead_after_ms: u32,
    /// What the job does when a node of its trees dies. It is no more than `Notify` where it cannot
    /// go on.
    #[serde(default)]
    pub recovery: Recovery,
    /// What protects the payloads of its frames.
    #[serde(default)]
    pub mode: Mode,
    /// Whether its processes may lose datagrams on purpose, as tests of the whole system do: the
    /// operator's word.
    #[serde(default)]
    pub faults: bool,
}

/// Where a rank is attached to a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Attachment {
    /// The node to which it is attached.
    pub node: NodeId,
    /// Which child of that node it is.
    pub child: ChildIndex,
    /// The address from which it connects, because a host with several rails has an address on
    /// each. `None`: the host chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// By which transport it connects.
    #[serde(default, skip_serializing_if = "Via::is_tcp")]
    pub via: Via,
}

/// One lane of a job: a tree over all its ranks.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct LaneTicket {
    /// Its share of a vector that is cut, relative to the other lanes'; not 0.
    pub weight: u32,
    /// Where each rank is attached, by rank.
    pub leaves: Vec<Attachment>,
}

/// A node of the job's tree as the ranks see it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct TicketNode {
    /// The logical node.
    pub node: NodeId,
    /// The processes that may host it, in the order in which it moves on: the primary, then its
    /// backups, then its deputies. 1 to [`CANDIDATES_MAX`](candidates::CANDIDATES_MAX).
    #[serde(deserialize_with = "candidates::read")]
    pub candidates: Vec<Candidate>,
    /// Its parent, and which child of it this is; `None` at the root of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<(NodeId, ChildIndex)>,
    /// Whether its candidates are ranks of one host, and it stands for that host or a part of it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_ranks: bool,
}

impl TicketNode {
    /// What people call the logical node, wherever it is: see [`NodeGrant::name`].
    pub fn name(&self) -> &str {
        &self.primary().name
    }

    /// The candidate that hosts it first.
    ///
    /// # Panics
    /// If the ticket was not read but made, without candidates.
    pub fn primary(&self) -> &Candidate {
        &self.candidates[0]
    }

    /// The candidate that hosts it in this placement.
    ///
    /// # Panics
    /// As [`Self::primary`].
    pub fn hosted(&self, placement: &Placement) -> &Candidate {
        &self.candidates[placement.candidate(self.node, self.candidates.len())]
    }
}

/// All that the ranks of a job need. Rank 0 gets it from the manager and passes it on.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct JobTicket {
    /// The job.
    pub job: JobId,
    /// Placement epoch.
    pub epoch: Epoch,
    /// The secret, from which all keys of the job follow.
    pub key: JobKey,
    /// The quota.
    pub limits: Limits,
    /// The nodes of all its trees.
    pub nodes: Vec<TicketNode>,
    /// Its lanes, 1 to [`LANES_MAX`].
    pub lanes: Vec<LaneTicket>,
    /// With several lanes, operations whose vector has at least this many bytes are cut over them.
    pub stripe_threshold: u64,
    /// The bytes that a rank may keep, over all its lanes, of what it has given to operations that
    /// are over, because other ranks may lack their results.
    pub rank_memory: u64,
    /// For which operations the tree is predicted to be as fast as the hosts alone; `None` where
    /// nothing is predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
    /// Where its ranks run.
    #[serde(default)]
    pub processes: Processes,
    /// Whether the job goes on when a node dies: each of its logical nodes has two candidates at
    /// least, and recovery was not declined.
    #[serde(default)]
    pub recovers: bool,
    /// What its deputies may host.
    #[serde(default)]
    pub deputies: Vec<DeputyGrant>,
    /// With this a deputy shows the manager that it is one.
    #[serde(default)]
    pub pass: Pass,
}

/// What the ranks of a job and the manager know and nobody else: a rank that hosts nodes of its job
/// shows it to the manager, which may be another one than the one that admitted the job.
#[derive(Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Pass(pub [u8; 32]);

impl core::fmt::Debug for Pass {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Pass(..)")
    }
}

/// A logical node that a rank may host.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct DeputyGrant {
    /// The rank.
    pub rank: u32,
    /// The same as each aggregation node gets that may host it.
    pub grant: NodeGrant,
}

/// The largest number of lanes of a job.
pub const LANES_MAX: usize = 8;

/// One child of a node.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct GrantChild {
    /// What it is.
    pub kind: ChildKind,
    /// How many candidates it has: 1 for a rank. Each has a key of its own for this edge.
    pub candidates: u16,
    /// Whether it lives in a rank's process: a rank, or a node whose candidates are ranks.
    #[serde(default)]
    pub in_rank: bool,
    /// All ranks at or below it.
    pub ranks: RankList,
    /// The addresses from which it may connect: those of a child node are its candidates'. Empty
    /// when the fabric does not know them (a host has several), so that any will do.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// By which transport it connects.
    #[serde(default, skip_serializing_if = "Via::is_tcp")]
    pub via: Via,
}

/// The upper end of a node's own edge.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct GrantParent {
    /// The parent.
    pub node: NodeId,
    /// Which child of it this node is.
    pub child: ChildIndex,
    /// The parent's candidates, in the order of [`TicketNode::candidates`]. 1 to
    /// [`CANDIDATES_MAX`](candidates::CANDIDATES_MAX).
    #[serde(deserialize_with = "candidates::read")]
    pub candidates: Vec<ParentCandidate>,
    /// By which transport this node connects to it.
    #[serde(default, skip_serializing_if = "Via::is_tcp")]
    pub via: Via,
}

/// A process that may host a node's parent, as one candidate of that node knows it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ParentCandidate {
    /// The address at which it takes streams.
    pub stream: SocketAddr,
    /// The key of the edge between the two processes.
    pub key: EdgeKey,
}

impl GrantParent {
    /// The candidate that hosts the parent in this placement.
    ///
    /// # Panics
    /// If the grant was not read but made, without candidates.
    pub fn hosted(&self, placement: &Placement) -> &ParentCandidate {
        &self.candidates[placement.candidate(self.node, self.candidates.len())]
    }
}

/// One logical node of one job, as the manager gives it to each aggregation node that may host it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct NodeGrant {
    /// The job.
    pub job: JobId,
    /// Placement epoch.
    pub epoch: Epoch,
    /// What tells the job from one of another manager with the same number.
    pub mark: JobMark,
    /// The key of this candidate of the logical node. No other process has it, and the job's own
    /// is in no grant.
    pub key: NodeKey,
    /// At the root of the tree, the key that all its candidates have; at no other node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<RootKey>,
    /// The quota.
    pub limits: Limits,
    /// Ranks of the job.
    pub world_size: u32,
    /// The logical node.
    pub node: NodeId,
    /// What people call it, wherever it is: the name of the aggregation node that is its primary,
    /// with `#2`, `#3` and so on for the further ones that this hosts in the same lane.
    #[serde(default)]
    pub name: String,
    /// The lane that it belongs to, counted from 0.
    #[serde(default)]
    pub lane: u32,
    /// The address of its process at which children reach it and from which it calls its parent;
    /// `None`: the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Which of its candidates the process that gets this grant is, counted from 0, the primary.
    #[serde(default)]
    pub candidate: u16,
    /// The addresses at which its candidates take streams, in the order of
    /// [`TicketNode::candidates`]. 1 to [`CANDIDATES_MAX`](candidates::CANDIDATES_MAX).
    #[serde(deserialize_with = "candidates::read")]
    pub candidates: Vec<SocketAddr>,
    /// The ranks in whose processes its candidates are, in the same order; empty where some of them
    /// is an aggregation node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_ranks: Vec<u32>,
    /// Whether the job goes on when a node dies; see [`JobTicket::recovers`].
    #[serde(default)]
    pub recovers: bool,
    /// Its parent; `None` at the root of the tree.
    pub parent: Option<GrantParent>,
    /// Its children in fold order, at most 64.
    pub children: Vec<GrantChild>,
}

impl NodeGrant {
    /// Whether any of its edges goes by this transport.
    pub fn goes_by(&self, via: Via) -> bool {
        self.children
            .iter()
            .map(|child| child.via)
            .chain(self.parent.as_ref().map(|parent| parent.via))
            .any(|its| its == via)
    }

    /// The ranks that hosted it before this placement, those that hosted it last first, each with
    /// the position of its process among the candidates. The one that hosts it now is none of them.
    pub fn hosted_before(&self, placement: &Placement) -> impl Iterator<Item = (Rank, usize)> {
        let (moves, count) = (usize::from(placement.moves_of(self.node)), self.in_ranks.len());
        let before = (1..=moves.min(count.saturating_sub(1))).map(move |back| (moves - back) % count);
        before.map(|candidate| (Rank(self.in_ranks[candidate]), candidate))
    }

    /// The keys of the edge to a child in a placement, or `None` if there is no such child.
    pub fn child_keys(&self, child: ChildIndex, placement: &Placement) -> Option<EdgeKeys> {
        let GrantChild { kind, candidates, .. } = self.children.get(usize::from(child.0))?;
        let candidate = match kind {
            ChildKind::Rank(_) => 0,
            ChildKind::Node(node) => placement.candidate(*node, usize::from(*candidates)) as u16,
        };
        Some(self.key.edge(child, candidate).keys(placement))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use serde_json::{Value, json};

    use super::*;

    /// The grant of a node with a rank below it, and a node that has three candidates.
    fn grant() -> NodeGrant {
        let limits = Limits {
            groups: 1,
            window: 1,
            osts: 1,
            payload: 64,
            streams: 1,
            segment: 64,
            staging: 1,
            flight: 1,
            control_memory: 1 << 16,
            stream_threshold: 8,
            lease_operations: 0,
            heartbeat_ms: 1,
            dead_after_ms: 3,
            recovery: Recovery::Retry,
            mode: Mode::Checked,
            faults: false,
        };
        let child = |kind, candidates| {
            let ranks = RankList::from_ranks([0]);
            GrantChild { kind, candidates, in_rank: false, ranks, addresses: Vec::new(), via: Via::Tcp }
        };
        NodeGrant {
            job: JobId(1),
            epoch: Epoch(1),
            mark: JobMark([1; 16]),
            key: NodeKey([2; 32]),
            root: Some(RootKey([3; 32])),
            limits,
            world_size: 2,
            node: NodeId(0),
            name: String::new(),
            lane: 0,
            address: None,
            candidate: 0,
            candidates: vec!["10.0.0.1:4000".parse().unwrap()],
            in_ranks: Vec::new(),
            recovers: true,
            parent: None,
            children: vec![child(ChildKind::Rank(Rank(0)), 1), child(ChildKind::Node(NodeId(1)), 3)],
        }
    }

    #[test]
    fn the_keys_of_a_child_are_those_of_the_candidate_that_hosts_it() {
        let (grant, mut placement) = (grant(), Placement::FIRST);
        for candidate in [0, 1, 2, 0] {
            for (child, candidate) in [(ChildIndex(0), 0), (ChildIndex(1), candidate)] {
                let expected = grant.key.edge(child, candidate).keys(&placement);
                assert!(grant.child_keys(child, &placement) == Some(expected), "{child:?} in {placement:?}");
            }
            placement = placement.without(NodeId(1));
        }
        assert!(grant.child_keys(ChildIndex(2), &placement).is_none());
    }

    #[test]
    fn who_hosted_a_node_before_is_named_once_and_who_hosts_it_now_is_not() {
        let grant = NodeGrant { in_ranks: vec![4, 6, 7], ..grant() };
        let mut placement = Placement::FIRST;
        for expected in [&[][..], &[(4, 0)], &[(6, 1), (4, 0)], &[(7, 2), (6, 1)], &[(4, 0), (7, 2)]] {
            let before: Vec<(u32, usize)> = grant.hosted_before(&placement).map(|(rank, at)| (rank.0, at)).collect();
            assert_eq!(before, expected, "{placement:?}");
            placement = placement.without(NodeId(0));
        }
        assert_eq!(NodeGrant { in_ranks: Vec::new(), ..grant }.hosted_before(&placement).count(), 0);
    }

    #[test]
    fn a_grant_survives_the_control_channel_and_lacks_no_key() {
        let message = serde_json::to_value(grant()).unwrap();
        assert_eq!(serde_json::from_value::<NodeGrant>(message.clone()).unwrap(), grant());
        let is_read = |message: Value| serde_json::from_value::<NodeGrant>(message).is_ok();
        for field in ["key", "mark"] {
            let mut lacking = message.clone();
            lacking.as_object_mut().unwrap().remove(field);
            assert!(!is_read(lacking), "{field}");
            for wrong in [json!([1, 2]), json!(vec![1; 33]), json!(vec![256; 32]), json!(null)] {
                let mut changed = message.clone();
                changed[field] = wrong.clone();
                assert!(!is_read(changed), "{field}: {wrong}");
            }
        }
    }
}
