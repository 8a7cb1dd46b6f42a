//! Every identifier of the system. Each has a type of its own, so that none is taken for another.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($repr:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(transparent))]
        pub struct $name(pub $repr);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(/// One parallel program; the aggregation manager counts them from 1. People and frames use the same number.
    JobId(u32), "job ");
id!(/// The placement of a job's logical tree; grows by one with every failover.
    Epoch(u32), "e");
id!(/// A logical node of a job's reduction tree (rule R1: not a process).
    NodeId(u16), "n");
id!(/// A rank of the job (world rank), 0 based.
    Rank(u32), "r");
id!(/// Position of a child at its node, 0..64; folds run in this order.
    ChildIndex(u16), "c");
id!(/// A group's slot in the table of the node at the upper end of an edge.
    GroupIndex(u32), "g");
id!(/// How many times a group index was used before; a frame of an older generation is refused.
    Generation(u32), ".");

/// What is attached below a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ChildKind {
    /// A rank of the job.
    Rank(Rank),
    /// Another logical node.
    Node(NodeId),
}

impl ChildIndex {
    /// The child index in a frame that serves all children of a node at once.
    pub const ALL: ChildIndex = ChildIndex(u16::MAX);
}

/// The largest number of children of one logical node: one bit each in a 64-bit map. More children
/// need a cascade of nodes.
pub const CHILDREN_MAX: usize = 64;
