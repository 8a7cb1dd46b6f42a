//! The connections of a node.

use trib_wire::ChildIndex;

/// The far end of a stream connection of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Link {
    /// The parent.
    Parent,
    /// A child.
    Child(ChildIndex),
}
