//! The jobs that run and those that ended, a line each: what `trib jobs` shows.
//!
//! A manager remembers a bounded number of the jobs that ended and of the requests that it refused:
//! the newest of each, as long as it runs.

use alloc::string::String;
use alloc::vec::Vec;

use trib_wire::{JobId, NodeId};

use crate::policy::Recovery;
use crate::recovery::{Dwelling, Replayed};
use crate::reply::Refusal;

/// All jobs that a manager knows.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct JobsReport {
    /// Name of the fabric.
    pub fabric: String,
    /// The manager's clock, milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// When the manager started, by the same clock. It knows of nothing that ended before.
    pub started_ms: u64,
    /// Jobs that are admitted, oldest first.
    pub live: Vec<LiveJob>,
    /// Jobs that ended and requests that were refused, those that ended first coming first.
    pub past: Vec<PastJob>,
    /// How many more there were that the manager has forgotten in favour of newer ones.
    pub forgotten: u64,
}

/// Names of hosts or nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Names {
    /// How many there are, each counted once.
    pub count: u32,
    /// The names, as Slurm writes lists of hosts: `tux[0-3],login`. A long list is cut and ends in
    /// `...`.
    pub list: String,
}

/// An admitted job.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct LiveJob {
    /// Its number.
    pub id: JobId,
    /// The program's name.
    pub name: String,
    /// Who runs it, as the program said.
    pub user: String,
    /// Ranks.
    pub ranks: u32,
    /// The hosts that they run on.
    pub hosts: Names,
    /// The aggregation node at the root of its tree; empty if the job comes from a manager that did
    /// not say so.
    pub root: String,
    /// All aggregation nodes of its tree.
    pub nodes: Names,
    /// The aggregation nodes that are backups of these, so that it goes on when one dies; `None`:
    /// it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backups: Option<Names>,
    /// What it does when a node dies; `None` if its manager did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// When it was admitted, milliseconds since 1970-01-01 UTC.
    pub since_ms: u64,
    /// Whether an earlier manager admitted it.
    pub adopted: bool,
    /// Since when the connection of its rank 0 is gone without a word, milliseconds since
    /// 1970-01-01 UTC. It goes on with its other ranks, and ends with the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_ms: Option<u64>,
    /// What its nodes say about it; `None` if none of them answered.
    pub activity: Option<Activity>,
    /// Why its program does not use the tree, or not for all that it could, if the program has said
    /// so.
    pub fallback: Option<Fallback>,
    /// Why it, or one of its groups, could not go on, if a node has said so.
    #[serde(default)]
    pub fault: Option<JobFault>,
    /// The epochs that its trees have come to after their first.
    #[serde(default)]
    pub epochs: u64,
    /// Those of its logical nodes that have moved, and where they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<Dwelling>,
    /// What was replayed in these epochs, as far as the processes know that host nodes of it.
    #[serde(default, skip_serializing_if = "Replayed::is_none")]
    pub replayed: Replayed,
}

/// What a job is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Activity {
    /// Groups alive at the node of the tree that has most.
    pub groups: u64,
    /// Ranks that are connected.
    pub ranks: u32,
    /// For how long no node of it has folded anything, milliseconds, accurate to half a second.
    pub idle_ms: u64,
}

/// One job's activity at one aggregation node.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct JobActivity {
    /// The job.
    pub job: JobId,
    /// The sum over its logical nodes there; for the idle time the smallest value, for the groups
    /// the largest.
    pub activity: Activity,
    /// Nodes in ranks' processes that are connected there.
    #[serde(default, skip_serializing_if = "is_none")]
    pub nodes_in_ranks: u32,
    /// Which nodes of its trees have moved, and how often, as far as the process knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<(NodeId, u16)>,
    /// Those of its logical nodes there that no rank is left at and that wait for none: all their
    /// children have come since the last move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<NodeId>,
    /// What was replayed at nodes of it that the process hosts, or has hosted.
    #[serde(default, skip_serializing_if = "Replayed::is_none")]
    pub replayed: Replayed,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

