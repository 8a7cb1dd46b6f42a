//! The aggregation node: protocol core, kernels and transport wired into a loop.
//!
//! ```text
//!   control thread --- manager: Install, End, questions (may be away; nothing else notices)
//!        |   `-- teller thread: answers to questions
//!        |
//!   acceptor thread -- handshakes of children; calls parents; knows each node's worker
//!        |
//!   worker threads --- each: one poll, one datagram socket, its own logical nodes for good
//! ```
//!
//! Map: `node` (the process), `deputy` (a rank that may host nodes of its job), `manager` (control
//! thread), `ending` (how that one ends), `renewal` (its credentials meanwhile), `teller` (answers
//! to the manager's questions), `accept` (acceptor), `worker` (loop, datagrams, links), `rescue`
//! (threads that get no processor), `job` (one logical node: core, links, memory, folds), `mailbox`
//! (messages between threads), `news` (what the manager is told unasked), `counters`, `error` (why
//! a node cannot run), `report` (figures for people who watch the node).
//!
//! Invariants: workers share nothing and take no lock; a logical node belongs to one worker for
//! good; nothing is sent to an address that no handshake has proven; memory is what the grants
//! reserve, whatever the peers do.

#[cfg(test)]
extern crate self as trib_node;

mod accept;
mod counters;
mod deputy;
mod ending;
mod error;
mod job;
mod mailbox;
mod manager;
mod news;
mod node;
mod renewal;
mod report;
mod rescue;
mod teller;
mod worker;

pub use counters::Counters;
pub use deputy::{Deputy, Serving, Told};
pub use error::Error;
pub use job::{Latencies, Stages};
pub use node::{Node, Options, run};
pub use report::{GROUPS_SHOWN, JobReport, LinkReport, NodeReport, Observer};
pub use trib_proto::node::{Folded, GroupReport};
pub use worker::{Ask, Stepped};
