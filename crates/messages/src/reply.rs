//! What the manager answers to applications and tools.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};

use trib_wire::{JobId, NodeId, RankList};

use crate::explanation::Explanation;
use crate::job::{JobTicket, Limits};
use crate::jobs::{Fallback, JobFault, JobsReport, Names, PastJob};
use crate::prediction::PredictionStatus;
use crate::quota::QuotaField;
use crate::recovery::JobHomes;
use crate::tenant::{JobCharge, QueuedJob, TenantStatus};

/// What a refused request wanted too much of, or what it lacks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Groups alive at once.
    Groups,
    /// Slots of one group.
    Window,
    /// Slots of all groups.
    Osts,
    /// Bytes of a datagram fragment.
    Payload,
    /// Groups that may stream at once.
    Streams,
    /// Bytes of a stream segment.
    Segment,
    /// Segments ahead of the fold.
    Staging,
    /// Segments in flight.
    Flight,
    /// Bytes of groups, creations and waiting control frames at a node.
    ControlMemory,
    /// The vector size from which operations are streamed.
    StreamThreshold,
    /// Streaming operations of one lease.
    LeaseOperations,
    /// The heartbeat's period.
    Heartbeat,
    /// The silence after which a side is dead.
    DeadAfter,
    /// Lanes of one job.
    Lanes,
    /// Different trees of one job.
    Trees,
    /// The vector size from which operations are cut over lanes.
    StripeThreshold,
    /// Bytes that a rank keeps for others.
    RankMemory,
    /// Further nodes that may host each node of a job.
    Backups,
    /// Ranks that may host a logical node.
    Deputies,
    /// What the job does when a node dies.
    Recovery,
    /// Levels of the job's trees below the aggregation nodes.
    Levels,
    /// What protects the job's payloads.
    DataPath,
    /// Ranks of one job.
    Ranks,
    /// Jobs at once.
    Jobs,
    /// A host that the topology does not know.
    Host,
    /// An aggregation node that is unknown, not connected, or does not answer.
    Node,
    /// Memory at an aggregation node, bytes.
    Memory,
    /// Connections to the manager at once.
    Connections,
    /// The file in which the manager keeps its jobs.
    State,
    /// The ranks of a program did not come together.
    Rendezvous,
    /// The job that was named does not exist, or belongs to another connection.
    Job,
    /// The certificate does not allow what was asked.
    Role,
    /// The request itself makes no sense.
    Request,
}

impl From<QuotaField> for Resource {
    fn from(field: QuotaField) -> Resource {
        match field {
            QuotaField::Groups => Resource::Groups,
            QuotaField::Window => Resource::Window,
            QuotaField::Osts => Resource::Osts,
            QuotaField::Payload => Resource::Payload,
            QuotaField::Streams => Resource::Streams,
            QuotaField::Segment => Resource::Segment,
            QuotaField::Staging => Resource::Staging,
            QuotaField::Flight => Resource::Flight,
            QuotaField::ControlMemory => Resource::ControlMemory,
            QuotaField::StreamThreshold => Resource::StreamThreshold,
            QuotaField::LeaseOperations => Resource::LeaseOperations,
            QuotaField::HeartbeatMs => Resource::Heartbeat,
            QuotaField::DeadAfterMs => Resource::DeadAfter,
            QuotaField::NodeMemory => Resource::Memory,
            QuotaField::Lanes => Resource::Lanes,
            QuotaField::Trees => Resource::Trees,
            QuotaField::StripeThreshold => Resource::StripeThreshold,
            QuotaField::Backups => Resource::Backups,
            QuotaField::Deputies => Resource::Deputies,
            QuotaField::DeputyMemory => Resource::Memory,
            QuotaField::RankMemory => Resource::RankMemory,
            QuotaField::Recovery => Resource::Recovery,
            QuotaField::Levels => Resource::Levels,
            QuotaField::DataPath => Resource::DataPath,
        }
    }
}

