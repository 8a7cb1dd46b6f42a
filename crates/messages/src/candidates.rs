//! The processes that may host a logical node of a job, in the order in which it moves on.
//!
//! ```text
//!   leaf1   leaf1 (primary)   leaf2 (first backup)   spine (second backup)   rank 3 (deputy)
//! ```
//! The manager chooses them when it admits the job. Ranks and nodes know them from then on, so that
//! a logical node whose process dies is found again without the manager.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use serde::de::{Deserialize, Deserializer, Error};

/// The largest number of candidates of a logical node.
pub const CANDIDATES_MAX: usize = 16;
/// The largest number of deputies among them, ranks of the job that stand in where no node can.
pub const DEPUTIES_MAX: usize = 4;
/// The largest number of backups among them.
pub const BACKUPS_MAX: usize = CANDIDATES_MAX - 1 - DEPUTIES_MAX;

/// A process that may host a logical node.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Candidate {
    /// What people call the logical node while this process hosts it. The primary's is the name
    /// that the logical node keeps; a backup's is that of its process, and a deputy's its rank.
    pub name: String,
    /// The address to which the logical node's children open their streams.
    pub stream: SocketAddr,
}

/// Reads a list of candidates, of which there are 1 to [`CANDIDATES_MAX`].
pub(crate) fn read<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let candidates = Vec::deserialize(from)?;
    match candidates.len() {
        1..=CANDIDATES_MAX => Ok(candidates),
        other => {
            Err(D::Error::custom(alloc::format!("a node with {other} candidates: 1 to {CANDIDATES_MAX} are possible")))
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec};

    use serde_json::{Value, json};
    use trib_keys::EdgeKey;
    use trib_wire::{ChildIndex, NodeId, Placement};

    use super::*;
    use crate::job::{GrantParent, ParentCandidate, TicketNode};
    use crate::via::Via;

    fn node(candidates: usize) -> Value {
        let candidate = |port: usize| json!({"name": "leaf", "stream": format!("10.0.0.1:{port}")});
        json!({"node": 3, "candidates": (0..candidates).map(candidate).collect::<Vec<_>>()})
    }

    #[test]
    fn a_node_has_one_candidate_at_least_and_a_bounded_number() {
        for (count, is_read) in [(0, false), (1, true), (CANDIDATES_MAX, true), (CANDIDATES_MAX + 1, false)] {
            assert_eq!(serde_json::from_value::<TicketNode>(node(count)).is_ok(), is_read, "{count}");
            let candidates = vec![json!({"stream": "10.0.0.1:4000", "key": vec![7; 32]}); count];
            let parent = json!({"node": 0, "child": 1, "candidates": candidates});
            let parent = serde_json::from_value::<GrantParent>(parent);
            assert_eq!(parent.is_ok(), is_read, "{count}");
        }
        let error = serde_json::from_value::<TicketNode>(node(0)).unwrap_err();
        assert!(format!("{error}").contains("a node with 0 candidates: 1 to 16 are possible"), "{error}");
    }

    #[test]
    fn a_placement_says_which_candidate_hosts_a_node() {
        let node: TicketNode = serde_json::from_value(node(2)).unwrap();
        let streams: Vec<SocketAddr> = node.candidates.iter().map(|candidate| candidate.stream).collect();
        let parents = streams.iter().map(|stream| ParentCandidate { stream: *stream, key: EdgeKey([7; 32]) });
        let parent =
            GrantParent { node: node.node, child: ChildIndex(0), candidates: parents.collect(), via: Via::Tcp };
        let mut placement = Placement::FIRST.without(NodeId(4));
        for at in [0, 1, 0] {
            assert_eq!((node.hosted(&placement).stream, parent.hosted(&placement).stream), (streams[at], streams[at]));
            placement = placement.without(node.node);
        }
        assert_eq!((node.name(), node.primary().stream), ("leaf", streams[0]));
        assert_eq!(serde_json::from_value::<TicketNode>(serde_json::to_value(&node).unwrap()).unwrap(), node);
    }
}
