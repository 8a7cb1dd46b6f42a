//! In which order the vectors of a group's members are folded.
//!
//! It is the order of the tree: the ranks below a node are folded from the left, in the order of
//! its children, and each node rounds by itself. So a sum has the same bits on a board as it has
//! where the host's nodes fold it.

use std::collections::BTreeMap;

use trib_messages::job::{Attachment, JobTicket, TicketNode};
use trib_messages::policy::Recovery;
use trib_transport::memory::MEMBERS_MAX;
use trib_wire::ids::CHILDREN_MAX;
use trib_wire::{ChildIndex, NodeId, RankList};

/// The part of a job's tree that is below its hosts.
#[derive(Debug)]
pub(crate) struct HostTrees {
    /// The nodes in ranks, each with its parent and which child of that it is.
    nodes: BTreeMap<NodeId, Parent>,
    leaves: Vec<Attachment>,
}

type Parent = Option<(NodeId, ChildIndex)>;

/// A fold: of a member's vector alone, or of several from the left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// The member's position in the group.
    Member(usize),
    /// The parts, at least two, and at most as many as a node has children.
    Node(Vec<Shape>),
}

impl HostTrees {
    /// Those of a job; `None` if its groups use no boards. A job with several lanes does not,
    /// because its hosts have several ways out; nor one all of whose ranks agree on how each
    /// operation ends, because on a board nobody hears of that.
    pub(crate) fn of(ticket: &JobTicket) -> Option<HostTrees> {
        let [lane] = &ticket.lanes[..] else { return None };
        if ticket.limits.recovery == Recovery::Strict {
            return None;
        }
        let parent = |node: &TicketNode| (node.node, node.parent);
        let nodes: BTreeMap<_, _> = ticket.nodes.iter().filter(|node| node.in_ranks).map(parent).collect();
        (!nodes.is_empty()).then(|| HostTrees { nodes, leaves: lane.leaves.clone() })
    }

    /// Whether a group of these members looks for a board. Every rank gets the same answer.
    pub(crate) fn have_board(&self, members: &RankList) -> bool {
        self.shape(members).is_some()
    }

    /// The members of each host by their positions in the group, in the order in which they are
    /// folded; `None` unless hosts have equally many of them, two or more, that are folded in one
    /// row each. Every rank gets the same answer.
    pub(crate) fn rows(&self, members: &RankList) -> Option<Vec<Vec<u32>>> {
        let (mut tops, mut hosts): (Vec<NodeId>, Vec<Vec<_>>) = (Vec::new(), Vec::new());
        for (member, rank) in members.iter().enumerate() {
            let (top, way) = self.way(rank.0)?;
            let known = tops.iter().position(|other| *other == top).unwrap_or(tops.len());
            if known == tops.len() {
                tops.push(top);
                hosts.push(Vec::new());
            }
            hosts[known].push((member, way));
        }
        let row = |ways: &[(usize, Vec<ChildIndex>)]| {
            let Shape::Node(parts) = shape_of(ways, 0)? else { return None };
            let member = |part: &Shape| if let Shape::Member(member) = part { Some(*member as u32) } else { None };
            parts.iter().map(member).collect::<Option<Vec<u32>>>()
        };
        let rows: Vec<_> = hosts.iter().map(|ways| row(ways)).collect::<Option<_>>()?;
        rows.iter().all(|row| row.len() == rows[0].len()).then_some(rows)
    }

    /// How a group of several ranks of one host is folded; `None` if it is none. Every member gets
    /// the same answer.
    pub(super) fn shape(&self, members: &RankList) -> Option<Shape> {
        if !(2..=MEMBERS_MAX).contains(&(members.len() as usize)) {
            return None;
        }
        let mut host = None;
        let mut ways = Vec::with_capacity(members.len() as usize);
        for (member, rank) in members.iter().enumerate() {
            let (top, way) = self.way(rank.0)?;
            if *host.get_or_insert(top) != top {
                return None;
            }
            ways.push((member, way));
        }
        shape_of(&ways, 0)
    }

    /// The node of a rank's host, and the way down from there: which child, and of that which, and
    /// so on.
    pub(super) fn way(&self, rank: u32) -> Option<(NodeId, Vec<ChildIndex>)> {
        let leaf = self.leaves.get(rank as usize)?;
        let (mut node, mut way) = (leaf.node, vec![leaf.child]);
        let mut above = self.nodes.get(&node)?;
        while let Some((parent, child)) = *above
            && let Some(next) = self.nodes.get(&parent)
            // A ticket that makes a circle is not followed for ever.
            && way.len() <= self.nodes.len()
        {
            way.push(child);
            (node, above) = (parent, next);
        }
        way.reverse();
        Some((node, way))
    }
}

