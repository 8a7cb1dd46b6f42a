//! A process that has hosted a node and wakes after the node has moved on holds dead keys.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::{Tree, node};
use trib_keys::{EdgeKeys, NodeKey};
use trib_messages::job::{Limits, NodeGrant};
use trib_node::Node;
use trib_transport::tcp::{Connected, HandshakeError, Identity, connect};
use trib_wire::header::HEADER_LEN;
use trib_wire::hello::Status;
use trib_wire::{ChildIndex, Epoch, Header, Kind, Mode, NodeId, Placement};

const ROOT: NodeId = NodeId(0);
const INNER: NodeId = NodeId(1);
/// The inner node's position below the root.
const CHILD: ChildIndex = ChildIndex(0);

/// A root with an inner node below it; each of the two has two candidates.
fn tree() -> Tree {
    Tree::new(1, 1, 2)
}

/// The keys of one candidate of the root.
fn root_key(candidate: u16) -> NodeKey {
    tree().key.node(tree().job, ROOT, candidate)
}

/// The root's grant at one of its candidates.
fn grant(candidate: u16) -> NodeGrant {
    let candidates = ["10.0.0.1:4000", "10.0.0.9:4000"].map(|address| address.parse::<SocketAddr>().unwrap());
    let mut grant = NodeGrant { recovers: true, candidate, candidates: candidates.to_vec(), ..tree().root() };
    (grant.key, grant.children[0].candidates) = (root_key(candidate), 2);
    grant
}

/// Calls the root in a placement with these keys, as a candidate of the inner node does.
fn call(node: &Node, placement: &Placement, keys: &EdgeKeys) -> Result<Connected, HandshakeError> {
    call_as(Mode::Checked, node, placement, keys)
}

fn call_as(mode: Mode, node: &Node, placement: &Placement, keys: &EdgeKeys) -> Result<Connected, HandshakeError> {
    let identity = Identity {
        job: tree().job,
        epoch: placement.epoch(Epoch(1)),
        node: ROOT,
        child: CHILD,
        channel: 0,
        mode,
        udp_port: 9,
        shares: true,
        ucx: None,
        placement: placement.clone(),
    };
    connect(node.address(), &identity, &keys.hello, Duration::from_secs(5))
}

fn is_bad_key<T>(outcome: &Result<T, HandshakeError>) -> bool {
    matches!(outcome, Err(HandshakeError::Refused(Status::BadKey)))
}

#[test]
fn a_former_candidate_cannot_come_as_the_present_one() {
    let above = node(1);
    above.install(grant(0)).unwrap();
    let (former, present) = (root_key(0).edge(CHILD, 0), root_key(0).edge(CHILD, 1));
    let (first, moved) = (Placement::FIRST, Placement::FIRST.without(INNER));
    // Nobody comes as a candidate whose turn has not come.
    assert!(is_bad_key(&call(&above, &first, &present.keys(&first))));
    let before = call(&above, &first, &former.keys(&first)).unwrap();
    for keys in [former.keys(&moved), former.keys(&first), present.keys(&first)] {
        assert!(is_bad_key(&call(&above, &moved, &keys)), "none of these is a key of that epoch");
    }
    let after = call(&above, &moved, &present.keys(&moved)).unwrap();
    assert!(is_bad_key(&call(&above, &moved, &former.keys(&moved))));
    let told = call(&above, &first, &former.keys(&first));
    assert!(matches!(told, Err(HandshakeError::Moved(placement)) if placement == moved), "it learns that it is former");

    // What it has learnt of the epoch in which it took part is of no use in the next one.
    let header = Header::new(Kind::Result, tree().job, Epoch(2), ROOT, ChildIndex::ALL);
    let mut bytes = [0; HEADER_LEN];
    before.results.tags.seal(&header, &mut bytes);
    assert!(after.results.tags.verify(&bytes, before.results.tags.tag_of(&header)).is_err());
    after.results.tags.seal(&header, &mut bytes);
    assert!(after.results.tags.verify(&bytes, after.results.tags.tag_of(&header)).is_ok());
    assert!(after.results.tags == root_key(0).results(&moved), "the handshake brings the node's own key");
}

fn is_wrong_mode<T>(outcome: &Result<T, HandshakeError>) -> bool {
    matches!(outcome, Err(HandshakeError::Refused(Status::WrongMode)))
}

#[test]
fn ends_that_know_different_modes_do_not_meet_and_only_who_has_the_key_is_told() {
    let (keys, strangers) = (root_key(0).edge(CHILD, 0), root_key(1).edge(CHILD, 0));
    let first = Placement::FIRST;
    for known in Mode::ALL {
        let above = node(1);
        let limits = Limits { mode: *known, ..grant(0).limits };
        above.install(NodeGrant { limits, ..grant(0) }).unwrap();
        for said in Mode::ALL {
            let outcome = call_as(*said, &above, &first, &keys.keys(&first));
            assert_eq!(outcome.is_ok(), said == known);
            assert_eq!(is_wrong_mode(&outcome), said != known);
            assert!(is_bad_key(&call_as(*said, &above, &first, &strangers.keys(&first))));
        }
    }
}

/// A process that gets a grant again counts its seals from 0 again.
#[test]
fn the_key_of_results_is_another_one_each_time_that_a_grant_is_taken() {
    let keys = root_key(0).edge(CHILD, 0).keys(&Placement::FIRST);
    for (mode, is_new) in [(Mode::Checked, false), (Mode::Signed, true), (Mode::Encrypted, true)] {
        let results = || {
            let above = node(1);
            let limits = Limits { mode, ..grant(0).limits };
            above.install(NodeGrant { limits, ..grant(0) }).unwrap();
            let open = call_as(mode, &above, &Placement::FIRST, &keys).unwrap();
            assert_eq!((open.session.is_some(), open.results.data.is_some()), (mode.seals(), mode.seals()));
            open.results
        };
        assert_eq!(results() != results(), is_new, "{mode}");
    }
}

#[test]
fn a_former_host_of_a_node_cannot_answer_for_the_present_one() {
    let former = node(1);
    // It says that it is the second candidate, and has the key of the first one.
    former.install(NodeGrant { key: root_key(0), ..grant(1) }).unwrap();
    let moved = Placement::FIRST.without(ROOT);
    assert!(is_bad_key(&call(&former, &moved, &root_key(1).edge(CHILD, 0).keys(&moved))));
    let present = node(1);
    present.install(grant(1)).unwrap();
    assert!(call(&present, &moved, &root_key(1).edge(CHILD, 0).keys(&moved)).is_ok());
}

#[test]
fn only_a_candidate_of_the_root_is_heard_as_one() {
    let above = node(1);
    above.install(grant(0)).unwrap();
    let moved = Placement::FIRST.without(ROOT);
    let identity = Identity {
        job: tree().job,
        epoch: moved.epoch(Epoch(1)),
        node: ROOT,
        child: ChildIndex::ALL,
        channel: 0,
        mode: Mode::Checked,
        udp_port: 0,
        shares: true,
        ucx: None,
        placement: moved.clone(),
    };
    let tell = |hello| connect(above.address(), &identity, &hello, Duration::from_secs(5));
    let child = root_key(0).edge(CHILD, 0).keys(&moved).hello;
    assert!(is_bad_key(&tell(child)), "a child is none");
    let told = tell(tree().key.root(tree().job, ROOT).hello(&moved));
    assert!(matches!(told, Err(HandshakeError::Moved(placement)) if placement == moved));
}
