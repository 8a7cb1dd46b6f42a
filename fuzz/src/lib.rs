//! What the fuzz targets share. A target is a file in `targets/`, whose head says what it asserts.
//!
//! Map: `memory` (how much the code under test takes from the allocator), `draw` (values from the
//! engine's bytes), `frames` (headers and bodies that a peer with valid keys may send), `answer`
//! (what a correct peer above would say), `limits` (small quotas, and how far an input goes),
//! `ledger` (buffers that are counted), `node` and `leaf` (drivers of the two cores that check what
//! these ask of them).

pub mod answer;
pub mod draw;
pub mod frames;
pub mod leaf;
pub mod ledger;
pub mod limits;
pub mod memory;
pub mod node;
