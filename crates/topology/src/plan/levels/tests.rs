use proptest::prelude::*;
use trib_messages::job::Attachment;
use trib_messages::via::Via;
use trib_wire::ids::{ChildIndex, ChildKind, NodeId};

use super::*;
use crate::graph::LinkRate;
use crate::graph::tests::shapes;
use crate::plan::tests::{GRAPH, PAIR, STAR, check, fabrics, named, picture, topology, two_leaves};
use crate::plan::{Plan, plan};
use crate::topology::Topology;
use crate::trees::Loads;

// The tree of a program that is alone on the fabric.
fn tree(fabric: &Topology, hosts: &[&str], domains: &[Option<u16>], levels: Levels) -> Plan {
    let hosts = named(hosts);
    let program = Program { hosts: &hosts, domains, levels, able: &[] };
    let plan = plan(fabric, &program, &fabric.idle_loads()).unwrap();
    check(fabric, &program, &plan);
    plan
}

fn hosts(fabric: &Topology, hosts: &[&str]) -> Vec<String> {
    picture(&tree(fabric, hosts, &[], Levels::Host))
}

// Two leaves with two hosts each; c has an address.
fn four_hosts() -> Topology {
    let host = |name: &str, leaf: &str| format!("[[host]]\nname = \"{name}\"\nleaf = \"{leaf}\"\n");
    let text = host("a", "leaf0") + &host("b", "leaf0") + &host("c", "leaf1") + "address = \"10.0.0.3\"\n";
    two_leaves(&(text + &host("d", "leaf1")))
}

fn flat() -> Topology {
    topology("[[node]]\nname = \"n\"\n[[host]]\nname = \"*\"\nleaf = \"n\"\n")
}

#[test]
fn ranks_in_blocks_in_turns_and_at_random_meet_on_their_hosts() {
    let fabric = four_hosts();
    let block = ["n0 root: n1(0-3) n4(4-7)", "n1 leaf0: n2(0-1) n3(2-3)", "n2 host a: r0 r1", "n3 host b: r2 r3"];
    let rest = ["n4 leaf1: n5(4-5) n6(6-7)", "n5 host c: r4 r5", "n6 host d: r6 r7"];
    assert_eq!(hosts(&fabric, &["a", "a", "b", "b", "c", "c", "d", "d"]), [&block[..], &rest].concat());
    let cyclic = hosts(&fabric, &["a", "b", "c", "d", "a", "b", "c", "d"]);
    assert_eq!(cyclic[1..4], ["n1 leaf0: n2(0-4/4) n3(1-5/4)", "n2 host a: r0 r4", "n3 host b: r1 r5"]);
    // A host's node stands where its lowest rank would.
    let random = hosts(&fabric, &["d", "a", "b", "a", "d", "b", "a"]);
    let expected = [
        "n0 root: n1(1-3,5-6) n4(0-4/4)",
        "n1 leaf0: n2(1-3/2,6) n3(2-5/3)",
        "n2 host a: r1 r3 r6",
        "n3 host b: r2 r5",
        "n4 leaf1: n5(0-4/4)",
        "n5 host d: r0 r4",
    ];
    assert_eq!(random, expected);
}

#[test]
fn nodes_come_first_then_hosts_and_single_ranks_by_their_lowest_rank() {
    let fabric = topology(
        "[[node]]\nname = \"top\"\n[[node]]\nname = \"low\"\nparent = \"top\"\n[[host]]\nname = \"x\"\nleaf = \"low\"\n\
         [[host]]\nname = \"*\"\nleaf = \"top\"\n",
    );
    let expected = ["n0 top: n1(5) r0 n2(1-4/3) r2 n3(3-6/3)", "n1 low: r5", "n2 host b: r1 r4", "n3 host d: r3 r6"];
    assert_eq!(hosts(&fabric, &["a", "b", "c", "d", "b", "x", "d"]), expected);
}

#[test]
fn only_equal_names_are_one_host() {
    let plan = tree(&topology(GRAPH), &["b0", "a1.cluster", "c", "a1", "b0"], &[], Levels::Host);
    let expected = ["n0 spine0: n1(1-3/2) n2(0-4/4) r2", "n1 leaf0: r1 r3", "n2 leaf1: n3(0-4/4)", "n3 host b0: r0 r4"];
    assert_eq!(picture(&plan), expected);
    assert_eq!(plan.tree.unwrap().copies().links.iter().map(|(_, streams)| *streams).max(), Some(1));
}

#[test]
fn a_host_is_one_child_with_its_own_address_and_its_ranks_connect_from_anywhere_on_it() {
    let plan = tree(&four_hosts(), &["c", "a", "c"], &[], Levels::Host);
    let (leaf, host) = (&plan.nodes[2], &plan.nodes[3]);
    assert_eq!((&leaf.name[..], &host.name[..]), ("leaf1", "host c"));
    assert_eq!((host.home, host.parent), (Home::Rank(Rank(0)), Some((leaf.id, ChildIndex(0)))));
    assert_eq!(leaf.children[0].kind, ChildKind::Node(host.id));
    assert_eq!(leaf.children[0].address, Some("10.0.0.3".parse().unwrap()));
    assert!(host.children.iter().all(|child| child.address.is_none()));
    let attached =
        |node, child| Attachment { node: NodeId(node), child: ChildIndex(child), address: None, via: Via::Tcp };
    assert_eq!(plan.leaves, [attached(3, 0), attached(1, 0), attached(3, 1)]);
}

