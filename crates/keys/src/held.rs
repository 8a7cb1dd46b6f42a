//! What the manager hands out: the job's key to its ranks, and to each process that may host a
//! logical node the keys of its own edges.

use core::fmt;

use trib_wire::auth::FrameKey;
use trib_wire::hello::{Nonce, placement_to_bytes};
use trib_wire::{ChildIndex, JobId, NodeId, Placement};

use crate::derive::derive;
use crate::derived::{EdgeKeys, HelloKey};

/// A secret, or a value that is compared like one, that no log shows.
macro_rules! bytes {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(pub [u8; $len]);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    };
}

bytes!(
    /// The secret of one job, which its ranks and nobody else have; the manager draws it.
    JobKey,
    32
);
bytes!(
    /// What one candidate of a logical node has, and no other process: with it follow the keys of
    /// all edges to the node's children while that candidate hosts the node.
    NodeKey,
    32
);
bytes!(
    /// What both ends of an edge have, and no other process: a candidate of the upper node, and one
    /// of the child.
    EdgeKey,
    32
);
bytes!(
    /// What the candidates of the root of a tree have, so that they can tell each other where the
    /// tree is.
    RootKey,
    32
);
bytes!(
    /// What tells a job from one of another manager with the same number. It is no secret.
    JobMark,
    16
);

impl JobKey {
    /// The key of one candidate of a logical node.
    pub fn node(&self, job: JobId, node: NodeId, candidate: u16) -> NodeKey {
        let what = [&job.0.to_le_bytes()[..], &node.0.to_le_bytes(), &candidate.to_le_bytes()];
        NodeKey(derive(&self.0, "tributary v1 node", &what))
    }

    /// The key of all candidates of the root of a tree.
    pub fn root(&self, job: JobId, root: NodeId) -> RootKey {
        RootKey(derive(&self.0, "tributary v1 candidates", &[&job.0.to_le_bytes(), &root.0.to_le_bytes()]))
    }

    /// What tells the job from others with its number.
    pub fn mark(&self, job: JobId) -> JobMark {
        JobMark(derive(&self.0, "tributary v1 mark", &[&job.0.to_le_bytes()]))
    }
}

impl NodeKey {
    /// The key of the edge to a child that is hosted by this one of its candidates; a rank is its
    /// own only one, 0.
    pub fn edge(&self, child: ChildIndex, candidate: u16) -> EdgeKey {
        EdgeKey(derive(&self.0, "tributary v1 edge", &[&child.0.to_le_bytes(), &candidate.to_le_bytes()]))
    }

    /// Tags of datagrams from the node to its children, in a placement. One key is for all of them,
    /// because one frame serves all. They learn it in the handshake (`Sealed`).
    pub fn results(&self, placement: &Placement) -> FrameKey {
        FrameKey(derive(&self.0, "tributary v1 results", &[&placement_to_bytes(placement)]))
    }

    /// The same in a mode that seals payloads: another one each time that a process takes the node
    /// on, because it counts its seals from 0 then. `drawn` was drawn for that time.
    pub fn fresh_results(&self, placement: &Placement, drawn: &Nonce) -> FrameKey {
        FrameKey(derive(&self.0, "tributary v1 fresh results", &[drawn, &placement_to_bytes(placement)]))
    }
}

impl EdgeKey {
    /// The keys of the edge in a placement.
    pub fn keys(&self, placement: &Placement) -> EdgeKeys {
        let placement = placement_to_bytes(placement);
        EdgeKeys {
            up: FrameKey(derive(&self.0, "tributary v1 frame up", &[&placement])),
            down: FrameKey(derive(&self.0, "tributary v1 frame down", &[&placement])),
            hello: HelloKey(derive(&self.0, "tributary v1 hello", &[&placement])),
        }
    }
}

impl RootKey {
    /// The key with which one candidate calls another in a placement.
    pub fn hello(&self, placement: &Placement) -> HelloKey {
        HelloKey(derive(&self.0, "tributary v1 hello", &[&placement_to_bytes(placement)]))
    }
}
