//! From the hosts of a program, by rank, to its logical tree.
//!
//! ```text
//!   topology           hosts of ranks 0..6           plan
//!   spine              h0 h0 h1 h1 h4 h5             n0 spine   children n1, n2
//!    |- leaf0 (h0 h1)                                n1 leaf0   children r0 r1 r2 r3
//!    |- leaf1 (h2 h3)                                n2 leaf2   children r4 r5
//!    `- leaf2 (h4 h5)
//! ```
//! Nodes on the way from a rank to the lowest common node take part, and no others. Even those with
//! one child do, because packets pass there. Children stand in topology order, then in rank order.
//!
//! Which node is above which is what the file says (here), or in a graph the tree that is the best
//! beside those of other jobs (`in_graph`). The ports and parallel links that a lane takes of this
//! tree are chosen last (`ports`). `ways` says which link leads to which child.

use std::net::IpAddr;

use trib_messages::job::Attachment;
use trib_wire::ids::{CHILDREN_MAX, ChildIndex, ChildKind, NodeId, Rank};
use trib_wire::ranks::{RankList, WORLD_MAX};

use crate::cascade;
use crate::topology::{DEPTH_MAX, Topology};
use crate::trees::{Loads, Tree, TreeError};

/// A program's logical tree on a fabric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The logical nodes. `nodes[i].id` is `NodeId(i)`, the root is first, and parents stand before
    /// children.
    pub nodes: Vec<PlanNode>,
    /// The node to which each rank is attached, by rank.
    pub leaves: Vec<Attachment>,
    /// The index of each rank's host in [`Topology::hosts`], by rank.
    pub hosts: Vec<usize>,
    /// In a graph, the tree over its links.
    pub tree: Option<Tree>,
    /// The port by which it goes to nodes that are reached at several addresses.
    pub port: usize,
}

/// One logical node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanNode {
    /// Its number.
    pub id: NodeId,
    /// The index in [`Topology::nodes`] of the aggregation node that hosts it.
    pub place: usize,
    /// The name of the aggregation node that hosts it.
    pub name: String,
    /// Which of that node's addresses it has, if the topology names several.
    pub address: Option<IpAddr>,
    /// The port by which its lane goes.
    pub port: usize,
    /// Its parent and its position there; `None` at the root.
    pub parent: Option<(NodeId, ChildIndex)>,
    /// Its children in fold order, 1 to 64.
    pub children: Vec<PlanChild>,
}

/// One child of a logical node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanChild {
    /// Whether it is a node or a rank, and which.
    pub kind: ChildKind,
    /// All ranks at or below it, in ascending order.
    pub ranks: RankList,
    /// The address from which it connects, if the topology says.
    pub address: Option<IpAddr>,
}

impl Plan {
    /// Whether both fold the same ranks in the same order, whatever their nodes and links are. If
    /// so, they give the same bits.
    pub fn folds_as(&self, other: &Plan) -> bool {
        let shape = |node: &PlanNode| {
            let children = node.children.iter().map(|child| (child.kind, child.ranks.clone()));
            (node.parent, children.collect::<Vec<_>>())
        };
        self.nodes.len() == other.nodes.len()
            && self.nodes.iter().zip(&other.nodes).all(|(own, theirs)| shape(own) == shape(theirs))
    }

    /// The same tree for one more lane of its job, besides the `lanes` that already go over it. It
    /// takes another port of nodes with several addresses, and others of parallel links, as far as
    /// there are any.
    #[must_use]
    pub fn beside(&self, topology: &Topology, loads: &Loads, lanes: &[&Plan]) -> Plan {
        let mut plan = self.clone();
        ports::choose(&mut plan, topology, loads, lanes);
        plan
    }

    /// Adds `by` to the numbers of all logical nodes, so that several trees of one job can exist
    /// together.
    ///
    /// # Panics
    /// If a number becomes too large.
    pub fn renumber(&mut self, by: u16) {
        let moved = |id: &mut NodeId| id.0 = id.0.checked_add(by).expect("the caller has counted the nodes");
        for node in &mut self.nodes {
            moved(&mut node.id);
            node.parent.iter_mut().for_each(|(parent, _)| moved(parent));
            for child in &mut node.children {
                if let ChildKind::Node(id) = &mut child.kind {
                    moved(id);
                }
            }
        }
        self.leaves.iter_mut().for_each(|leaf| moved(&mut leaf.node));
    }
}

