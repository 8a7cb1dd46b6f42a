//! Keys of one edge of a job's tree, derived from the job's secret.
//!
//! Each direction and purpose has a key of its own, so that a frame can be replayed neither into
//! another job, epoch or node, nor by one child in the name of another. The way down has one key
//! per node, because one frame serves all its children (ranks of one job trust each other).

use hkdf::Hkdf;
use sha2::Sha256;
use trib_wire::auth::{FrameKey, JobKey};
use trib_wire::{ChildIndex, Epoch, JobId, NodeId};

/// What both ends of an edge need to authenticate each other.
#[derive(Clone, PartialEq, Eq)]
pub struct EdgeKeys {
    /// Tags of frames from this child to the node.
    pub up: FrameKey,
    /// Tags of frames from the node to its children, the same for all of them.
    pub down: FrameKey,
    /// Handshake of this child's stream connections.
    pub hello: HelloKey,
}

/// The key of the handshake of one edge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HelloKey(pub [u8; 32]);

impl core::fmt::Debug for HelloKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HelloKey(..)")
    }
}

impl core::fmt::Debug for EdgeKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("EdgeKeys(..)")
    }
}

/// The keys of the edge between `node` and its child `child`: HKDF-SHA256 of the job's secret.
pub fn edge_keys(key: &JobKey, job: JobId, epoch: Epoch, node: NodeId, child: ChildIndex) -> EdgeKeys {
    let place = |child: ChildIndex| {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&job.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&epoch.0.to_le_bytes());
        bytes[8..10].copy_from_slice(&node.0.to_le_bytes());
        bytes[10..].copy_from_slice(&child.0.to_le_bytes());
        bytes
    };
    let secret = Hkdf::<Sha256>::new(None, &key.0);
    EdgeKeys {
        up: FrameKey(expand(&secret, b"tributary v1 frame up", &place(child))),
        down: FrameKey(expand(&secret, b"tributary v1 frame down", &place(ChildIndex::ALL))),
        hello: HelloKey(expand(&secret, b"tributary v1 hello", &place(child))),
    }
}

fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &[u8], place: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    secret.expand_multi_info(&[label, &[0], place], &mut out).expect("fewer bytes than HKDF-SHA256 can give");
    out
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_job_epoch_node_child_direction_and_purpose_has_its_own_key() {
        let mut seen = HashSet::new();
        let mut edges = 0;
        for secret in [[1; 32], [2; 32]] {
            for (job, epoch, node) in [(1, 1, 0), (2, 1, 0), (1, 2, 0), (1, 1, 1), (256, 1, 0)] {
                let mut down = HashSet::new();
                for child in [0, 1, 63] {
                    let keys = edge_keys(&JobKey(secret), JobId(job), Epoch(epoch), NodeId(node), ChildIndex(child));
                    edges += 2;
                    assert!(seen.insert(keys.up.0.to_vec()));
                    assert!(seen.insert(keys.hello.0[..16].to_vec()));
                    down.insert(keys.down.0);
                }
                assert_eq!(down.len(), 1, "one key serves all children");
                assert!(seen.insert(down.into_iter().next().unwrap().to_vec()));
                edges += 1;
            }
        }
        assert_eq!(seen.len(), edges);
    }

    /// The expected keys were computed apart from this code, from RFC 5869.
    #[test]
    fn keys_are_what_the_protocol_says() {
        let keys = edge_keys(&JobKey([7; 32]), JobId(1), Epoch(2), NodeId(3), ChildIndex(4));
        assert_eq!(keys.up.0, 0xc3c962258b93bdc5ba34afe4ce7e8973_u128.to_be_bytes());
        assert_eq!(keys.down.0, 0x1037376e372650cbe9c7f704a9e9fad5_u128.to_be_bytes());
        assert_eq!(format!("{keys:?} {:?}", keys.hello), "EdgeKeys(..) HelloKey(..)");
    }
}
