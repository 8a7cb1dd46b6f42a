//! What the fuzz targets share. A target is a file in `targets/`, whose head says what it asserts.
//!
//! Map: `memory` (how much the code under test takes from the allocator), `draw` (values from the
//! engine's bytes), `frames` (headers and bodies that a peer with valid keys may send), `answer`
//! (what a correct peer above would say), `limits` (small quotas, and how far an input goes),
//! `ledger` (buffers that are counted), `node` and `leaf` (drivers of the two cores that check what
//! these ask of them), `playing` (a time that an input plays), `asked` (what tenants and nodes say
//! to a manager), `fabric` (a manager between them), `job` (a job on a node's worker, with
//! its grant and its ranks), `rank` (a rank's core over an edge in memory).

pub mod answer;
pub mod asked;
pub mod draw;
pub mod fabric;
pub mod frames;
pub mod job;
pub mod leaf;
pub mod ledger;
pub mod limits;
pub mod memory;
pub mod node;
pub mod playing;
pub mod rank;