/// Why there is no plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanError {
    /// The program has no ranks.
    #[error("the program has no ranks")]
    NoRanks,
    /// The program has more ranks than a job may have.
    #[error("the program has {0} ranks, at most {WORLD_MAX} are possible")]
    TooManyRanks(usize),
    /// No entry covers a host.
    #[error(
        "rank {rank} runs on host `{host}`, which the topology does not know: add it there, or let TRIB_HOST say the name that it has there"
    )]
    UnknownHost {
        /// The first such rank.
        rank: u32,
        /// Its host.
        host: String,
    },
    /// The tree has more logical nodes than there are numbers for them.
    #[error("the tree would need {0} logical nodes, at most 65535 are possible")]
    TooManyNodes(usize),
    /// The graph's tree is deeper than a tree may be.
    #[error("the tree would have {0} levels of aggregation nodes, at most {max} are possible: let fewer switches have one", max = DEPTH_MAX + 1)]
    TooDeep(u32),
    /// The graph has no tree for these hosts.
    #[error(transparent)]
    NoTree(#[from] TreeError),
}

/// The logical tree for ranks on `hosts` (by rank). In a graph, `loads` counts the trees that exist
/// already.
pub fn plan(topology: &Topology, hosts: &[String], loads: &Loads) -> Result<Plan, PlanError> {
    if hosts.is_empty() {
        return Err(PlanError::NoRanks);
    }
    if hosts.len() > WORLD_MAX as usize {
        return Err(PlanError::TooManyRanks(hosts.len()));
    }
    let entries = find_entries(topology, hosts)?;
    let (needed, tree) = match topology.graph() {
        Some(graph) => in_graph::needed(topology, graph, &entries, loads).map(|(needed, tree)| (needed, Some(tree)))?,
        None => (by_parents(topology, spread(topology, &entries)), None),
    };
    let mut builder = Builder { topology, needed: &needed, nodes: Vec::new() };
    let root = builder.branch(needed.root);
    builder.place(root, None);
    if builder.nodes.len() > usize::from(u16::MAX) {
        return Err(PlanError::TooManyNodes(builder.nodes.len()));
    }
    let nodes = builder.nodes;
    let leaves = leaves_of(&nodes, hosts.len());
    let mut plan = Plan { nodes, leaves, hosts: entries, tree, port: 0 };
    ports::choose(&mut plan, topology, loads, &[]);
    Ok(plan)
}

fn find_entries(topology: &Topology, hosts: &[String]) -> Result<Vec<usize>, PlanError> {
    let find = |(rank, host): (usize, &String)| {
        let unknown = || PlanError::UnknownHost { rank: rank as u32, host: host.clone() };
        topology.host_index(host).ok_or_else(unknown)
    };
    hosts.iter().enumerate().map(find).collect()
}

// The aggregation node of each rank. The ranks of one entry go to its leaves in contiguous blocks
// whose sizes differ by at most one.
fn spread(topology: &Topology, entries: &[usize]) -> Vec<usize> {
    let mut totals = vec![0usize; topology.hosts().len()];
    for entry in entries {
        totals[*entry] += 1;
    }
    let mut before = vec![0usize; topology.hosts().len()];
    let place = |entry: &usize| {
        let leaves = &topology.hosts()[*entry].leaves;
        let nth = before[*entry];
        before[*entry] += 1;
        leaves[nth * leaves.len() / totals[*entry]]
    };
    entries.iter().map(place).collect()
}

// For every aggregation node, the ranks that are attached to it and the children with ranks at or
// below them, both in order; and the lowest node above all ranks.
struct Needed {
    ranks_at: Vec<Vec<u32>>,
    children: Vec<Vec<usize>>,
    root: usize,
}

impl Needed {
    /// If one child has all ranks, the root above it is not needed, and the child becomes the root.
    fn new(ranks_at: Vec<Vec<u32>>, children: Vec<Vec<usize>>, mut root: usize) -> Self {
        while let ([only], true) = (&children[root][..], ranks_at[root].is_empty()) {
            root = *only;
        }
        Self { ranks_at, children, root }
    }
}

