//! What the manager does when a connection says something. Where it comes from, and how the answer
//! gets there, is up to who calls.
//!
//! ```text
//!   node       that of a node: registration, then grants and counters
//!   deputy     that of a rank that hosts nodes of its job
//!   user       that of a user: jobs, rendezvous, status
//! ```

pub(crate) mod deputy;
pub(crate) mod node;
pub(crate) mod user;
