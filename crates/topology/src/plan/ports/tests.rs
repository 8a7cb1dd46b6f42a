use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::plan::{Program, plan};

fn fabric(text: &str) -> Topology {
    Topology::parse(text, Path::new("test.toml")).unwrap()
}

/// The lanes of one job over the tree that is best for these hosts.
fn lanes(fabric: &Topology, hosts: &[String], loads: &Loads, count: usize) -> Vec<Plan> {
    let mut lanes = vec![plan(fabric, &Program::flat(hosts), loads).unwrap()];
    while lanes.len() < count {
        let next = lanes[0].beside(fabric, loads, &lanes.iter().collect::<Vec<_>>());
        lanes.push(next);
    }
    lanes
}

fn texts(addresses: impl Iterator<Item = Option<IpAddr>>) -> Vec<String> {
    addresses.map(|address| address.map_or_else(|| "-".to_owned(), |address| address.to_string())).collect()
}

const TREE: &str = "[[node]]\nname = \"top\"\naddresses = [\"10.0.2.1\", \"10.1.2.1\"]\n\
    [[node]]\nname = \"leaf\"\nparent = \"top\"\naddresses = [\"10.0.1.1\", \"10.1.1.1\", \"10.2.1.1\"]\n\
    [[node]]\nname = \"old\"\nparent = \"top\"\naddress = \"10.0.1.9\"\n\
    [[host]]\nname = \"a\"\nleaf = \"leaf\"\naddresses = [\"10.0.0.1\", \"10.1.0.1\"]\n[[host]]\nname = \"*\"\nleaf = \"old\"\n";

#[test]
fn in_a_given_tree_each_lane_goes_by_the_next_port_of_whoever_has_several() {
    let fabric = fabric(TREE);
    let lanes = lanes(&fabric, &["a".into(), "b".into()], &fabric.idle_loads(), 4);
    let node = |node: usize| texts(lanes.iter().map(|lane| lane.nodes[node].address));
    assert_eq!(node(0), ["10.0.2.1", "10.1.2.1", "10.0.2.1", "10.0.2.1"]);
    assert_eq!(node(1), ["10.0.1.1", "10.1.1.1", "10.2.1.1", "10.0.1.1"]);
    assert_eq!(node(2), ["-"; 4], "one address tells only where it connects from");
    let child = |at: usize| texts(lanes.iter().map(|lane| lane.nodes[0].children[at].address));
    assert_eq!((child(0), child(1)), (node(1), vec!["10.0.1.9".to_owned(); 4]));
    let rank = |rank: usize| texts(lanes.iter().map(|lane| lane.leaves[rank].address));
    assert_eq!(
        (rank(0), rank(1)),
        (["10.0.0.1", "10.1.0.1", "10.0.0.1", "10.0.0.1"].map(String::from).to_vec(), vec!["-".into(); 4])
    );
}

#[test]
fn a_host_leaves_by_its_ports_to_nodes_without() {
    let fabric = fabric(
        "[[node]]\nname = \"n\"\n[[host]]\nname = \"a\"\nleaf = \"n\"\naddresses = [\"10.0.0.1\", \"10.1.0.1\"]\n",
    );
    let lanes = lanes(&fabric, &["a".into()], &fabric.idle_loads(), 3);
    let from = texts(lanes.iter().map(|lane| lane.nodes[0].children[0].address));
    assert_eq!(from, ["10.0.0.1", "10.1.0.1", "10.0.0.1"]);
    assert!(lanes.iter().all(|lane| lane.nodes[0].address.is_none()));
}

#[test]
fn the_first_port_is_the_one_that_others_leave_free() {
    let text = "[[switch]]\nname = \"s\"\naddresses = [\"10.0.1.1\", \"10.1.1.1\"]\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
        [[host]]\nname = \"c\"\n[[link]]\nends = [\"a,b,c\", \"s\"]\ncount = 2\n";
    let fabric = fabric(text);
    let mut loads = fabric.idle_loads();
    let other = plan(&fabric, &Program::flat(&["a".into(), "b".into()]), &loads).unwrap();
    loads.add(other.tree.as_ref().unwrap());
    // For host c both links are equally good.
    let lanes = lanes(&fabric, &["b".into(), "c".into()], &loads, 2);
    assert_eq!((other.port, lanes[0].port, lanes[1].port), (0, 1, 0));
    let links: BTreeSet<usize> = lanes[0].tree.as_ref().unwrap().leaves.iter().map(|leaf| leaf.parent.1).collect();
    assert!(links.iter().all(|link| loads.link(*link) == 0));
}

