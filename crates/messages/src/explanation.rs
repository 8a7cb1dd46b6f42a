//! One job in detail, for a user who asks what it does and what it waits for.
//!
//! Every aggregation node tells about its logical nodes of the job; together they are the tree.
//! Ranks are ranks of the job, except where it says otherwise.

use alloc::string::String;
use alloc::vec::Vec;

use trib_wire::{ChildIndex, ChildKind, Mode, NodeId, Rank, RankList};

use crate::processes::Process;
use crate::recovery::{Dwelling, EpochTold, Replayed};
use crate::reply::JobStatus;

/// A job, and its logical nodes.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Explanation {
    /// What the manager knows of it.
    pub job: JobStatus,
    /// Its logical nodes, by number.
    pub parts: Vec<HostedPart>,
    /// Aggregation nodes of the job that did not answer.
    pub silent: Vec<String>,
    /// Where the ranks run that are late, as far as that is known.
    #[serde(default)]
    pub processes: Vec<(Rank, Process)>,
    /// Where each of its logical nodes is, as far as that is known.
    #[serde(default)]
    pub homes: Vec<Dwelling>,
    /// What its processes have told of its epochs, by lane and epoch.
    #[serde(default)]
    pub epochs: Vec<EpochTold>,
}

/// A logical node, and the aggregation node that told about it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct HostedPart {
    /// The aggregation node's name.
    pub at: String,
    /// The lane that the logical node belongs to, from 0.
    #[serde(default)]
    pub lane: u32,
    /// The logical node.
    pub part: NodePart,
    /// What has gone over its links; `None` where a node of another version does not say.
    #[serde(default)]
    pub traffic: Option<TrafficPart>,
    /// The ways to its children, in the order of the first child of each; none of a job that an
    /// earlier manager admitted.
    #[serde(default)]
    pub ways: Vec<WayPart>,
}

/// What has gone over the links between one logical node and its children. Two of these make a
/// rate.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct TrafficPart {
    /// Which logical node.
    pub node: NodeId,
    /// When, microseconds by a clock of the node's own that never goes back.
    pub at_us: u64,
    /// By child, in fold order; `None` where the child is not connected.
    pub children: Vec<Option<CarriedPart>>,
}

/// Bytes of frames between a node and one child since the child is connected: streams and
/// datagrams, those that were sent again too, without the headers of TCP, UDP and what is below.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct CarriedPart {
    /// From the child.
    pub bytes_in: u64,
    /// To the child.
    pub bytes_out: u64,
}

/// What leads from a logical node to one child, or to the ranks of one host, which share it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct WayPart {
    /// The children, in fold order.
    pub children: Vec<ChildIndex>,
    /// The host of the ranks; `None` of a node.
    pub host: Option<String>,
    /// What the slowest link of it carries each way; `None` where the topology does not say, or
    /// where there is no link because both nodes are one process.
    pub bits_per_second: Option<u64>,
}

/// One logical node of the job.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct NodePart {
    /// Which.
    pub node: NodeId,
    /// Its parent; `None` at the root of the tree.
    pub parent: Option<NodeId>,
    /// Its children in fold order.
    pub children: Vec<ChildPart>,
    /// Groups alive.
    pub groups_alive: u64,
    /// Buffers that hold vector data.
    pub buffers_held: u64,
    /// Bytes of vector that went into folds.
    pub payload_bytes_folded: u64,
    /// Which nodes of its tree have moved to another candidate, and how often, in the epoch in
    /// which it is hosted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<(NodeId, u16)>,
    /// How long it took in that epoch until it folded again, milliseconds, from when it was hosted
    /// there. `None` in the first epoch, and as long as nothing was folded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_fold_ms: Option<u64>,
    /// What was replayed here in that epoch.
    #[serde(default, skip_serializing_if = "Replayed::is_none")]
    pub replayed: Replayed,
    /// Which groups stream and which wait to. It is there only at the root of the tree, where that
    /// is decided.
    pub contexts: Option<ContextsPart>,
    /// The groups that fold here, or those of the tag that was asked for: first those that wait for
    /// something, then others, [`GROUPS_MAX`] at most.
    pub groups: Vec<GroupPart>,
}

impl NodePart {
    /// The moves of all nodes of its tree, by which epochs are counted.
    pub fn epoch(&self) -> u64 {
        self.moves.iter().map(|(_, moves)| u64::from(*moves)).sum()
    }
}

