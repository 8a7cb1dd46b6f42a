//! Which logical node this core is, in which job and epoch: its configuration, with the look-ups
//! and headers that everything here needs.

use trib_wire::{ChildIndex, ChildKind, Fault, Header, Kind, Rank, Reason};

use super::config::NodeConfig;
use super::info::Posted;
use super::link::Link;
use crate::liveness::Peer;
use crate::time::Nanos;

pub(super) struct Identity {
    pub(super) config: NodeConfig,
    /// The child by rank; `NONE` for ranks that are not below this node.
    child_of: Vec<u8>,
    /// Frames that the stream from above has brought: signs of life.
    pub(super) signs_from_above: u64,
}

const NONE: u8 = u8::MAX;

impl Identity {
    pub(super) fn new(config: NodeConfig) -> Identity {
        let mut child_of = vec![NONE; config.world_size as usize];
        for (index, child) in config.children.iter().enumerate() {
            for rank in child.ranks.iter() {
                if let Some(entry) = child_of.get_mut(rank.0 as usize) {
                    *entry = index as u8;
                }
            }
        }
        Identity { config, child_of, signs_from_above: 0 }
    }

    pub(super) fn child_of(&self, rank: Rank) -> Option<ChildIndex> {
        let child = self.child_of.get(rank.0 as usize).copied()?;
        (child != NONE).then_some(ChildIndex(u16::from(child)))
    }

    pub(super) fn is_node(&self, child: ChildIndex) -> bool {
        matches!(self.config.children.get(usize::from(child.0)).map(|c| c.kind), Some(ChildKind::Node(_)))
    }

    /// The number of children that are nodes.
    pub(super) fn nodes_below(&self) -> usize {
        self.config.children.iter().filter(|child| matches!(child.kind, ChildKind::Node(_))).count()
    }

    /// How long a child may hear nothing from here until it goes to another epoch; nothing where it
    /// cannot. This core is of one epoch, and does not know whether those before bore fruit.
    pub(super) fn patience_below(&self) -> Nanos {
        let peer = Peer::node(self.config.recovers.then_some(self.config.moves));
        if self.config.recovers { peer.patience(&self.config.limits) } else { Nanos(0) }
    }

    /// The header of a frame to a child, or to all with `ChildIndex::ALL`.
    pub(super) fn down(&self, kind: Kind, child: ChildIndex) -> Header {
        Header::new(kind, self.config.job, self.config.epoch, self.config.node, child)
    }

    /// The header of a frame to the parent; `None` at the root of the tree.
    pub(super) fn up(&self, kind: Kind) -> Option<Header> {
        let (node, child) = self.config.parent?;
        Some(Header::new(kind, self.config.job, self.config.epoch, node, child))
    }

    /// A fault about one rank, or about the lowest rank below a child.
    pub(super) fn about(&self, reason: Reason, rank: Rank) -> Fault {
        Fault { reason, node: self.config.node, rank_a: rank, rank_b: rank, signatures: None }
    }

    /// A fault about the way to one neighbour. It names the node at the upper end, and the first
    /// and the last rank at or below the lower end.
    pub(super) fn between(&self, reason: Reason, link: Link) -> Fault {
        let config = &self.config;
        let (node, children) = match link {
            Link::Parent => (config.parent.map_or(config.node, |(parent, _)| parent), &config.children[..]),
            Link::Child(child) => {
                let at = usize::from(child.0);
                (config.node, config.children.get(at..=at).unwrap_or_default())
            }
        };
        let ranks = || children.iter().flat_map(|child| child.ranks.iter());
        let (first, last) = (ranks().min().unwrap_or(Rank(0)), ranks().max().unwrap_or(Rank(0)));
        Fault { reason, node, rank_a: first, rank_b: last, signatures: None }
    }

    /// The fault of ranks that disagree: it names one rank on each side, and what each called.
    pub(super) fn mismatch(&self, a: Posted, b: Posted) -> Fault {
        Fault {
            reason: Reason::Mismatch,
            node: self.config.node,
            rank_a: Rank(a.witness),
            rank_b: Rank(b.witness),
            signatures: Some((a.signature, b.signature)),
        }
    }
}