impl JobActivity {
    /// What another process, or another logical node of the same, says of the same job. Of the
    /// moves of each node the larger count is true, because a process may be behind.
    pub fn join(&mut self, other: JobActivity) {
        self.activity = self.activity.and(other.activity);
        self.nodes_in_ranks += other.nodes_in_ranks;
        self.spent.extend(other.spent);
        self.replayed += other.replayed;
        for (node, moves) in other.moves {
            match self.moves.iter_mut().find(|(known, _)| *known == node) {
                Some((_, known)) => *known = moves.max(*known),
                None => self.moves.push((node, moves)),
            }
        }
    }
}

impl Activity {
    /// What two nodes say, put together.
    pub fn and(self, other: Activity) -> Activity {
        Activity {
            groups: self.groups.max(other.groups),
            ranks: self.ranks.saturating_add(other.ranks),
            idle_ms: self.idle_ms.min(other.idle_ms),
        }
    }
}

/// Why a job's collectives do not use its tree.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Fallback {
    /// In the program's words.
    pub text: String,
    /// Since when this is so, milliseconds since 1970-01-01 UTC by the manager's clock.
    pub since_ms: u64,
}

/// Why a job, or one of its groups, could not go on.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct JobFault {
    /// In words.
    pub text: String,
    /// When it was found, milliseconds since 1970-01-01 UTC by the manager's clock.
    pub since_ms: u64,
}

/// A job that ended, or that was never admitted.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct PastJob {
    /// Its number. Requests that were refused have one too.
    pub id: JobId,
    /// The program's name.
    pub name: String,
    /// Who ran it, as the program said.
    pub user: String,
    /// The tenant of its certificate.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Ranks.
    pub ranks: u32,
    /// The hosts that they ran on.
    pub hosts: Names,
    /// The aggregation node at the root of its tree; empty if it was refused.
    pub root: String,
    /// When it was admitted or first refused, milliseconds since 1970-01-01 UTC.
    pub began_ms: u64,
    /// When it ended or was last refused.
    pub ended_ms: u64,
    /// How often the same request was refused for the same reason; 1 for a job that ended.
    pub times: u32,
    /// How it ended.
    pub outcome: JobEnd,
    /// Why its program did not use the tree to the end, if it has said so.
    pub fallback: Option<Fallback>,
}

impl PastJob {
    /// Whether it is a request that was refused; else it is a job that ended.
    pub fn is_refused(&self) -> bool {
        matches!(self.outcome, JobEnd::Refused(_))
    }
}

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// Its program said that it is done.
    Ended,
    /// The connection that held it closed without a word, and no other rank was left, or is any
    /// more: its rank 0 was killed, or lost its host or its network.
    Lost,
    /// It could not go on, and that is known why.
    Failed {
        /// What a node of its tree found.
        fault: Option<String>,
        /// What its launcher saw.
        launcher: Option<String>,
    },
    /// Its launcher was told to end it.
    Interrupted {
        /// By this signal.
        signal: String,
    },
    /// An earlier manager admitted it, and its nodes no longer have it.
    Left,
    /// It was admitted, and its program could not use it.
    GivenUp {
        /// In the program's words.
        why: String,
    },
    /// It was not admitted.
    Refused(Refusal),
}

impl JobEnd {
    /// Why it ended so, where that is known and not said by its word.
    pub fn why(&self) -> Option<String> {
        match self {
            JobEnd::GivenUp { why } => Some(why.clone()),
            JobEnd::Failed { fault, launcher } => {
                let known: Vec<&str> = [fault, launcher].into_iter().flatten().map(String::as_str).collect();
                Some(known.join("; "))
            }
            JobEnd::Interrupted { signal } => Some(signal.clone()),
            JobEnd::Ended | JobEnd::Lost | JobEnd::Left | JobEnd::Refused(_) => None,
        }
    }

    /// Its word, as in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            JobEnd::Ended => "ended",
            JobEnd::Lost => "lost",
            JobEnd::Failed { .. } => "failed",
            JobEnd::Interrupted { .. } => "interrupted",
            JobEnd::Left => "left",
            JobEnd::GivenUp { .. } => "given_up",
            JobEnd::Refused(_) => "refused",
        }
    }
}