#[test]
fn the_hosts_of_an_entry_with_two_leaves_are_dealt_whole() {
    let fabric = two_leaves(STAR);
    // Each host is one child, however many ranks it has.
    let dealt = hosts(&fabric, &["x", "y", "x", "x", "z", "x", "z", "w", "w", "x"]);
    let expected = [
        "n0 root: n1(0-3,5-9/4) n3(4-6/2,7-8)",
        "n1 leaf0: n2(0-2/2,3-5/2,9) r1",
        "n2 host x: r0 r2 r3 r5 r9",
        "n3 leaf1: n4(4-6/2) n5(7-8)",
        "n4 host z: r4 r6",
        "n5 host w: r7 r8",
    ];
    assert_eq!(dealt, expected);
}

#[test]
fn a_lone_host_has_its_node_as_the_root_and_needs_no_other() {
    assert_eq!(hosts(&two_leaves(PAIR), &["b", "b", "b"]), ["n0 host b: r0 r1 r2"]);
    assert_eq!(hosts(&two_leaves(STAR), &["x"; 5]), ["n0 host x: r0 r1 r2 r3 r4"]);
    // Nothing of it is on a link, so there need not be a way to a node.
    let bare = topology(
        "[[switch]]\nname = \"s[0-1]\"\nnode = false\n[[host]]\nname = \"h\"\nswitch = \"s0\"\n\
         [[server]]\nname = \"an\"\nswitch = \"s1\"\nrate = \"1gbit\"\n",
    );
    let plan = tree(&bare, &["h"; 2], &[Some(0), Some(1)], Levels::Numa);
    assert_eq!((picture(&plan), plan.tree.is_none()), (vec!["n0 host h: r0 r1".to_owned()], true));
    // One rank shares with nobody.
    assert_eq!(hosts(&two_leaves(PAIR), &["b"]), ["n0 leaf1: r0"]);
}

