//! The aggregation nodes, as the manager sees them.
//!
//! ```text
//!   registry   which nodes are connected
//!   silence    and which of them do not answer
//! ```

pub(crate) mod registry;
pub(crate) mod silence;
