//! What a worker keeps of links that are closed.

use trib_transport::memory::NearSocket;
use trib_transport::tcp::StreamSocket;
use trib_wire::auth::FrameKey;
use trib_wire::{ChildIndex, NodeId, Placement};

use super::{Command, Stepped};
use crate::worker::support::Tree;

/// A child opens its link over memory. Returns its end.
fn open(worker: &mut Stepped, tree: &Tree, child: u16) -> NearSocket {
    let far = "127.0.0.1:9".parse().unwrap();
    let (own, node) = NearSocket::pair(far).unwrap();
    worker.link_up((tree.job, NodeId(0)), ChildIndex(child), (StreamSocket::near(node), far));
    worker.round().unwrap();
    own
}

#[test]
fn a_closed_link_over_memory_is_not_looked_at_any_more() {
    let mut worker = Stepped::start().unwrap();
    let tree = Tree::new(1, 0, 2);
    worker.host(&tree.root(), FrameKey([1; 16])).unwrap();
    worker.round().unwrap();
    let _first = open(&mut worker, &tree, 0);
    for _ in 0..100 {
        // A child that has said nothing may come again.
        let second = open(&mut worker, &tree, 1);
        assert_eq!(worker.worker.near.len(), 2);
        drop(second);
        worker.round().unwrap();
        assert_eq!(worker.worker.near.len(), 1);
    }
    let placement = Placement::FIRST.without(NodeId(0));
    worker.handle.mailbox.post(Command::Leave { key: (tree.job, NodeId(0)), placement });
    worker.round().unwrap();
    assert!(worker.is_empty());
    assert_eq!(worker.worker.near.len(), 0, "a job's links are gone with it");
}