/// Why something was not granted.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Refusal {
    /// The resource of which there is not enough.
    pub resource: Resource,
    /// How much was asked for, in the resource's unit.
    pub asked: u64,
    /// How much could be had.
    pub available: u64,
    /// The holder of the rest, or the node, host or rank that this is about.
    pub holder: Option<String>,
    /// Since when the holder has it, or lacks it: milliseconds since 1970-01-01 UTC by the clock of
    /// the process that refuses. `None` where the request itself is wrong, and always was.
    #[serde(default)]
    pub since_ms: Option<u64>,
    /// The whole story in one sentence, with the remedy.
    pub text: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One aggregation node as the manager sees it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct NodeStatus {
    /// Its name in the topology.
    pub name: String,
    /// The address at which it takes streams; `None` if it never registered.
    pub address: Option<SocketAddr>,
    /// The other addresses at which it takes streams.
    #[serde(default)]
    pub further: Vec<SocketAddr>,
    /// Its software version; empty if it never registered.
    pub version: String,
    /// Whether its control connection is open now.
    pub connected: bool,
    /// Since when it has not answered though it is connected, milliseconds since 1970-01-01 UTC;
    /// `None` if it answers.
    #[serde(default)]
    pub silent_since_ms: Option<u64>,
    /// Receive buffer of its datagram sockets as the kernel granted it, bytes; `None` if it never
    /// registered.
    #[serde(default)]
    pub datagram_buffer_bytes: Option<u64>,
    /// When the certificate ends that lies in its folder, seconds since 1970-01-01 UTC; `None` if
    /// it never registered.
    #[serde(default)]
    pub certificate_ends: Option<u64>,
    /// Its counters; empty if it is not connected or did not answer within a second.
    pub counters: BTreeMap<String, u64>,
}

/// One admitted job.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct JobStatus {
    /// Its number.
    pub id: JobId,
    /// The program's name.
    pub name: String,
    /// Who runs it, as the program said.
    pub user: String,
    /// Ranks.
    pub ranks: u32,
    /// Names of the aggregation nodes that it uses or that are backups of these, in topology
    /// order.
    pub nodes: Vec<String>,
    /// By logical node, which of `nodes` hosts it, counted from 0; none of them where a rank does.
    #[serde(default)]
    pub homes: Vec<u32>,
    /// By logical node, which of `nodes` are its backups, in their order. Empty where the job does
    /// not go on when a node dies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backups: Vec<Vec<u32>>,
    /// By logical node, the ranks that may host it when no aggregation node does, or at all. Empty
    /// where the job does not go on when a node dies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deputies: Vec<Vec<u32>>,
    /// When it was admitted, seconds since 1970-01-01 UTC.
    pub since: u64,
    /// Its quota.
    #[serde(default)]
    pub limits: Option<Limits>,
    /// The hosts that its ranks run on.
    #[serde(default)]
    pub hosts: Names,
    /// What people call those of its logical nodes that ranks host as long as none of them dies,
    /// each with its number: `host h3`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_ranks: Vec<(NodeId, String)>,
    /// The aggregation node at the root of its tree.
    #[serde(default)]
    pub root: String,
    /// Nodes of its best tree that were not connected or did not answer when it was admitted, so
    /// that it got the tree that it has.
    #[serde(default)]
    pub around: Vec<String>,
    /// Why its program does not use the tree, if it has said so.
    #[serde(default)]
    pub fallback: Option<Fallback>,
    /// Why it, or one of its groups, could not go on, if a node has said so.
    #[serde(default)]
    pub fault: Option<JobFault>,
    /// Whether an earlier manager admitted it. Then no connection holds it: it lasts as long as its
    /// ranks are connected to its nodes.
    #[serde(default)]
    pub adopted: bool,
    /// Since when the connection that held it, that of its rank 0, is gone without a word,
    /// milliseconds since 1970-01-01 UTC. It goes on as an adopted job does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_ms: Option<u64>,
    /// The tenant for which it counts, and what it takes where.
    #[serde(default)]
    pub charge: Option<JobCharge>,
    /// Its lanes.
    #[serde(default)]
    pub lanes: Vec<LaneStatus>,
    /// What was predicted for it when it was admitted.
    #[serde(default)]
    pub prediction: Option<PredictionStatus>,
}

