//! Nodes that are reached at several addresses, and the lanes that go by them.

use std::net::IpAddr;

use crate::common::{Fabric, Manner, Node};
use trib_messages::job::TicketNode;
use trib_messages::node::ManagerMessage;
use trib_messages::reply::Resource;
use trib_messages::request::QuotaAsk;

const TREE: &str = "[[node]]\nname = \"root\"\naddresses = [\"10.0.2.1\", \"10.1.2.1\"]\ncontrol = \"127.0.0.1\"\n\
    [[node]]\nname = \"leaf\"\nparent = \"root\"\naddresses = [\"10.0.1.1\", \"10.1.1.1\"]\ncontrol = \"127.0.0.1\"\n\
    [[host]]\nname = \"a\"\nleaf = \"leaf\"\naddresses = [\"10.0.0.1\", \"10.1.0.1\"]\n[[host]]\nname = \"b\"\nleaf = \"root\"\n";

fn node(fabric: &Fabric, name: &str, streams: &[&str]) -> Node {
    let node = Node::listening(fabric, name, Manner::Installs, streams);
    assert_eq!(node.next(), ManagerMessage::Registered);
    node
}

#[test]
fn every_lane_is_told_the_port_by_which_it_goes() {
    let fabric = Fabric::serving("topology.toml", TREE);
    let root = node(&fabric, "root", &["10.0.2.1:4000", "10.1.2.1:4001"]);
    // The address at which it listens first is not the first one in the topology.
    let leaf = node(&fabric, "leaf", &["10.1.1.1:4001", "10.0.1.1:4000"]);
    let user = fabric.user();
    let ticket = user.job(&["a", "b"], QuotaAsk { lanes: Some(2), ..QuotaAsk::default() }).unwrap();
    let streams: Vec<String> = ticket.nodes.iter().map(|node| node.primary().stream.to_string()).collect();
    assert_eq!(streams, ["10.0.2.1:4000", "10.0.1.1:4000", "10.1.2.1:4001", "10.1.1.1:4001"]);
    let ip = |text: &str| Some(text.parse::<IpAddr>().unwrap());
    let from: Vec<_> =
        ticket.lanes.iter().map(|lane| lane.leaves.iter().map(|leaf| leaf.address).collect::<Vec<_>>()).collect();
    assert_eq!(from, [[ip("10.0.0.1"), None], [ip("10.1.0.1"), None]]);
    for (port, upper, lower, host) in
        [("10.0.2.1:4000", "10.0.2.1", "10.0.1.1", "10.0.0.1"), ("10.1.2.1:4001", "10.1.2.1", "10.1.1.1", "10.1.0.1")]
    {
        let (above, below) = (root.grant(), leaf.grant());
        assert_eq!((above.address, below.address), (ip(upper), ip(lower)));
        assert_eq!(below.parent.unwrap().candidates[0].stream.to_string(), port);
        let only = |address| Vec::from_iter(ip(address));
        assert_eq!((&above.children[0].addresses, &below.children[0].addresses), (&only(lower), &only(host)));
    }
    let status = user.status();
    assert_eq!(status.nodes[1].further, ["10.0.1.1:4000".parse().unwrap()]);
    let lanes: Vec<_> = status.jobs[0].lanes.iter().map(|lane| (lane.tree, lane.from, lane.to)).collect();
    assert_eq!(lanes, [(0, ip("10.0.0.1"), ip("10.0.1.1")), (0, ip("10.1.0.1"), ip("10.1.1.1"))]);
}

#[test]
fn a_node_that_does_not_listen_at_all_its_ports_is_not_let_in() {
    let fabric = Fabric::serving("topology.toml", TREE);
    for streams in [&["10.0.2.1:4000"][..], &["0.0.0.0:4000"], &["10.0.2.1:4000", "10.3.2.1:4000"]] {
        let node = Node::listening(&fabric, "root", Manner::Installs, streams);
        let ManagerMessage::Refused(refusal) = node.next() else { panic!("let in with {streams:?}") };
        assert_eq!((refusal.resource, refusal.asked, refusal.holder.as_deref()), (Resource::Node, 2, Some("root")));
        assert!(refusal.text.contains("10.1.2.1 too: start it with --listen"), "{refusal}");
    }
    let node = Node::listening(&fabric, "root", Manner::Installs, &["10.0.2.1:4000", "0.0.0.0:1"]);
    let ManagerMessage::Refused(refusal) = node.next() else { panic!("let in") };
    assert_eq!(refusal.resource, Resource::Request, "{refusal}");
}