fn by_parents(topology: &Topology, places: Vec<usize>) -> Needed {
    let nodes = topology.nodes();
    let ranks_at = ranks_at(nodes.len(), places);
    let mut needed: Vec<bool> = ranks_at.iter().map(|ranks| !ranks.is_empty()).collect();
    for i in 0..nodes.len() {
        let mut above = if needed[i] { nodes[i].parent } else { None };
        while let Some(parent) = above.filter(|parent| !needed[*parent]) {
            needed[parent] = true;
            above = nodes[parent].parent;
        }
    }
    let mut children = vec![Vec::new(); nodes.len()];
    for i in (0..nodes.len()).filter(|i| needed[*i]) {
        if let Some(parent) = nodes[i].parent {
            children[parent].push(i);
        }
    }
    let root = nodes.iter().position(|node| node.parent.is_none()).expect("a topology has a root");
    Needed::new(ranks_at, children, root)
}

fn ranks_at(nodes: usize, places: impl IntoIterator<Item = usize>) -> Vec<Vec<u32>> {
    let mut ranks_at = vec![Vec::new(); nodes];
    for (rank, place) in places.into_iter().enumerate() {
        ranks_at[place].push(rank as u32);
    }
    ranks_at
}

// A tree before its nodes have numbers.
enum Branch {
    Rank(u32),
    Node { place: usize, children: Vec<Branch> },
}

struct Builder<'a> {
    topology: &'a Topology,
    needed: &'a Needed,
    nodes: Vec<PlanNode>,
}

impl Builder<'_> {
    // The depth of a topology bounds the recursion.
    fn branch(&self, place: usize) -> Branch {
        let nodes = self.needed.children[place].iter().map(|child| self.branch(*child));
        let ranks = self.needed.ranks_at[place].iter().map(|rank| Branch::Rank(*rank));
        node_of(place, nodes.chain(ranks).collect())
    }

    // Numbers the branch and all below it, parents first. Returns the ranks that it found.
    fn place(&mut self, branch: Branch, parent: Option<(NodeId, ChildIndex)>) -> (ChildKind, Vec<u32>) {
        let (place, branches) = match branch {
            Branch::Rank(rank) => return (ChildKind::Rank(Rank(rank)), vec![rank]),
            Branch::Node { place, children } => (place, children),
        };
        // Above 65535 the number wraps, and `plan` then refuses the tree.
        let (index, id) = (self.nodes.len(), NodeId(self.nodes.len() as u16));
        let name = self.topology.nodes()[place].name.clone();
        self.nodes.push(PlanNode {
            id,
            place,
            name,
            address: None,
            port: 0,
            parent,
            children: Vec::with_capacity(branches.len()),
        });
        let mut below = Vec::new();
        for (position, branch) in branches.into_iter().enumerate() {
            let (kind, mut ranks) = self.place(branch, Some((id, ChildIndex(position as u16))));
            ranks.sort_unstable();
            let child = PlanChild { kind, ranks: RankList::from_ranks(ranks.iter().copied()), address: None };
            self.nodes[index].children.push(child);
            below.append(&mut ranks);
        }
        (ChildKind::Node(id), below)
    }
}

fn node_of(place: usize, mut children: Vec<Branch>) -> Branch {
    if children.len() > CHILDREN_MAX {
        let sizes = cascade::blocks(children.len());
        let mut rest = children.into_iter();
        children = sizes.iter().map(|size| node_of(place, rest.by_ref().take(*size).collect())).collect();
    }
    Branch::Node { place, children }
}

fn leaves_of(nodes: &[PlanNode], size: usize) -> Vec<Attachment> {
    let mut leaves = vec![Attachment { node: NodeId(0), child: ChildIndex(0), address: None }; size];
    for node in nodes {
        for (position, child) in node.children.iter().enumerate() {
            if let ChildKind::Rank(rank) = child.kind {
                let (node, child) = (node.id, ChildIndex(position as u16));
                leaves[rank.0 as usize] = Attachment { node, child, address: None };
            }
        }
    }
    leaves
}

mod in_graph;
mod ports;
#[cfg(test)]
mod tests;
mod ways;

pub use ways::Way;
