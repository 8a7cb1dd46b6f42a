//! Jobs whose ranks share hosts: nodes of their trees that live in ranks.

use std::net::SocketAddr;

use trib_messages::job::{JobTicket, NodeGrant};
use trib_messages::levels::Levels;
use trib_messages::policy::Recovery;
use trib_messages::reply::{Refusal, Reply};
use trib_messages::request::{JobRequest, QuotaAsk, Request};
use trib_wire::ids::{ChildKind, NodeId};

use crate::common::{Fabric, LIMIT, Manner, Node, TWO_LEAVES, eventually, verdict, with_deputies};

const NAMES: [&str; 3] = ["root", "leaf0", "leaf1"];

/// The ranks' hosts, and the ports at which they listen, if they do.
fn request(ranks: &[(&str, u16)], ask: QuotaAsk) -> JobRequest {
    let stream = |port: u16| (port > 0).then(|| SocketAddr::from(([127, 0, 0, 1], port)));
    let hosts = ranks.iter().map(|(host, _)| host.to_string()).collect();
    let deputies = ranks.iter().map(|(_, port)| stream(*port)).collect();
    JobRequest { hosts, deputies, ask, ..with_deputies([]) }
}

fn serving(more: &str) -> (Fabric, [Node; 3]) {
    let fabric = Fabric::serving("topology.toml", &format!("{TWO_LEAVES}{more}"));
    let nodes = NAMES.map(|name| fabric.node(name, Manner::Installs));
    (fabric, nodes)
}

fn job(fabric: &Fabric, ranks: &[(&str, u16)], ask: QuotaAsk) -> Result<JobTicket, Refusal> {
    let user = fabric.user();
    verdict(user.0.ask::<_, Reply>(&Request::RequestJob(request(ranks, ask)), LIMIT).unwrap())
}

/// A line for each logical node: its candidates.
fn candidates(ticket: &JobTicket) -> Vec<String> {
    let names = |node: &trib_messages::job::TicketNode| -> Vec<String> {
        node.candidates.iter().map(|candidate| candidate.name.clone()).collect()
    };
    ticket.nodes.iter().map(|node| format!("{}: {}", node.node.0, names(node).join(", "))).collect()
}

/// The ranks of a ticket, by the node above each.
fn above(ticket: &JobTicket) -> Vec<u16> {
    ticket.lanes[0].leaves.iter().map(|leaf| leaf.node.0).collect()
}

const SIX: [(&str, u16); 6] = [("x", 11), ("y", 12), ("x", 13), ("y", 14), ("x", 15), ("x", 16)];

#[test]
fn the_ranks_of_a_host_hang_below_a_node_in_the_lowest_of_them() {
    let (fabric, nodes) = serving("");
    let ticket = job(&fabric, &SIX, QuotaAsk::default()).unwrap();
    let [_, _, leaf, ..] = &candidates(&ticket)[..] else { panic!("{:?}", candidates(&ticket)) };
    assert!(leaf.starts_with("2: rank 0 on x, rank 2 on x, rank 4 on x"), "{:?}", candidates(&ticket));
    assert!(candidates(&ticket)[4].starts_with("4: rank 1 on y, rank 3 on y"), "{:?}", candidates(&ticket));
    assert_eq!(above(&ticket), [2, 4, 2, 4, 2, 2]);

    // Each of its candidates has a grant with keys of its own, and aggregation nodes have none.
    let own: Vec<&NodeGrant> =
        ticket.deputies.iter().map(|deputy| &deputy.grant).filter(|grant| grant.node == NodeId(2)).collect();
    let told: Vec<(u16, &[u32], &str)> =
        own.iter().map(|grant| (grant.candidate, &grant.in_ranks[..], grant.name.as_str())).collect();
    assert_eq!(told, [0, 1, 2].map(|candidate| (candidate, &[0, 2, 4][..], "host x")));
    assert!(own.windows(2).all(|pair| pair[0].key.0 != pair[1].key.0));
    assert_eq!(own[0].children.len(), 4);
    for leaf in &nodes[1..] {
        let grant = leaf.grant();
        let [child] = &grant.children[..] else { panic!("{:?}", grant.children) };
        assert!(matches!(child.kind, ChildKind::Node(NodeId(2 | 4))) && child.in_rank, "{child:?}");
        assert!(child.addresses.is_empty(), "a rank calls from where it likes");
    }
}

#[test]
fn who_asks_for_no_level_and_who_cannot_go_on_has_none() {
    let (fabric, _nodes) = serving("");
    let flat = |ask: QuotaAsk| above(&job(&fabric, &SIX, ask).unwrap());
    let none = flat(QuotaAsk { levels: Some(Levels::None), ..QuotaAsk::default() });
    assert_eq!(none, [1, 1, 1, 2, 2, 2]);
    let notify = QuotaAsk { recovery: Some(Recovery::Notify), ..QuotaAsk::default() };
    assert_eq!(flat(notify), none);
    assert_eq!(flat(QuotaAsk { deputies: Some(0), ..QuotaAsk::default() }), none);
}

#[test]
fn a_host_with_one_rank_that_listens_is_no_level_and_others_are() {
    let (fabric, _nodes) = serving("");
    let mut ranks = SIX;
    ranks[1].1 = 0;
    let ticket = job(&fabric, &ranks, QuotaAsk::default()).unwrap();
    assert!(candidates(&ticket).iter().any(|line| line.contains("rank 0 on x, rank 2 on x")));
    assert!(!candidates(&ticket).iter().any(|line| line.contains("rank 1 on y")), "{:?}", candidates(&ticket));
    let above = above(&ticket);
    assert!(above[0] == above[2] && above[1] != above[0], "{above:?}");
}

#[test]
fn a_host_that_has_too_little_memory_is_no_level() {
    let (fabric, _nodes) = serving("deputy_memory = { default = 1000, maximum = 1000 }\nbackups = 1\n");
    let ticket = job(&fabric, &SIX, QuotaAsk::default()).unwrap();
    assert_eq!(above(&ticket), [1, 1, 1, 2, 2, 2]);
    assert!(ticket.deputies.is_empty());
}

#[test]
fn a_job_of_one_host_needs_no_aggregation_node() {
    let fabric = Fabric::serving("topology.toml", TWO_LEAVES);
    let lone = [("x", 11), ("x", 12), ("x", 13)];
    let user = fabric.user();
    let ticket =
        verdict(user.0.ask::<_, Reply>(&Request::RequestJob(request(&lone, QuotaAsk::default())), LIMIT).unwrap());
    let ticket = ticket.unwrap();
    assert_eq!(candidates(&ticket), ["0: rank 0 on x, rank 1 on x, rank 2 on x"]);
    assert!(ticket.recovers && ticket.deputies.iter().all(|deputy| deputy.grant.root.is_some()));
    let bytes = trib_messages::memory::Reservation::of(&ticket.limits, 3).bytes(&ticket.limits);
    assert!(bytes <= 1 << 30, "its limits are such that it has room in a rank: {bytes}");
    assert_eq!(fabric.user().jobs().live[0].moved, []);
    drop(user);
    eventually("the job ends, as no rank is anywhere", || fabric.user().jobs().live.is_empty());
}
