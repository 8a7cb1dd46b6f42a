//! A worker whose rounds and whose time its owner decides.

use std::io::{ErrorKind, Read, Write};

use trib_node::{Ask, Stepped};
use trib_proto::Nanos;
use trib_transport::memory::NearSocket;
use trib_transport::tcp::StreamSocket;
use trib_wire::auth::FrameKey;
use trib_wire::{ChildIndex, NodeId};

use crate::support::Tree;

const SECOND: Nanos = Nanos::from_millis(1000);

#[test]
fn a_job_is_hosted_until_its_ranks_have_been_gone_for_a_while_of_the_time_that_its_owner_lets_pass() {
    let mut worker = Stepped::start().unwrap();
    let tree = Tree::new(1, 0, 2);
    let key = (tree.job, NodeId(0));
    assert!(worker.host(&tree.root(), FrameKey([1; 16])).unwrap() > 0);
    let far = "127.0.0.1:9".parse().unwrap();
    let [mut first, second] = [0, 1].map(|child| {
        let (own, node) = NearSocket::pair(far).unwrap();
        worker.link_up(key, ChildIndex(child), (StreamSocket::near(node), far));
        own
    });
    worker.ask(Ask::Count);
    worker.round().unwrap();
    assert_eq!((worker.unanswered(), worker.counters()["links"]), (0, 2));
    assert_eq!(first.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    // What is no frame ends the connection that it comes by, and no other.
    first.write_all(&[7; 200]).unwrap();
    worker.round().unwrap();
    assert_eq!((first.read(&mut [0; 1]).unwrap(), worker.counters()["links"]), (0, 1));
    drop(second);
    worker.round().unwrap();
    assert_eq!((worker.counters()["links"], worker.is_empty()), (0, false));
    for _ in 0..11 {
        worker.pass(SECOND);
        worker.round().unwrap();
    }
    assert!(worker.is_empty());
    assert_eq!(worker.removed(), [key]);
}
