//! Nodes that have several addresses, with a logical node at one of them.

use std::net::{IpAddr, SocketAddr};

use crate::support::{Rank, Tree, drive, node_at};
use trib_messages::job::NodeGrant;
use trib_messages::reply::Resource;
use trib_wire::{Collective, DataType, RankList, ReduceOp, Signature, WireFormat};

const PORTS: [&str; 2] = ["127.0.0.2:0", "127.0.0.3:0"];

#[test]
fn the_lanes_of_a_job_go_by_ports_of_their_own() {
    let (upper, lower) = (node_at(&PORTS, 1), node_at(&PORTS, 1));
    assert_eq!(upper.addresses().iter().map(SocketAddr::ip).collect::<Vec<_>>(), [ip(PORTS[0]), ip(PORTS[1])]);
    for (job, port) in [(1, 0), (2, 1)] {
        let tree = Tree::new(job, 1, 2);
        let address = ip(PORTS[port]);
        let at_port = |grant: NodeGrant| NodeGrant { address: Some(address), ..grant };
        lower.install(at_port(tree.leaf(0, upper.addresses()[port]))).unwrap();
        let mut root = at_port(tree.root());
        // A child that connected from its other address would not be let in.
        root.children[0].addresses = vec![address];
        upper.install(root).unwrap();
        let mut ranks: Vec<_> = (0..2).map(|rank| Rank::connect(&tree, rank, lower.addresses()[port])).collect();
        let groups: Vec<_> = ranks.iter_mut().map(|rank| rank.create_group(RankList::world(2))).collect();
        // One vector is a fragment, whose answer must come from the address that was asked, and one
        // is streamed.
        for count in [3u64, 50_000] {
            let (collective, dtype, op) = (Collective::Allreduce, DataType::I64, ReduceOp::Sum);
            let signature = Signature { collective, dtype, op, format: WireFormat::Plain, root: 0, count };
            let given = |rank: u64| (0..count).flat_map(|i| (i + rank).to_le_bytes()).collect::<Vec<u8>>();
            let posted = ranks.iter_mut().zip(&groups).zip(0..);
            let operations: Vec<_> = posted.map(|((rank, group), r)| rank.post(*group, signature, given(r))).collect();
            drive(&mut ranks, "an allreduce", |rank| rank.is_done(operations[0]));
            let sum: Vec<u8> = (0..count).flat_map(|i| (2 * i + 1).to_le_bytes()).collect();
            assert!(
                ranks.iter().all(|rank| rank.result(operations[0]).unwrap() == sum),
                "{count} elements at port {port}"
            );
        }
    }
    let counters = lower.counters();
    assert_eq!((counters["workers"], counters["handshakes_opened"]), (2, 4), "a worker for each port");
    assert!(counters["fragments_folded"] > 0 && counters["segments_folded"] > 0, "{counters:#?}");
}

#[test]
fn a_node_that_listens_for_both_families_hears_the_datagrams_of_ipv4_children() {
    let node = node_at(&["[::]:0"], 1);
    let tree = Tree::new(1, 0, 2);
    node.install(tree.root()).unwrap();
    let address = SocketAddr::new([127, 0, 0, 1].into(), node.address().port());
    let mut ranks: Vec<_> = (0..2).map(|rank| Rank::connect(&tree, rank, address)).collect();
    let groups: Vec<_> = ranks.iter_mut().map(|rank| rank.create_group(RankList::world(2))).collect();
    let (collective, dtype, op) = (Collective::Allreduce, DataType::I64, ReduceOp::Sum);
    let signature = Signature { collective, dtype, op, format: WireFormat::Plain, root: 0, count: 3 };
    let posted = ranks.iter_mut().zip(&groups);
    let operations: Vec<_> = posted.map(|(rank, group)| rank.post(*group, signature, [7; 24].to_vec())).collect();
    drive(&mut ranks, "an allreduce", |rank| rank.is_done(operations[0]));
    assert!(ranks.iter().all(|rank| rank.result(operations[0]).unwrap() == [14; 24]));
    let counters = node.counters();
    assert!(counters["fragments_folded"] > 0 && counters["rejected_source"] == 0, "{counters:#?}");
}

#[test]
fn a_port_that_the_node_has_not_is_refused() {
    let node = node_at(&PORTS, 1);
    let address = Some("127.0.0.9".parse().unwrap());
    let refusal = node.install(NodeGrant { address, ..Tree::new(1, 0, 2).root() }).unwrap_err();
    assert_eq!(refusal.resource, Resource::Node);
    assert!(refusal.text.contains("127.0.0.9") && refusal.text.contains("127.0.0.3"), "{refusal}");
}

fn ip(address: &str) -> IpAddr {
    address.parse::<SocketAddr>().unwrap().ip()
}