/// One child of a logical node.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ChildPart {
    /// A rank, or another logical node.
    pub kind: ChildKind,
    /// All ranks at or below it.
    pub ranks: RankList,
    /// Whether its stream connection is open.
    pub connected: bool,
    /// Bytes read from that connection.
    pub bytes_in: u64,
    /// Bytes written to it.
    pub bytes_out: u64,
    /// Bytes that wait to be written to it.
    pub queued_bytes: u64,
    /// It is on the node's host and reaches it by TCP all the same, though the node's process would
    /// share memory with it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub apart: bool,
    /// What protects payloads on the way to and from it; `None` while it is not connected, and
    /// where a node of another version does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
}

/// What protects payloads between a node and a child.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protection {
    /// The system: they stay in memory that two processes of one user share.
    Memory,
    /// As the mode `checked` says.
    Checked,
    /// As `signed` says.
    Signed,
    /// As `encrypted` says.
    Encrypted,
}

impl From<Mode> for Protection {
    fn from(mode: Mode) -> Protection {
        match mode {
            Mode::Checked => Protection::Checked,
            Mode::Signed => Protection::Signed,
            Mode::Encrypted => Protection::Encrypted,
        }
    }
}

/// The stream contexts of a tree.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ContextsPart {
    /// How many each logical node has.
    pub capacity: u32,
    /// Groups that have one, by their indices at this node.
    pub held: Vec<u32>,
    /// Groups that wait for one, in the order in which they came.
    pub line: Vec<u32>,
    /// How long each of `held` has had it, milliseconds.
    #[serde(default)]
    pub held_ms: Vec<u64>,
    /// How long each of `line` has waited, milliseconds.
    #[serde(default)]
    pub line_ms: Vec<u64>,
    /// The tags of `held`.
    #[serde(default)]
    pub held_tags: Vec<u64>,
    /// The tags of `line`.
    #[serde(default)]
    pub line_tags: Vec<u64>,
}

/// One group at one logical node.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct GroupPart {
    /// Its index at this node; it has other indices at other nodes.
    pub index: u32,
    /// The tag with which it was made: the tag and the members together are its name for the
    /// program.
    pub tag: u64,
    /// What the program calls it; empty if it has no name.
    #[serde(default)]
    pub name: String,
    /// Its members, in their order.
    pub members: RankList,
    /// Its right to stream.
    pub lease: LeaseState,
    /// Whether the node only passes on what the group sends, because its vectors fold further down.
    /// This is told only where one group was asked for.
    #[serde(default)]
    pub relayed: bool,
    /// Whether its operations go over memory that all its members share, so that nodes fold none of
    /// them. Members say which ranks are late there.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub board: bool,
    /// Folds of datagrams.
    #[serde(default)]
    pub datagrams: FoldsPart,
    /// Folds of stream segments.
    #[serde(default)]
    pub streams: FoldsPart,
    /// Children for which others wait.
    pub late: Vec<LatePart>,
}

/// Folds of one group at one node, of one path, since the group was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct FoldsPart {
    /// How many fragments or segments were folded.
    pub count: u64,
    /// Bytes of their results.
    pub bytes: u64,
    /// Sum of the times from a first contribution to its fold, microseconds.
    pub gathering_us: u64,
}

/// A group's right to stream, at one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseState {
    /// It has no such right and wants none.
    None,
    /// Some of its members want to stream; the others have not come to that operation yet.
    Gathering,
    /// All below this node want to stream, and wait for a context.
    Waiting,
    /// It streams.
    Streams,
    /// It finishes what has begun, and then gives its context back.
    Ending,
}

impl LeaseState {
    /// Its word, as in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            LeaseState::None => "none",
            LeaseState::Gathering => "gathering",
            LeaseState::Waiting => "waiting",
            LeaseState::Streams => "streams",
            LeaseState::Ending => "ending",
        }
    }
}

/// A child that has not contributed to an operation to which other children have.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct LatePart {
    /// The child.
    pub child: ChildIndex,
    /// The lowest rank of the group at or below it.
    pub rank: Rank,
    /// How many ranks of the group are at or below it.
    pub ranks: u32,
    /// The operation, counted from the group's first, 1.
    pub operation: u64,
    /// Whether the operation is streamed.
    pub streamed: bool,
    /// What the others have called: `allreduce of 1024 float64 (sum)`; empty where it is not known.
    #[serde(default)]
    pub what: String,
    /// How long the first of them has waited for this child, milliseconds, as far as it is known.
    #[serde(default)]
    pub waited_ms: Option<u64>,
}

/// How many groups a report has at most: a program may have thousands, and nobody reads a report of
/// them all.
pub const GROUPS_MAX: usize = 64;