/// A process that hosts a logical node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home<'a> {
    /// The aggregation node with this name.
    Node(&'a str),
    /// A rank of the job.
    Rank(u32),
}

/// One lane of a job: a tree of logical nodes of its own.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct LaneStatus {
    /// Which of the job's different trees it uses, counted from 0.
    pub tree: u32,
    /// The aggregation node at the root of that tree.
    pub root: String,
    /// The first of its logical nodes; the others have the numbers that follow.
    pub first: NodeId,
    /// How many logical nodes it has.
    pub nodes: u32,
    /// Its share of a long vector, relative to the weights of the other lanes.
    pub weight: u32,
    /// The address from which rank 0 connects, if its host has several.
    #[serde(default)]
    pub from: Option<IpAddr>,
    /// The address of its node to which rank 0 connects, if the node has several.
    #[serde(default)]
    pub to: Option<IpAddr>,
}

impl JobStatus {
    /// Whether a connection holds it.
    pub fn is_held(&self) -> bool {
        !self.adopted && self.lost_ms.is_none()
    }

    /// The tenant for which it counts, if its certificate named one.
    pub fn tenant(&self) -> Option<&str> {
        self.charge.as_ref()?.tenant.as_deref()
    }

    /// The lane that a logical node belongs to.
    pub fn lane_of(&self, node: NodeId) -> Option<usize> {
        let has = |lane: &LaneStatus| (0..lane.nodes).contains(&u32::from(node.0).wrapping_sub(lane.first.0.into()));
        self.lanes.iter().position(has)
    }

    /// The aggregation nodes that host its logical nodes as long as none of them dies, in topology
    /// order. All of `nodes` where the job comes from a manager that did not say which.
    pub fn primaries(&self) -> Vec<&str> {
        let hosts: BTreeSet<usize> = self.homes.iter().map(|at| *at as usize).collect();
        let is_one = |(at, _): &(usize, &String)| hosts.is_empty() || hosts.contains(at);
        self.nodes.iter().enumerate().filter(is_one).map(|(_, name)| name.as_str()).collect()
    }

    /// The aggregation node that is the primary of a logical node.
    pub fn primary_of(&self, node: NodeId) -> Option<&str> {
        let at = *self.homes.get(usize::from(node.0))? as usize;
        self.nodes.get(at).map(String::as_str)
    }

    /// The aggregation nodes that are the backups of a logical node, in their order.
    pub fn backups_of(&self, node: NodeId) -> Vec<&str> {
        let backups = self.backups.get(usize::from(node.0)).into_iter().flatten();
        backups.filter_map(|at| self.nodes.get(*at as usize)).map(String::as_str).collect()
    }

    /// All ranks that may host one of its logical nodes.
    pub fn deputies(&self) -> RankList {
        let ranks: BTreeSet<u32> = self.deputies.iter().flatten().copied().collect();
        RankList::from_ranks(ranks)
    }

    /// Where a logical node is after so many moves, if that is known.
    pub fn home_of(&self, node: NodeId, moves: u16) -> Option<Home<'_>> {
        let nodes = self.primary_of(node).into_iter().chain(self.backups_of(node)).map(Home::Node);
        let deputies = self.deputies.get(usize::from(node.0)).into_iter().flatten().copied().map(Home::Rank);
        let homes: Vec<Home<'_>> = nodes.chain(deputies).collect();
        homes.get(usize::from(moves).checked_rem(homes.len())?).copied()
    }

    /// Its logical nodes with their backups, in words: `root: leaf0, leaf1; leaf0: leaf1, root`.
    /// Empty where the job does not go on when a node dies.
    pub fn backups_told(&self) -> String {
        let names = self.node_names();
        let told = |(node, name): (&NodeId, &String)| {
            let backups = self.backups_of(*node);
            (!backups.is_empty()).then(|| format!("{name}: {}", backups.join(", ")))
        };
        names.iter().filter_map(told).collect::<Vec<_>>().join("; ")
    }

    /// What people call its logical nodes, as far as that is known; see
    /// [`NodeGrant::name`](crate::job::NodeGrant::name).
    pub fn node_names(&self) -> BTreeMap<NodeId, String> {
        let mut hosted: BTreeMap<(Option<usize>, u32), u32> = BTreeMap::new();
        let mut names: BTreeMap<NodeId, String> = self.in_ranks.iter().cloned().collect();
        for (node, home) in (0..=u16::MAX).map(NodeId).zip(&self.homes) {
            let Some(name) = self.nodes.get(*home as usize) else { continue };
            let count = hosted.entry((self.lane_of(node), *home)).or_default();
            *count += 1;
            let name = if *count == 1 { name.clone() } else { format!("{name}#{count}") };
            names.insert(node, name);
        }
        names
    }
}

