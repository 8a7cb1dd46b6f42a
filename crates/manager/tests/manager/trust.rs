//! Which peers are let in, and what those that are not can do to the others.

use std::net::TcpStream;

use crate::common::{Fabric, LIMIT, Manner, Node, eventually};
use trib_control::{Channel, Error, Holder, ManagerUrl};
use trib_messages::hello::{Hello, Role};
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::reply::{Reply, Resource};
use trib_messages::request::{QuotaAsk, Request};

#[test]
fn a_user_cannot_register_as_a_node_nor_a_node_ask_for_jobs() {
    let fabric = Fabric::start();
    let hello = Hello { version: trib_wire::VERSION, software: "t".into(), role: Role::Node };
    let user = Channel::connect_as(&fabric.url(), &fabric.credentials(Role::User), hello, LIMIT).unwrap();
    match user.recv::<ManagerMessage>(Some(LIMIT)).unwrap() {
        ManagerMessage::Refused(refusal) => assert_eq!(refusal.resource, Resource::Role),
        other => panic!("{other:?}"),
    }
    // This user's role is right, and its words are wrong.
    let user = fabric.user();
    let stream = "127.0.0.1:1".parse().unwrap();
    let register = NodeMessage::Register {
        name: "root".into(),
        stream,
        further: Vec::new(),
        datagram_buffer_bytes: 1,
        workers: 1,
        jobs: Vec::new(),
    };
    user.0.send(&register).unwrap();
    assert!(matches!(user.0.recv::<Reply>(Some(LIMIT)), Err(Error::Closed { .. })));
    let node = fabric.node_channel("root");
    node.send(&Request::Status).unwrap();
    assert!(matches!(node.recv::<Reply>(Some(LIMIT)), Err(Error::Closed { .. })));
    assert!(fabric.user().status().nodes.iter().all(|node| !node.connected));
}

#[test]
fn without_credentials_or_with_anothers_there_is_no_entry() {
    let (fabric, stranger) = (Fabric::start(), Fabric::start());
    let at = |folder: &std::path::Path| ManagerUrl::new("127.0.0.1", fabric.address().port(), folder);
    let error = Channel::connect(&at("/nonexistent".as_ref()), Role::User, LIMIT).map(drop).unwrap_err();
    assert!(matches!(error, Error::NoCredentials { .. }), "{error}");
    let error = Channel::connect(&at(stranger.url().credentials()), Role::User, LIMIT).map(drop).unwrap_err();
    assert!(matches!(error, Error::BadCertificate(_)), "{error}");
}

#[test]
fn another_version_is_told_both_versions() {
    let fabric = Fabric::start();
    let hello = Hello { version: 200, software: "future".into(), role: Role::User };
    let error =
        Channel::connect_as(&fabric.url(), &fabric.credentials(Role::User), hello, LIMIT).map(drop).unwrap_err();
    assert!(matches!(error, Error::VersionMismatch { ours: 200, theirs: trib_wire::VERSION, .. }), "{error}");
}

#[test]
fn who_is_not_let_in_is_counted_by_why() {
    let fabric = Fabric::start();
    let count = |kind: &str| fabric.manager().observer().report().unwrap().doors.rejected[kind];
    assert_eq!(count("withdrawn certificate"), 0, "what has not happened is told, too");
    assert_eq!(fabric.keys().withdraw(&Holder::Users).unwrap().len(), 1);
    fabric.manager().read_withdrawn();
    assert_eq!(fabric.manager().observer().report().unwrap().doors.withdrawn, 1);
    for times in 1..=2 {
        let error = Channel::connect(&fabric.url(), Role::User, LIMIT).map(drop).unwrap_err();
        assert!(matches!(error, Error::Withdrawn { .. }), "{error}");
        eventually("it is counted", || count("withdrawn certificate") == times);
    }
    assert_eq!(count("certificate"), 0);
}

#[test]
fn nodes_that_do_not_fit_the_topology_are_refused() {
    let fabric = Fabric::start();
    let refused = |node: Node| match node.next() {
        ManagerMessage::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    let refusal = refused(Node::connect(&fabric, "leaf9", Manner::Installs));
    assert!(refusal.text.contains("no node `leaf9`"), "{refusal}");

    let first = fabric.node("root", Manner::Installs);
    let refusal = refused(Node::connect(&fabric, "root", Manner::Installs));
    assert!(refusal.text.contains("already connected"), "{refusal}");
    assert!(!first.channel.is_closed());
    drop(first);
    eventually("root is gone", || !fabric.user().status().nodes[0].connected);

    // A node that does not answer any more gives way.
    let stuck = fabric.node("root", Manner::Ignores);
    let _fresh = fabric.node("root", Manner::Installs);
    eventually("the stuck one is cut off", || stuck.channel.is_closed());
    assert!(fabric.user().status().nodes[0].connected);
}

#[test]
fn silent_strangers_do_not_keep_others_waiting() {
    let (fabric, _nodes) = Fabric::with_nodes();
    let _silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(fabric.address()).unwrap()).collect();
    let start = std::time::Instant::now();
    fabric.user().job(&["x", "x"], QuotaAsk::default()).unwrap();
    assert!(start.elapsed() < std::time::Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn a_manager_that_stops_closes_channels_but_ends_no_job() {
    let (mut fabric, nodes) = Fabric::with_nodes();
    let user = fabric.user();
    user.job(&["h0"], QuotaAsk::default()).unwrap();
    nodes["leaf0"].grant();
    fabric.stop_manager();
    assert!(matches!(user.0.recv::<Reply>(Some(LIMIT)), Err(Error::Closed { .. })));
    eventually("nodes notice", || nodes["leaf0"].channel.is_closed());
    assert!(nodes["leaf0"].is_quiet(), "no End was sent");
    let error = Channel::connect(&fabric.url(), Role::User, LIMIT).map(drop).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}