#[test]
fn more_than_64_ranks_of_a_host_become_a_cascade_there() {
    let alone = tree(&flat(), &["h"; 130], &[], Levels::Host);
    let ranks: Vec<String> = alone.nodes[0].children.iter().map(|child| child.ranks.to_string()).collect();
    assert_eq!((alone.nodes.len(), ranks), (4, ["0-42", "43-85", "86-129"].map(String::from).to_vec()));
    assert!(alone.nodes.iter().all(|node| node.name == "host h" && node.home == Home::Rank(Rank(0))));
    // A node with 65 hosts has a cascade as it has one for 65 ranks.
    let many: Vec<String> = (0..130).map(|rank| format!("h{}", rank % 65)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let plan = tree(&flat(), &many, &[], Levels::Host);
    assert_eq!(plan.at_nodes().map(|(_, node)| node.children.len()).collect::<Vec<_>>(), [2, 32, 33]);
    assert_eq!(plan.nodes.len(), 3 + 65);
}

#[test]
fn domains_with_several_ranks_are_nodes_below_their_host() {
    let domains = [Some(0), None, Some(1), Some(0), Some(2), Some(1), Some(0), None, Some(3)];
    let hosts = ["a", "b", "a", "a", "a", "a", "b", "a", "b"];
    let plan = tree(&flat(), &hosts, &domains, Levels::Numa);
    let expected = [
        "n0 n: n1(0-2/2,3-5,7) n4(1-6/5,8)",
        "n1 host a: n2(0-3/3) n3(2-5/3) r4 r7",
        "n2 host a domain 0: r0 r3",
        "n3 host a domain 1: r2 r5",
        "n4 host b: r1 r6 r8",
    ];
    assert_eq!(picture(&plan), expected);
    assert!(plan.nodes[1..4].iter().all(|node| node.home == Home::Rank(Rank(0))), "all in one process");
    // Ranks that are bound nowhere, or of which nothing is known, are one domain.
    let known = [Some(7), None, None, Some(7)];
    let expected = ["n0 host a: n1(0-3/3) n2(1-2,4)", "n1 host a domain 7: r0 r3", "n2 host a unbound: r1 r2 r4"];
    assert_eq!(picture(&tree(&flat(), &["a"; 5], &known, Levels::Numa)), expected);
    for alike in [&[][..], &[Some(3); 3], &[Some(3); 2], &[Some(1), Some(2), Some(3)]] {
        let plan = tree(&flat(), &["a"; 3], alike, Levels::Numa);
        let nodes = if alike.len() == 2 { 2 } else { 1 };
        assert_eq!(plan.nodes.len(), nodes, "{alike:?}");
    }
    assert_eq!(tree(&flat(), &hosts, &domains, Levels::Host), tree(&flat(), &hosts, &[], Levels::Host));
}

#[test]
fn a_link_of_a_host_leads_to_its_node_and_none_leads_further() {
    let text = "[[node]]\nname = \"n\"\n[[host]]\nname = \"*\"\nleaf = \"n\"\nrate = \"25gbit\"\n";
    let hosts = named(&["a", "b", "a", "a", "a"]);
    let domains = [Some(0), None, Some(0), Some(1), Some(1)];
    let fabric = topology(text);
    let program = Program { hosts: &hosts, domains: &domains, levels: Levels::Numa, able: &[] };
    let plan = plan(&fabric, &program, &Loads::default()).unwrap();
    let ways = plan.ways(&fabric, &hosts);
    let told: Vec<Vec<(Option<&str>, bool)>> =
        ways.iter().map(|ways| ways.iter().map(|way| (way.host.as_deref(), way.rate.is_some())).collect()).collect();
    let domain = vec![(Some("a"), false)];
    assert_eq!(told, [vec![(Some("a"), true), (Some("b"), true)], vec![(None, false); 2], domain.clone(), domain]);
}

#[test]
fn ten_thousand_ranks_of_which_eight_share_a_host_get_a_node_for_each_host_and_domain() {
    let mut text = String::from("[[node]]\nname = \"root\"\n");
    (0..40).for_each(|leaf| text += &format!("[[node]]\nname = \"l{leaf}\"\nparent = \"root\"\n"));
    (0..1250).for_each(|host| text += &format!("[[host]]\nname = \"h{host}\"\nleaf = \"l{}\"\n", host % 40));
    let (fabric, hosts) = (topology(&text), (0..10_000).map(|rank| format!("h{}", rank % 1250)).collect::<Vec<_>>());
    let domains: Vec<Option<u16>> = (0..10_000u32).map(|rank| Some((rank / 5_000) as u16)).collect();
    for (levels, below) in [(Levels::None, 160), (Levels::Host, 1250), (Levels::Numa, 3 * 1250)] {
        let program = Program { hosts: &hosts, domains: &domains, levels, able: &[] };
        let plan = plan(&fabric, &program, &Loads::default()).unwrap();
        check(&fabric, &program, &plan);
        assert_eq!(plan.nodes.len(), 1 + 40 + below);
    }
}

// Which processes' nodes are below which, and in which order, of those at home in ranks.
fn at_ranks(plan: &Plan) -> Vec<(String, Vec<Vec<u32>>)> {
    let nodes = plan.nodes.iter().filter(|node| node.home.node().is_none());
    let ranks = |node: &crate::PlanNode| {
        node.children.iter().map(|child| child.ranks.iter().map(|rank| rank.0).collect()).collect()
    };
    let mut nodes: Vec<_> = nodes.map(|node| (node.name.clone(), ranks(node))).collect();
    nodes.sort();
    nodes
}

fn domains() -> impl Strategy<Value = Vec<Option<u16>>> {
    prop::collection::vec(prop::option::of(0u16..3), 0..400)
}

proptest! {
    #[test]
    fn every_plan_with_levels_keeps_its_promises((text, hosts) in fabrics(), domains in domains()) {
        let fabric = topology(&text);
        for levels in [Levels::Host, Levels::Numa] {
            let program = Program { hosts: &hosts, domains: &domains, levels, able: &[] };
            let first = plan(&fabric, &program, &Loads::default()).unwrap();
            check(&fabric, &program, &first);
            prop_assert_eq!(&plan(&fabric, &program, &Loads::default()).unwrap(), &first);
        }
    }

    #[test]
    fn levels_change_nothing_where_no_host_has_two_ranks(
        (text, hosts) in fabrics(),
        domains in domains(),
    ) {
        let fabric = topology(&text);
        let alone: BTreeMap<&String, ()> = hosts.iter().map(|host| (host, ())).collect();
        let hosts: Vec<String> = alone.into_keys().rev().cloned().collect();
        let planned = |levels| plan(&fabric, &Program { hosts: &hosts, domains: &domains, levels, able: &[] }, &Loads::default());
        prop_assert_eq!(planned(Levels::None), planned(Levels::Numa));
    }

    #[test]
    fn what_is_below_a_host_depends_on_the_program_alone(
        shape in shapes(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..100),
        domains in domains(),
    ) {
        let fabric = topology(&shape.graph(LinkRate::DEFAULT).unwrap().to_toml());
        let hosts: Vec<String> = picks.iter().map(|pick| pick.get(fabric.hosts()).name.clone()).collect();
        let program = Program { hosts: &hosts, domains: &domains, levels: Levels::Numa, able: &[] };
        let mut loads = fabric.idle_loads();
        let first = plan(&fabric, &program, &loads).unwrap();
        check(&fabric, &program, &first);
        let expected = at_ranks(&first);
        first.tree.iter().for_each(|tree| loads.add(tree));
        let second = plan(&fabric, &program, &loads).unwrap();
        check(&fabric, &program, &second);
        prop_assert_eq!(at_ranks(&second), &expected[..]);
        prop_assert_eq!(at_ranks(&plan(&flat(), &program, &Loads::default()).unwrap()), expected);
    }
}