/// The fabric at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct StatusReport {
    /// Name of the fabric.
    pub fabric: String,
    /// The manager's clock, milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    pub time_ms: Option<u64>,
    /// Every node of the topology, in its order.
    pub nodes: Vec<NodeStatus>,
    /// Every job, oldest first.
    pub jobs: Vec<JobStatus>,
    /// Where the nodes of jobs are that have moved.
    #[serde(default)]
    pub homes: Vec<JobHomes>,
    /// Jobs that wait for their turn, in the order in which they get it.
    #[serde(default)]
    pub queue: Vec<QueuedJob>,
    /// Tenants by name, if the manager has a tenants file.
    #[serde(default)]
    pub tenants: Vec<TenantStatus>,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Reply {
    /// The job is installed at every node of its tree.
    Granted(JobTicket),
    /// The job is not granted.
    Refused(Refusal),
    /// The job was ended.
    Ended {
        /// The job.
        job: JobId,
    },
    /// The fabric's state.
    Status(StatusReport),
    /// One job in detail.
    Explanation(Box<Explanation>),
    /// The job in question has ended, or was never admitted.
    Past(PastJob),
    /// All jobs.
    Jobs(JobsReport),
    /// What the program told is kept.
    Noted {
        /// The job.
        job: JobId,
    },
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use serde_json::json;

    use super::*;

    #[test]
    fn logical_nodes_have_the_names_of_their_processes_and_a_count_where_one_hosts_several() {
        let lane = |first: u16| json!({"tree": 0, "root": "spine", "first": first, "nodes": 4, "weight": 1});
        let job = json!({
            "id": 7, "name": "p", "user": "u", "ranks": 4, "since": 0, "nodes": ["leaf0", "spine"],
            "homes": [1, 0, 0, 1, 1, 0, 0, 9], "lanes": [lane(0), lane(4)]
        });
        let job: JobStatus = serde_json::from_value(job).unwrap();
        let names: Vec<(u16, String)> = job.node_names().into_iter().map(|(node, name)| (node.0, name)).collect();
        let known =
            [(0, "spine"), (1, "leaf0"), (2, "leaf0#2"), (3, "spine#2"), (4, "spine"), (5, "leaf0"), (6, "leaf0#2")];
        assert_eq!(names, known.map(|(node, name)| (node, name.into())));
        let backed = JobStatus { backups: vec![vec![0], vec![1, 9]], ..job.clone() };
        assert_eq!(backed.backups_told(), "spine: leaf0; leaf0: spine");
        let backed = JobStatus { deputies: vec![vec![2, 3], vec![0]], ..backed };
        assert_eq!(backed.deputies(), RankList::from_ranks([0, 2, 3]));
        let homes = [Home::Node("spine"), Home::Node("leaf0"), Home::Rank(2), Home::Rank(3), Home::Node("spine")];
        assert_eq!([0, 1, 2, 3, 4].map(|moves| backed.home_of(NodeId(0), moves)), homes.map(Some));
        assert_eq!(backed.home_of(NodeId(9), 0), None);
        assert_eq!(backed.primaries(), ["leaf0", "spine"]);
        let spine = JobStatus { homes: vec![1], ..job.clone() };
        assert_eq!((spine.primaries(), spine.backups_told()), (vec!["spine"], String::new()));
        let old = JobStatus { homes: Vec::new(), ..job };
        assert!(old.node_names().is_empty());
        assert_eq!(old.primaries(), ["leaf0", "spine"]);
    }
}
