//! Jobs come and go.

use std::time::Duration;

use crate::support::{Rank, Tree, await_count, drive, node};
use trib_messages::reply::Resource;
use trib_transport::tcp::{HandshakeError, Identity, connect};
use trib_wire::body::Reason;
use trib_wire::hello::Status;
use trib_wire::{Epoch, Mode, Placement, RankList};

fn call(tree: &Tree, rank: u32, epoch: u32, node: &trib_node::Node) -> Result<(), HandshakeError> {
    let (logical, child) = tree.attachment(rank);
    let keys = tree.rank_keys(rank);
    let identity = Identity {
        job: tree.job,
        epoch: Epoch(epoch),
        node: logical,
        child,
        channel: 0,
        mode: Mode::Checked,
        udp_port: 9,
        shares: true,
        ucx: None,
        placement: Placement::FIRST,
    };
    connect(node.address(), &identity, &keys.hello, Duration::from_millis(200)).map(drop)
}

#[test]
fn an_ended_job_goes_when_its_children_are_gone() {
    let node = node(1);
    let tree = Tree::new(1, 0, 2);
    node.install(tree.root()).unwrap();
    let mut ranks: Vec<_> = (0..2).map(|rank| Rank::connect(&tree, rank, node.address())).collect();
    let groups: Vec<_> = ranks.iter_mut().map(|r| r.create_group(RankList::world(2))).collect();
    drive(&mut ranks, "group creation", |rank| rank.is_ready(groups[0]));
    node.end_job(tree.job);
    await_count(&node, "jobs", 1);
    drop(ranks);
    await_count(&node, "jobs_removed", 1);
    assert!(matches!(call(&tree, 0, 1, &node), Err(HandshakeError::Refused(Status::UnknownJob))));
}

#[test]
fn an_ended_job_that_nobody_used_goes_at_once() {
    let node = node(2);
    let tree = Tree::new(1, 0, 2);
    node.install(tree.root()).unwrap();
    node.end_job(tree.job);
    await_count(&node, "jobs_removed", 1);
}

#[test]
fn a_child_that_never_heard_that_it_was_welcome_may_come_again() {
    let node = node(1);
    let tree = Tree::new(1, 0, 2);
    node.install(tree.root()).unwrap();
    for _ in 0..3 {
        // The handshake is done, and the connection is gone before a frame has travelled over it.
        assert!(call(&tree, 0, 1, &node).is_ok());
    }
    // One whose end the node has not seen yet.
    let forgotten = Rank::connect(&tree, 0, node.address());
    let mut ranks: Vec<_> = (0..2).map(|rank| Rank::connect(&tree, rank, node.address())).collect();
    let groups: Vec<_> = ranks.iter_mut().map(|r| r.create_group(RankList::world(2))).collect();
    drive(&mut ranks, "group creation", |rank| rank.is_ready(groups[0]));
    drop(forgotten);
}

#[test]
fn who_calls_wrongly_learns_why() {
    let node = node(1);
    let tree = Tree::new(1, 0, 2);
    node.install(tree.root()).unwrap();
    let mut first = [Rank::connect(&tree, 0, node.address())];
    let alone = first[0].create_group(RankList::world(1));
    drive(&mut first, "a group of one", |rank| rank.is_ready(alone));
    // The thread that accepts connections hears of the rank's first frame a little later. Until
    // then it lets another one in, which the rank's connection then outlives.
    let refused = (0..100).find_map(|_| call(&tree, 0, 1, &node).err());
    assert!(matches!(refused, Some(HandshakeError::Refused(Status::DuplicateChild))), "{refused:?}");
    assert!(matches!(call(&tree, 1, 2, &node), Err(HandshakeError::Refused(Status::WrongEpoch))));
    let strange = Tree::new(9, 0, 2);
    assert!(matches!(call(&strange, 0, 1, &node), Err(HandshakeError::Refused(Status::UnknownJob))));
    let mut forged = tree.clone();
    forged.key.0 = [0xff; 32];
    assert!(matches!(call(&forged, 1, 1, &node), Err(HandshakeError::Refused(Status::BadKey))));
    assert!(call(&tree, 1, 1, &node).is_ok());
    let counters = node.counters();
    assert_eq!(counters["handshakes_bad_key"], 1);
    assert!(counters["handshakes_opened"] >= 2);
    drop(first);
}

#[test]
fn grants_that_cannot_be_kept_are_rejected_with_a_reason() {
    let node = node(1);
    let tree = Tree::new(1, 0, 2);
    assert!(node.install(tree.root()).is_ok());
    assert!(node.install(tree.root()).is_ok(), "the same grant again, as after a lost connection to the manager");
    let mut other = tree.root();
    other.epoch = Epoch(2);
    assert_eq!(node.install(other).unwrap_err().resource, Resource::Job);
    let mut empty = Tree::new(2, 0, 2).root();
    empty.children.clear();
    assert_eq!(node.install(empty).unwrap_err().resource, Resource::Ranks);
    let mut bad = Tree::new(2, 0, 2).root();
    bad.limits.payload = 7;
    assert_eq!(node.install(bad).unwrap_err().resource, Resource::Payload);
    let mut huge = Tree::new(2, 0, 2).root();
    (huge.limits.streams, huge.limits.segment, huge.limits.flight) = (1 << 16, 1 << 20, 1024);
    assert_eq!(node.install(huge).unwrap_err().resource, Resource::Memory);
}

#[test]
fn a_parent_that_refuses_fails_the_groups_that_need_it() {
    let (above, below) = (node(1), node(1));
    let tree = Tree::new(1, 2, 2);
    let mut foreign = tree.clone();
    foreign.key.0 = [0xff; 32];
    above.install(foreign.root()).unwrap();
    below.install(tree.leaf(0, above.address())).unwrap();
    let mut ranks: Vec<_> = (0..2).map(|rank| Rank::connect(&tree, rank, below.address())).collect();
    let groups: Vec<_> = ranks.iter_mut().map(|r| r.create_group(RankList::world(4))).collect();
    drive(&mut ranks, "failure", |rank| rank.failure(groups[0]).is_some());
    assert_eq!(ranks[0].failure(groups[0]).unwrap().reason, Reason::NodeDead);
    await_count(&above, "handshakes_bad_key", 1);
}