/// The fold of these members, whose ways down are the same as far as `depth`; `None` if no tree is
/// like that.
pub(super) fn shape_of(ways: &[(usize, Vec<ChildIndex>)], depth: usize) -> Option<Shape> {
    if let [(member, _)] = ways {
        return Some(Shape::Member(*member));
    }
    let mut children: BTreeMap<ChildIndex, Vec<(usize, Vec<ChildIndex>)>> = BTreeMap::new();
    for (member, way) in ways {
        children.entry(*way.get(depth)?).or_default().push((*member, way.clone()));
    }
    if children.len() > CHILDREN_MAX {
        return None;
    }
    let parts: Option<Vec<Shape>> = children.values().map(|ways| shape_of(ways, depth + 1)).collect();
    let mut parts = parts?;
    // A node with one child passes on what that gives.
    Some(if parts.len() == 1 { parts.remove(0) } else { Shape::Node(parts) })
}

#[cfg(test)]
pub(super) mod tests {
    use trib_messages::via::Via;

    use super::*;

    pub(crate) fn trees(nodes: &[(u16, Option<(u16, u16)>)], leaves: &[(u16, u16)]) -> HostTrees {
        let parent = |parent: Option<(u16, u16)>| parent.map(|(node, child)| (NodeId(node), ChildIndex(child)));
        let attachment = |&(node, child): &(u16, u16)| Attachment {
            node: NodeId(node),
            child: ChildIndex(child),
            address: None,
            via: Via::Tcp,
        };
        HostTrees {
            nodes: nodes.iter().map(|(node, above)| (NodeId(*node), parent(*above))).collect(),
            leaves: leaves.iter().map(attachment).collect(),
        }
    }

    fn words(shape: &Shape) -> String {
        match shape {
            Shape::Member(member) => member.to_string(),
            Shape::Node(parts) => format!("({})", parts.iter().map(words).collect::<Vec<_>>().join(" ")),
        }
    }

    fn told(trees: &HostTrees, ranks: &[u32]) -> Option<String> {
        trees.shape(&RankList::from_ranks(ranks.iter().copied())).map(|shape| words(&shape))
    }

    #[test]
    fn ranks_of_one_host_are_folded_in_the_order_of_its_nodes_children() {
        // Nodes 1 and 2 are hosts below leaf 0, which is in no rank.
        let trees = trees(&[(1, Some((0, 0))), (2, Some((0, 1)))], &[(1, 0), (2, 0), (1, 1), (1, 2), (2, 1)]);
        assert_eq!(told(&trees, &[0, 2, 3]).as_deref(), Some("(0 1 2)"));
        assert_eq!(told(&trees, &[3, 0, 2]).as_deref(), Some("(1 2 0)"), "whatever the group's order is");
        assert_eq!(told(&trees, &[1, 4]).as_deref(), Some("(0 1)"));
        assert_eq!((told(&trees, &[0, 1]), told(&trees, &[2]), told(&trees, &[0, 9])), (None, None, None));
    }

    #[test]
    fn domains_are_folded_by_themselves_first() {
        // Host node 1 has domain nodes 2 and 3, and one rank of its own between them.
        let nodes = [(1, None), (2, Some((1, 0))), (3, Some((1, 2)))];
        let trees = trees(&nodes, &[(2, 0), (3, 0), (2, 1), (1, 1), (3, 1)]);
        assert_eq!(told(&trees, &[0, 1, 2, 3, 4]).as_deref(), Some("((0 2) 3 (1 4))"));
        assert_eq!(told(&trees, &[0, 2]).as_deref(), Some("(0 1)"), "a node with one child passes on what that gives");
        assert_eq!(told(&trees, &[0, 3, 4]).as_deref(), Some("(0 1 2)"));
    }

    #[test]
    fn hosts_have_rows_where_they_have_equally_many_in_one_row_each() {
        let nodes = [(1, Some((0, 0))), (2, Some((0, 1))), (3, Some((2, 1)))];
        let trees = trees(&nodes, &[(1, 0), (2, 0), (1, 1), (2, 2), (3, 0), (3, 1)]);
        let rows = |ranks: &[u32]| trees.rows(&RankList::from_ranks(ranks.iter().copied()));
        assert_eq!(rows(&[0, 1, 2, 3]), Some(vec![vec![0, 2], vec![1, 3]]));
        assert_eq!(rows(&[3, 2, 1, 0]), Some(vec![vec![2, 0], vec![3, 1]]), "in the order of the fold");
        assert_eq!(rows(&[0, 2]), Some(vec![vec![0, 1]]), "one host");
        assert_eq!((rows(&[0, 1]), rows(&[0, 1, 2]), rows(&[0, 9])), (None, None, None));
        assert_eq!(rows(&[1, 4, 5]), None, "domains round by themselves");
    }

    #[test]
    fn a_rank_below_no_host_has_none_and_a_circle_ends() {
        let circle = trees(&[(1, Some((2, 0))), (2, Some((1, 0)))], &[(1, 0), (1, 1), (7, 0)]);
        assert!(told(&circle, &[0, 1]).is_some_and(|told| told.len() < 40));
        assert_eq!(told(&circle, &[0, 2]), None);
        let twice = trees(&[(1, None)], &[(1, 0), (1, 0)]);
        assert_eq!(told(&twice, &[0, 1]), None, "two ranks in one seat");
    }
}
