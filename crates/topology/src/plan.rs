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
//! Which node is above which is what the file says (`by_parents`), or in a graph the tree that is
//! the best beside those of other jobs (`in_graph`). Below them may be nodes for the ranks of one
//! host (`levels`). The ports and parallel links that a lane takes of this tree are chosen last
//! (`ports`). `ways` says which link leads to which child.

use std::net::IpAddr;

use trib_messages::job::Attachment;
use trib_messages::via::Via;
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
    /// In a graph, the tree over its links; none if nothing of it leaves a host.
    pub tree: Option<Tree>,
    /// The port by which it goes to nodes that are reached at several addresses.
    pub port: usize,
}

/// One logical node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanNode {
    /// Its number.
    pub id: NodeId,
    /// The process that hosts it as long as nothing dies.
    pub home: Home,
    /// The name of the aggregation node that hosts it; or, if that is a rank, of the ranks below
    /// it: `host h3` or `host h3 domain 1`.
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

/// A process that hosts logical nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Home {
    /// The aggregation node with this index in [`Topology::nodes`].
    Node(usize),
    /// A rank of the program, the lowest on its host that can host nodes: its *lead*. All nodes of
    /// the host are there.
    Rank(Rank),
}

impl Home {
    /// The index of the aggregation node.
    pub fn node(self) -> Option<usize> {
        match self {
            Home::Node(index) => Some(index),
            Home::Rank(_) => None,
        }
    }

    /// The rank.
    pub fn rank(self) -> Option<Rank> {
        match self {
            Home::Node(_) => None,
            Home::Rank(rank) => Some(rank),
        }
    }
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
    /// By which transport it connects.
    pub via: Via,
}

impl Plan {
    /// The logical nodes that aggregation nodes host, each with the index of that node in
    /// [`Topology::nodes`].
    pub fn at_nodes(&self) -> impl Iterator<Item = (usize, &PlanNode)> {
        self.nodes.iter().filter_map(|node| Some((node.home.node()?, node)))
    }

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

/// The logical tree for a program. In a graph, `loads` counts the trees that exist already.
pub fn plan(topology: &Topology, program: &Program<'_>, loads: &Loads) -> Result<Plan, PlanError> {
    let hosts = program.hosts;
    if hosts.is_empty() {
        return Err(PlanError::NoRanks);
    }
    if hosts.len() > WORLD_MAX as usize {
        return Err(PlanError::TooManyRanks(hosts.len()));
    }
    let entries = find_entries(topology, hosts)?;
    let (root, tree) = match (program.alone(), topology.graph()) {
        // Nothing leaves the host.
        (Some(root), _) => (root, None),
        (None, Some(graph)) => {
            let (needed, tree) = in_graph::needed(topology, graph, &entries, loads)?;
            (needed.branch(topology, program, needed.root), Some(tree))
        }
        (None, None) => {
            let needed = by_parents::needed(topology, program, &entries);
            (needed.branch(topology, program, needed.root), None)
        }
    };
    let mut nodes = Vec::new();
    number(&mut nodes, root, None);
    if nodes.len() > usize::from(u16::MAX) {
        return Err(PlanError::TooManyNodes(nodes.len()));
    }
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

    // The depth of a topology bounds the recursion.
    fn branch(&self, topology: &Topology, program: &Program<'_>, index: usize) -> Branch {
        let mut children: Vec<Branch> =
            self.children[index].iter().map(|child| self.branch(topology, program, *child)).collect();
        children.extend(program.at_node(&self.ranks_at[index]));
        node_of(Home::Node(index), &topology.nodes()[index].name, children)
    }
}

fn ranks_at(count: usize, nodes: impl IntoIterator<Item = usize>) -> Vec<Vec<u32>> {
    let mut ranks_at = vec![Vec::new(); count];
    for (rank, index) in nodes.into_iter().enumerate() {
        ranks_at[index].push(rank as u32);
    }
    ranks_at
}

// A tree before its nodes have numbers.
enum Branch {
    Rank(u32),
    Node { home: Home, name: String, children: Vec<Branch> },
}

// More children than a node may have are dealt to a cascade of nodes in the same process.
fn node_of(home: Home, name: &str, mut children: Vec<Branch>) -> Branch {
    if children.len() > CHILDREN_MAX {
        let sizes = cascade::blocks(children.len());
        let mut rest = children.into_iter();
        children = sizes.iter().map(|size| node_of(home, name, rest.by_ref().take(*size).collect())).collect();
    }
    Branch::Node { home, name: name.to_owned(), children }
}

// Numbers the branch and all below it, parents first. Returns the ranks that it found.
fn number(nodes: &mut Vec<PlanNode>, branch: Branch, parent: Option<(NodeId, ChildIndex)>) -> (ChildKind, Vec<u32>) {
    let (home, name, branches) = match branch {
        Branch::Rank(rank) => return (ChildKind::Rank(Rank(rank)), vec![rank]),
        Branch::Node { home, name, children } => (home, name, children),
    };
    // Above 65535 the number wraps, and `plan` then refuses the tree.
    let (index, id) = (nodes.len(), NodeId(nodes.len() as u16));
    let children = Vec::with_capacity(branches.len());
    nodes.push(PlanNode { id, home, name, address: None, port: 0, parent, children });
    let mut below = Vec::new();
    for (position, branch) in branches.into_iter().enumerate() {
        let (kind, mut ranks) = number(nodes, branch, Some((id, ChildIndex(position as u16))));
        ranks.sort_unstable();
        let child =
            PlanChild { kind, ranks: RankList::from_ranks(ranks.iter().copied()), address: None, via: Via::Tcp };
        nodes[index].children.push(child);
        below.append(&mut ranks);
    }
    (ChildKind::Node(id), below)
}

fn leaves_of(nodes: &[PlanNode], size: usize) -> Vec<Attachment> {
    let mut leaves = vec![Attachment { node: NodeId(0), child: ChildIndex(0), address: None, via: Via::Tcp }; size];
    for node in nodes {
        for (position, child) in node.children.iter().enumerate() {
            if let ChildKind::Rank(rank) = child.kind {
                let (node, child) = (node.id, ChildIndex(position as u16));
                leaves[rank.0 as usize] = Attachment { node, child, address: None, via: Via::Tcp };
            }
        }
    }
    leaves
}

mod by_parents;
mod in_graph;
mod levels;
mod ports;
#[cfg(test)]
mod tests;
mod ways;

pub use levels::Program;
pub use ways::Way;
