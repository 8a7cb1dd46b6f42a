//! What is wrong with a topology file, where, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use trib_messages::quota::OutOfRange;

use crate::addresses::AddressFault;
use crate::graph::GraphFault;

/// A topology file that cannot be used.
#[derive(Debug)]
pub struct TopologyError {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1, if one line is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a topology.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Unreadable(io::Error),
    /// It is not TOML, or not of the form expected.
    #[error("{0}")]
    Syntax(String),
    /// There is no node at all.
    #[error("there is no [[node]]")]
    NoNodes,
    /// There are more nodes than a fabric may have.
    #[error("{0} nodes, at most {max} are possible", max = crate::topology::NODES_MAX)]
    TooManyNodes(usize),
    /// Two nodes have one name.
    #[error("node `{0}` stands there twice")]
    DuplicateNode(String),
    /// A node's parent is no node.
    #[error("node `{node}` has the parent `{parent}`, which is no node")]
    UnknownParent {
        /// The node.
        node: String,
        /// Its parent.
        parent: String,
    },
    /// Two nodes have no parent.
    #[error("nodes `{first}` and `{second}` both have no parent: a fabric has one root")]
    TwoRoots {
        /// The root.
        first: String,
        /// The other.
        second: String,
    },
    /// Parents form a circle.
    #[error("node `{0}` is its own ancestor")]
    Cycle(String),
    /// The tree is too deep.
    #[error("node `{0}` lies more than {max} levels below the root", max = crate::topology::DEPTH_MAX)]
    TooDeep(String),
    /// A host has two entries.
    #[error("host `{0}` stands there twice")]
    DuplicateHost(String),
    /// There is no host at all.
    #[error("there is no [[host]]")]
    NoHosts,
    /// A host has no leaf, or uses both ways to name leaves.
    #[error("host `{0}` needs either `leaf` or a non-empty `leaves`")]
    NoLeaf(String),
    /// A leaf is named twice.
    #[error("host `{host}` names leaf `{leaf}` twice")]
    DuplicateLeaf {
        /// The host.
        host: String,
        /// The leaf.
        leaf: String,
    },
    /// A leaf is no node.
    #[error("host `{host}` hangs on `{leaf}`, which is no node")]
    UnknownLeaf {
        /// The host.
        host: String,
        /// Its leaf.
        leaf: String,
    },
    /// One address is given to many hosts.
    #[error("the host `*` stands for many hosts and cannot have one address")]
    WildAddress,
    /// A name is empty.
    #[error("a {0} has an empty name")]
    EmptyName(&'static str),
    /// The MTU is outside 576..=65536.
    #[error("the mtu {0} lies outside 576..=65536")]
    Mtu(u32),
    /// A link's rate is no rate.
    #[error("{0}")]
    Rate(&'static str),
    /// A limit is outside its range.
    #[error("limit `{}` = {} is out of range: it is {}", .0.field.name(), .0.value, .0.field.row().range())]
    Limit(OutOfRange),
    /// A default is above its maximum.
    #[error("limit `{name}`: the default {default} is above the maximum {maximum}")]
    DefaultAboveMaximum {
        /// Its name.
        name: &'static str,
        /// The default.
        default: u64,
        /// The maximum.
        maximum: u64,
    },
    /// Heartbeats come too seldom to show that a side is alive.
    #[error("`dead_after_ms` ({dead_after_ms}) must be at least three times `heartbeat_ms` ({heartbeat_ms})")]
    Heartbeat {
        /// The period.
        heartbeat_ms: u64,
        /// The silence.
        dead_after_ms: u64,
    },
    /// Addresses are not possible.
    #[error(transparent)]
    Addresses(AddressFault),
    /// The graph of a fabric is wrong.
    #[error(transparent)]
    Graph(#[from] GraphFault),
}

impl Fault {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Fault::Unreadable(_) => {
                "name an existing file that may be read: TOML, Slurm's topology.conf or a dump of ibnetdiscover"
            }
            Fault::Syntax(_) => "correct the line; docs/topology.md shows every field",
            Fault::NoNodes => "add a [[node]] for every aggregation node; docs/topology.md shows every format",
            Fault::TooManyNodes(_) => "split the fabric, or let fewer switches have a node",
            Fault::DuplicateNode(_) | Fault::DuplicateHost(_) | Fault::DuplicateLeaf { .. } => "remove one of the two",
            Fault::UnknownParent { .. } | Fault::UnknownLeaf { .. } => "correct the name or add the [[node]]",
            Fault::TwoRoots { .. } => "give one of them a parent",
            Fault::Cycle(_) => "let every chain of parents end at the root",
            Fault::TooDeep(_) => "flatten the tree",
            Fault::NoHosts => "add a [[host]]; name = \"*\" stands for all hosts",
            Fault::NoLeaf(_) => "write leaf = \"NODE\" or leaves = [\"NODE\", ...]",
            Fault::WildAddress => "remove the address, or name the host",
            Fault::EmptyName(_) => "give it a name",
            Fault::Rate(_) => "correct the rate",
            Fault::Mtu(_) => "write the path MTU of the fabric's network in bytes, for example 1500 or 9000",
            Fault::Limit(_) => "choose a value inside",
            Fault::DefaultAboveMaximum { .. } => "lower the default or raise the maximum",
            Fault::Heartbeat { .. } => "raise dead_after_ms or lower heartbeat_ms",
            Fault::Addresses(fault) => fault.remedy(),
            Fault::Graph(fault) => fault.remedy(),
        }
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "topology {}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}; {}", self.fault, self.fault.remedy())
    }
}

impl std::error::Error for TopologyError {}