#[test]
fn a_node_that_is_elsewhere_than_the_topology_says_is_not_let_in() {
    let topology = |node: &str| format!("[[node]]\nname = \"root\"\n{node}\n[[host]]\nname = \"*\"\nleaf = \"root\"\n");
    let refused = |text: &str, stream: &str| {
        let fabric = Fabric::serving("topology.toml", &topology(text));
        match Node::listening(&fabric, "root", Manner::Installs, &[stream]).next() {
            ManagerMessage::Registered => None,
            ManagerMessage::Refused(refusal) => Some(refusal.text),
            other => panic!("{other:?}"),
        }
    };
    // All nodes of these tests call from 127.0.0.1.
    let words = refused("address = \"10.0.0.9\"", "10.0.0.9:4000").unwrap();
    assert!(
        words.contains("calls from 127.0.0.1") && words.contains("10.0.0.9") && words.contains("`control`"),
        "{words}"
    );
    let words = refused("address = \"10.0.0.9\"\ncontrol = \"10.0.0.8\"", "10.0.0.9:4000").unwrap();
    assert!(words.contains("it is at 10.0.0.9, 10.0.0.8"), "{words}");
    let words = refused("control = \"10.0.0.8\"", "127.0.0.1:4000").unwrap();
    assert!(words.contains("calls from 127.0.0.1"), "{words}");
    let words = refused("address = \"127.0.0.1\"", "10.0.0.9:4000").unwrap();
    assert!(words.contains("listens at 10.0.0.9:4000") && words.contains("--listen 127.0.0.1:PORT"), "{words}");
    // It listens everywhere, so its children are sent to where it calls from.
    let words = refused("address = \"10.0.0.9\"\ncontrol = \"127.0.0.1\"", "0.0.0.0:4000").unwrap();
    assert!(words.contains("--listen 10.0.0.9:PORT"), "{words}");
    for (text, stream) in [
        ("", "10.0.0.9:4000"),
        ("address = \"127.0.0.1\"", "0.0.0.0:4000"),
        ("address = \"10.0.0.9\"\ncontrol = \"127.0.0.1\"", "10.0.0.9:4000"),
        ("control = \"127.0.0.1\"", "10.0.0.9:4000"),
    ] {
        assert_eq!(refused(text, stream), None, "{text}");
    }
}

#[test]
fn backups_are_reached_by_the_port_of_the_lane() {
    let fabric = Fabric::serving("topology.toml", &format!("{TREE}[limits]\nbackups = 1\n"));
    let root = node(&fabric, "root", &["10.0.2.1:4000", "10.1.2.1:4001"]);
    let leaf = node(&fabric, "leaf", &["10.0.1.1:4000", "10.1.1.1:4001"]);
    let user = fabric.user();
    let ticket = user.job(&["a", "b"], QuotaAsk { lanes: Some(2), ..QuotaAsk::default() }).unwrap();
    let streams = |node: &TicketNode| node.candidates.iter().map(|candidate| candidate.stream.to_string()).collect();
    let streams: Vec<Vec<String>> = ticket.nodes.iter().map(streams).collect();
    let ports = [["10.0.2.1:4000", "10.0.1.1:4000"], ["10.1.2.1:4001", "10.1.1.1:4001"]];
    assert_eq!(streams, ports.map(|[root, leaf]| [[root, leaf], [leaf, root]]).concat());
    // Backups hear of the job before primaries.
    let (first, own) = (leaf.grant(), root.grant());
    assert_eq!((first.candidate, own.candidate, first.node.0, own.node.0), (1, 1, 0, 1));
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!((first.address, own.address), (Some(ip("10.0.1.1")), Some(ip("10.0.2.1"))));
    // The leaf may be at either of its candidates, and a rank is where it always is.
    assert_eq!(first.children[0].addresses, [ip("10.0.1.1"), ip("10.0.2.1")]);
    assert_eq!(own.children[0].addresses, [ip("10.0.0.1")]);
    let second = leaf.grant();
    assert_eq!((second.candidate, second.lane, second.address), (1, 1, Some(ip("10.1.1.1"))));
}
