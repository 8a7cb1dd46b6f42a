//! The protocol core: state machines without I/O.
//!
//! Nothing here reads a socket, a clock or a random source. Drivers (the daemons, the client
//! library, the simulator) call `on_*` with the time, and the machines answer by calling the
//! driver's output trait, in the order in which the effects must happen. The core never sees a
//! vector: a buffer is a value of the driver's own type ([`NodeOutput::Buffer`]) or a [`Slice`] of
//! a posted operation, so sockets, GPU memory and a model of a large fabric differ only in the
//! driver.
//!
//! Map: `node` (aggregation node: one logical node of one job), `leaf` (one rank of one job),
//! `lock` (the arbiter of stream contexts, at the root of a tree), `window` (which bytes of a
//! vector a rank gives and gets), `liveness` (heartbeats of one stream connection), `passage`
//! (whether datagrams get through an edge), `placing` (where nodes are, and which
//! process is called when), `limits` (a job's quota), `surprise`
//! (what is asserted, and what is answered), `time`, `transitions` (a machine's table as text, for
//! tests).
#![forbid(unsafe_code)]

pub mod leaf;
pub mod limits;
pub mod liveness;
pub mod lock;
pub mod node;
mod passage;
pub mod placing;
mod surprise;
pub mod time;
#[cfg(test)]
mod transitions;
pub mod window;

pub use leaf::{LeafConfig, LeafCore, LeafOutput};
pub use limits::Limits;
pub use node::{NodeConfig, NodeCore, NodeOutput};
pub use time::Nanos;

/// How a frame travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// A frame may be lost, doubled or reordered, and is at most one path MTU long.
    Datagram,
    /// Frames come reliably and in order, until the connection ends.
    Stream,
}
