//! The names of nodes, ranks and groups in an explanation.

use std::collections::BTreeMap;

use trib_control::clock::span;
use trib_messages::explanation::{Explanation, GroupPart, LatePart, NodePart};
use trib_messages::processes::Process;
use trib_wire::directory::{Directory, group_words, ordinal};
use trib_wire::ids::{NodeId, Rank};

/// The names of one job.
pub(super) struct Naming {
    nodes: BTreeMap<NodeId, String>,
    processes: BTreeMap<Rank, Process>,
}

impl Naming {
    pub(super) fn of(explanation: &Explanation) -> Naming {
        let mut nodes = explanation.job.node_names();
        // If an older manager admitted the job, only the process that hosts each node is known.
        for part in &explanation.parts {
            nodes.entry(part.part.node).or_insert_with(|| part.at.clone());
        }
        Naming { nodes, processes: explanation.processes.iter().cloned().collect() }
    }

    /// The child for which a group waits at one node.
    pub(super) fn late(&self, late: &LatePart) -> String {
        match late.ranks {
            1 => self.rank(late.rank),
            ranks => format!("some of the {ranks} ranks from rank {} on", late.rank.0),
        }
    }

    /// The same, short enough for a column.
    pub(super) fn late_cell(&self, group: &GroupPart) -> String {
        let cell = |late: &LatePart| match self.processes.get(&late.rank) {
            _ if late.ranks > 1 => format!("some of {} ranks from rank {} on", late.ranks, late.rank.0),
            Some(process) => format!("rank {} on {}", late.rank.0, process.host),
            None => format!("rank {}", late.rank.0),
        };
        let cells: Vec<String> = group.late.iter().map(cell).collect();
        if cells.is_empty() { "-".to_owned() } else { cells.join(", ") }
    }
}

impl Directory for Naming {
    fn node(&self, node: NodeId) -> String {
        self.nodes.get(&node).cloned().unwrap_or_else(|| "(does not answer)".to_owned())
    }

    fn rank(&self, rank: Rank) -> String {
        match self.processes.get(&rank) {
            Some(process) => format!("rank {} {process}", rank.0),
            None => format!("rank {}", rank.0),
        }
    }
}

/// How a group stands with its right to stream, short enough for a column. One that works in the
/// memory of its host needs none.
pub(super) fn stream_cell(group: &GroupPart) -> String {
    if group.board { "host memory" } else { group.lease.word() }.to_owned()
}

/// A group's name for people. A group without a name is told with its tag.
pub(super) fn name(group: &GroupPart) -> String {
    let words = group_words(&group.name, &group.members);
    if group.name.is_empty() { format!("the {words} (tag {})", group.tag) } else { words }
}

/// The operation to which a late child has not come, and for how long others have waited.
pub(super) fn operation(late: &LatePart) -> String {
    let LatePart { operation, streamed, what, waited_ms, .. } = late;
    let what = if what.is_empty() { String::new() } else { format!(", {what}") };
    let how = if *streamed { ", streamed" } else { "" };
    let age = waited_ms.map_or_else(String::new, |ms| format!(", for {}", span(ms)));
    format!("its {} operation{what}{how}{age}", ordinal(*operation))
}

/// Groups at a node by their indices, with their tags, and with their ages where these are known.
pub(super) fn listed(part: &NodePart, indices: &[u32], tags: &[u64], ages: &[u64]) -> String {
    let entry = |(at, index): (usize, &u32)| {
        let known = part.groups.iter().find(|group| group.index == *index);
        let tag = tags.get(at).map_or_else(String::new, |tag| format!(" with the tag {tag}"));
        let group = known.map_or_else(|| format!("a group{tag}"), name);
        let age = ages.get(at).map_or_else(String::new, |ms| format!(" for {}", span(*ms)));
        format!("{group}{age}")
    };
    indices.iter().enumerate().map(entry).collect::<Vec<_>>().join(", ")
}