/// A graph in which host i has `links[i]` links to one of two leaves below a spine with `trunks`
/// links to either, and each node has `ports` ports.
fn graph(links: &[usize], trunks: usize, ports: usize) -> String {
    let list = |lead: &str, count: usize| {
        let addresses: Vec<String> = (0..count).map(|port| format!("\"10.{port}.{lead}\"")).collect();
        if count > 1 { format!("addresses = [{}]\n", addresses.join(", ")) } else { String::new() }
    };
    let mut text = String::new();
    for (at, name) in ["l0", "l1", "s"].iter().enumerate() {
        write!(text, "[[switch]]\nname = \"{name}\"\n{}", list(&format!("1.{at}"), ports)).unwrap();
    }
    for (at, count) in links.iter().enumerate() {
        write!(text, "[[host]]\nname = \"h{at}\"\n{}", list(&format!("0.{at}"), *count)).unwrap();
    }
    for (at, count) in links.iter().enumerate() {
        write!(text, "[[link]]\nends = [\"h{at}\", \"l{}\"]\ncount = {count}\n", at % 2).unwrap();
    }
    write!(text, "[[link]]\nends = [\"l0,l1\", \"s\"]\ncount = {trunks}\n").unwrap();
    text
}

proptest! {
    #[test]
    fn lanes_of_a_tree_fold_alike_by_ports_that_differ(
        links in prop::collection::vec(1usize..4, 1..6),
        (trunks, ports) in (1usize..4, 1usize..4),
        count in 1usize..9,
        busy in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let fabric = fabric(&graph(&links, trunks, ports));
        let (graph, hosts): (_, Vec<String>) = (fabric.graph().unwrap(), (0..links.len()).map(|at| format!("h{at}")).collect());
        let mut loads = fabric.idle_loads();
        for pick in &busy {
            loads.add_copies(&crate::trees::Copies { links: vec![(pick.index(graph.links().len()), 1)], nodes: Vec::new() });
        }
        let lanes = lanes(&fabric, &hosts, &loads, count);
        let mut on_link: BTreeMap<usize, usize> = BTreeMap::new();
        let mut on_port: BTreeMap<usize, usize> = BTreeMap::new();
        for lane in &lanes {
            prop_assert!(lane.folds_as(&lanes[0]));
            *on_port.entry(lane.port).or_default() += 1;
            let tree = lane.tree.as_ref().unwrap();
            let trunks = tree.branches.iter().filter_map(|branch| Some((branch.switch, branch.parent?)));
            let trunks = trunks.map(|(switch, (above, link))| (switch, above, link));
            let edges: Vec<_> = tree.leaves.iter().map(|leaf| (leaf.host, leaf.parent.0, leaf.parent.1)).chain(trunks).collect();
            let distinct: BTreeSet<usize> = edges.iter().map(|(_, _, link)| *link).collect();
            prop_assert_eq!(distinct.len(), edges.len(), "no link twice");
            for (lower, above, link) in edges {
                prop_assert_eq!(graph.links()[link].other(lower), tree.branches[above].switch);
                *on_link.entry(link).or_default() += 1;
                if ports > 1 {
                    let nth = parallel(graph, lower, tree.branches[above].switch).position(|other| other == link);
                    let of = parallel(graph, lower, tree.branches[above].switch).count();
                    prop_assert_eq!(nth, Some(lane.port % of), "a port leads to its own link");
                }
            }
            for (index, node) in lane.at_nodes() {
                let known = &fabric.nodes()[index].addresses;
                prop_assert_eq!(node.address, known.get(lane.port).copied());
                for child in &node.children {
                    if let ChildKind::Rank(rank) = child.kind {
                        let host = &fabric.hosts()[rank.0 as usize];
                        let nth = tree.leaves[rank.0 as usize].parent.1;
                        let nth = graph.links_at(graph.find(&host.name).unwrap()).iter().position(|link| *link == nth);
                        prop_assert_eq!(child.address, host.addresses.get(nth.unwrap()).copied());
                    }
                }
            }
        }
        // No port has two lanes more than another. Below nodes with one address the same holds for
        // parallel links.
        let spread = |uses: Vec<usize>| uses.iter().max().unwrap() - uses.iter().min().unwrap();
        prop_assert!(spread((0..ports).map(|port| on_port.get(&port).copied().unwrap_or(0)).collect()) <= 1);
        if ports == 1 {
            let tree = lanes[0].tree.as_ref().unwrap();
            for leaf in &tree.leaves {
                let all = graph.links_at(leaf.host).iter().map(|link| on_link.get(link).copied().unwrap_or(0)).collect();
                prop_assert!(spread(all) <= 1);
            }
        }
    }
}
