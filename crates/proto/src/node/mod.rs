//! The aggregation node: one logical node of one job.
mod config;
mod output;

pub use config::{NodeChild, NodeConfig};
pub use output::{Fold, NodeOutput, Note, Part, Payload, Target};

use trib_wire::{Body, ChildIndex, Header};

use crate::{Nanos, Path, Token};

/// The far end of a stream connection of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Link {
    /// Up.
    Parent,
    /// Down.
    Child(ChildIndex),
}

/// The state machine of one logical node of one job.
pub struct NodeCore {
    #[allow(dead_code)]
    config: NodeConfig,
}

impl NodeCore {
    /// A node without groups.
    pub fn new(config: NodeConfig) -> NodeCore {
        NodeCore { config }
    }

    /// The stream connection of a link is open and authenticated.
    pub fn on_link_up(&mut self, _now: Nanos, _link: Link, _out: &mut impl NodeOutput) {
        todo!()
    }

    /// The stream connection of a link is closed; it will not come back in this epoch.
    pub fn on_link_down(&mut self, _now: Nanos, _link: Link, _out: &mut impl NodeOutput) {
        todo!()
    }

    /// An authenticated frame came over `link`. `data` is the payload of a frame that carries vector data
    /// (`Some` exactly when `header.payload_len > 0` there); it is the core's from now on. `body` is `Body::None` then.
    pub fn on_frame(
        &mut self,
        _now: Nanos,
        _link: Link,
        _path: Path,
        _header: &Header,
        _body: Body,
        _data: Option<Token>,
        _out: &mut impl NodeOutput,
    ) {
        todo!()
    }

    /// A `Kind::Result` stream frame is in the socket of `child`.
    pub fn on_written(
        &mut self,
        _now: Nanos,
        _child: ChildIndex,
        _header: &Header,
        _out: &mut impl NodeOutput,
    ) {
        todo!()
    }

    /// The clock has reached `next_deadline`.
    pub fn on_timer(&mut self, _now: Nanos, _out: &mut impl NodeOutput) {
        todo!()
    }

    /// When `on_timer` wants to be called (only for heartbeats; retransmission timers live in hosts).
    pub fn next_deadline(&self) -> Nanos {
        todo!()
    }

    /// Groups alive, pending ones included.
    pub fn groups(&self) -> usize {
        todo!()
    }

    /// Links that the core has declared dead by silence since the last call; the driver closes them.
    pub fn take_dead_links(&mut self) -> Vec<Link> {
        todo!()
    }

    /// Buffers (tokens) that the core holds now: (datagram payloads, stream segments).
    pub fn tokens_held(&self) -> (usize, usize) {
        todo!()
    }
}
