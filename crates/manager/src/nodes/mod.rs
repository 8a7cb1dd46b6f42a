//! The aggregation nodes, as the manager sees them.
//!
//! ```text
//!   watch        asks all of them for signs of life
//!   deputies     which ranks host nodes of their own jobs
//!   registry     which nodes are connected
//!     session    one connection of one node: what is sent to it, and what it is asked
//!       silence  whether it answers
//! ```

pub(crate) mod deputies;
pub(crate) mod registry;
pub(crate) mod session;
mod silence;
pub(crate) mod watch;
