//! How a job goes on when its nodes die: where its logical nodes are, what has moved them, and what
//! was folded of what ranks had sent before.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::AddAssign;

use trib_wire::{JobId, NodeId};

/// Where one logical node of a job is.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Dwelling {
    /// Which.
    pub node: NodeId,
    /// What people call it, wherever it is.
    pub name: String,
    /// The lane that it belongs to, from 0.
    pub lane: u32,
    /// The process that hosts it, in words: `leaf1`, or `rank 3 on h2`.
    pub at: String,
    /// How often it has moved to another candidate.
    pub moves: u16,
}

/// Where the logical nodes of one job are.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct JobHomes {
    /// The job.
    pub job: JobId,
    /// The epochs that its trees have come to after their first.
    pub epochs: u64,
    /// Those of its logical nodes that have moved.
    pub moved: Vec<Dwelling>,
    /// What was replayed in them, as far as the processes know that host nodes of the job.
    #[serde(default, skip_serializing_if = "Replayed::is_none")]
    pub replayed: Replayed,
}

/// Pieces of vectors that have become results, and to which some rank had sent its contribution in
/// an earlier epoch, too. It is at a group's root that they are counted, each once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Replayed {
    /// Fragments, which travel in datagrams.
    pub fragments: u64,
    /// Segments, which travel in streams.
    pub segments: u64,
    /// Bytes of the vectors in them.
    pub bytes: u64,
}

impl Replayed {
    /// Whether there is nothing.
    pub fn is_none(&self) -> bool {
        *self == Replayed::default()
    }
}

impl AddAssign for Replayed {
    fn add_assign(&mut self, more: Replayed) {
        self.fragments = self.fragments.saturating_add(more.fragments);
        self.segments = self.segments.saturating_add(more.segments);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// A tree that has come to another epoch, as one process knows it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct EpochPart {
    /// The lane of the tree, from 0.
    pub lane: u32,
    /// The moves of all its nodes together, by which epochs are counted.
    pub moves: u64,
    /// The nodes that have moved since the last epoch that this process knew.
    pub moved: Vec<NodeId>,
    /// How this process came to know of it.
    pub cause: EpochCause,
    /// When, milliseconds since 1970-01-01 UTC by its own clock.
    pub at_ms: u64,
    /// What was replayed in this epoch at nodes that this process hosted.
    #[serde(default, skip_serializing_if = "Replayed::is_none")]
    pub replayed: Replayed,
}

/// How a process came to know of another epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpochCause {
    /// Its connection to this node ended, or the node was silent for too long.
    Lost {
        /// The node.
        node: NodeId,
    },
    /// It called this node, and the call failed or took too long.
    Unreached {
        /// The node.
        node: NodeId,
    },
    /// A neighbour told it: it found a node gone, or hosted one and left the job.
    Told,
}

/// What one process has told of one epoch.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct EpochTold {
    /// The process, as in [`Dwelling::at`].
    pub by: String,
    /// What it has told.
    #[serde(flatten)]
    pub epoch: EpochPart,
}

/// The number of epochs of one tree that a process remembers: the last ones.
pub const EPOCHS_KEPT: usize = 8;
