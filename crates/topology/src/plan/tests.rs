use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use trib_messages::levels::Levels;

use super::*;
use crate::graph::tests::shapes;
use crate::graph::{LinkRate, Shape};

pub(super) fn topology(text: &str) -> Topology {
    Topology::parse(text, Path::new("test.toml")).unwrap()
}

fn plan(topology: &Topology, hosts: &[String]) -> Result<Plan, PlanError> {
    super::plan(topology, &Program::flat(hosts), &topology.idle_loads())
}

pub(super) fn two_leaves(hosts: &str) -> Topology {
    topology(&format!(
        "[[node]]\nname = \"top\"\n[[node]]\nname = \"root\"\nparent = \"top\"\n[[node]]\nname = \"leaf0\"\nparent = \"root\"\n\
         [[node]]\nname = \"leaf1\"\nparent = \"root\"\n{hosts}"
    ))
}

pub(super) fn named(hosts: &[&str]) -> Vec<String> {
    hosts.iter().map(|host| host.to_string()).collect()
}

// "leaf0: r0 r1" for each node, as a reader would draw it.
pub(super) fn picture(plan: &Plan) -> Vec<String> {
    let child = |child: &PlanChild| match child.kind {
        ChildKind::Rank(rank) => rank.to_string(),
        ChildKind::Node(node) => format!("{node}({})", child.ranks),
    };
    let line = |node: &PlanNode| {
        let children: Vec<String> = node.children.iter().map(child).collect();
        format!("{} {}: {}", node.id, node.name, children.join(" "))
    };
    plan.nodes.iter().map(line).collect()
}

pub(super) const STAR: &str = "[[host]]\nname = \"*\"\nleaves = [\"leaf0\", \"leaf1\"]\n";
pub(super) const PAIR: &str =
    "[[host]]\nname = \"a\"\nleaf = \"leaf0\"\naddress = \"10.0.0.1\"\n[[host]]\nname = \"b\"\nleaf = \"leaf1\"\n";

#[test]
fn ranks_of_a_host_with_two_leaves_are_spread_in_blocks() {
    let plan = plan(&two_leaves(STAR), &named(&["x"; 5])).unwrap();
    assert_eq!(picture(&plan), ["n0 root: n1(0-2) n2(3-4)", "n1 leaf0: r0 r1 r2", "n2 leaf1: r3 r4"]);
    assert_eq!(plan.leaves[3], Attachment { node: NodeId(2), child: ChildIndex(0), address: None, via: Via::Tcp });
}

#[test]
fn alternating_hosts_stay_short_lists() {
    let plan = plan(&two_leaves(PAIR), &named(&["b", "a", "b", "a"])).unwrap();
    assert_eq!(picture(&plan), ["n0 root: n1(1-3/2) n2(0-2/2)", "n1 leaf0: r1 r3", "n2 leaf1: r0 r2"]);
    let addresses: Vec<_> = plan.nodes[1].children.iter().map(|child| child.address).collect();
    assert_eq!(addresses, [Some("10.0.0.1".parse().unwrap()); 2]);
    assert_eq!(plan.nodes[2].children[0].address, None);
}

#[test]
fn the_tree_is_trimmed_to_the_lowest_common_node() {
    let plan = plan(&two_leaves(PAIR), &named(&["b", "b"])).unwrap();
    assert_eq!(picture(&plan), ["n0 leaf1: r0 r1"]);
}

#[test]
fn nodes_with_one_child_stay_where_packets_pass() {
    let chain = topology(
        "[[node]]\nname = \"r\"\n[[node]]\nname = \"m\"\nparent = \"r\"\n[[node]]\nname = \"l\"\nparent = \"m\"\n\
         [[host]]\nname = \"a\"\nleaf = \"l\"\n[[host]]\nname = \"b\"\nleaf = \"r\"\n",
    );
    let plan = plan(&chain, &named(&["b", "a"])).unwrap();
    assert_eq!(picture(&plan), ["n0 r: n1(1) r0", "n1 m: n2(1)", "n2 l: r1"]);
}

#[test]
fn more_than_64_ranks_at_one_node_become_a_cascade_there() {
    let flat = topology("[[node]]\nname = \"n\"\n[[host]]\nname = \"*\"\nleaf = \"n\"\n");
    let small = plan(&flat, &named(&["h"; 64])).unwrap();
    assert_eq!(small.nodes.len(), 1);
    let plan = plan(&flat, &named(&["h"; 130])).unwrap();
    let root = &plan.nodes[0];
    assert_eq!(root.children.iter().map(|c| c.ranks.to_string()).collect::<Vec<_>>(), ["0-42", "43-85", "86-129"]);
    assert!(plan.nodes.iter().all(|node| node.name == "n"));
}

#[test]
fn what_cannot_be_planned_says_why() {
    let fabric = two_leaves(PAIR);
    assert_eq!(plan(&fabric, &[]).unwrap_err(), PlanError::NoRanks);
    let error = plan(&fabric, &named(&["a", "zz"])).unwrap_err();
    assert_eq!(error, PlanError::UnknownHost { rank: 1, host: "zz".into() });
    assert!(error.to_string().contains("rank 1 runs on host `zz`"));
}

#[test]
fn ten_thousand_ranks_are_planned() {
    let mut text = String::from("[[node]]\nname = \"root\"\n");
    for leaf in 0..40 {
        text += &format!("[[node]]\nname = \"l{leaf}\"\nparent = \"root\"\n");
    }
    for host in 0..1250 {
        text += &format!("[[host]]\nname = \"h{host}\"\nleaf = \"l{}\"\n", host % 40);
    }
    let fabric = topology(&text);
    let hosts: Vec<String> = (0..10_000).map(|rank| format!("h{}", rank % 1250)).collect();
    let plan = plan(&fabric, &hosts).unwrap();
    check(&fabric, &Program::flat(&hosts), &plan);
}

// What every plan promises, stated without looking at how plans are made.
pub(super) fn check(fabric: &Topology, program: &Program<'_>, plan: &Plan) {
    let hosts = program.hosts;
    assert_eq!(plan.leaves.len(), hosts.len());
    let mut parents = vec![0; plan.nodes.len()];
    let host = |rank: Rank| &hosts[rank.0 as usize];
    let entry = |rank: Rank| &fabric.hosts()[fabric.host_index(host(rank)).unwrap()];
    for (i, node) in plan.nodes.iter().enumerate() {
        assert_eq!(usize::from(node.id.0), i);
        match node.home {
            Home::Node(index) => assert_eq!(node.name, fabric.nodes()[index].name),
            Home::Rank(lead) => assert!(node.name.starts_with(&format!("host {}", host(lead)))),
        }
        assert!((1..=CHILDREN_MAX).contains(&node.children.len()));
        for (position, child) in node.children.iter().enumerate() {
            let index = ChildIndex(position as u16);
            match child.kind {
                ChildKind::Rank(rank) => {
                    assert_eq!(
                        plan.leaves[rank.0 as usize],
                        Attachment { node: node.id, child: index, address: None, via: Via::Tcp }
                    );
                    assert_eq!(child.ranks, RankList::from_ranks([rank.0]));
                    match node.home {
                        Home::Node(index) => {
                            assert!(fabric.graph().is_some() || entry(rank).leaves.contains(&index));
                            assert_eq!(child.address, entry(rank).addresses.first().copied());
                        }
                        Home::Rank(lead) => assert_eq!((host(rank), child.address), (host(lead), None)),
                    }
                }
                ChildKind::Node(id) => {
                    let below = &plan.nodes[usize::from(id.0)];
                    assert!(id > node.id);
                    assert_eq!(below.parent, Some((node.id, index)));
                    match (node.home, below.home) {
                        (above, below) if above == below => assert_eq!(child.address, None),
                        (Home::Node(above), Home::Node(below)) => {
                            assert!(fabric.graph().is_some() || fabric.nodes()[below].parent == Some(above));
                        }
                        (Home::Node(above), Home::Rank(lead)) => {
                            assert!(fabric.graph().is_some() || entry(lead).leaves.contains(&above));
                            assert_eq!(child.address, entry(lead).addresses.first().copied());
                        }
                        (Home::Rank(lead), other) => panic!("{other:?} below a node of rank {lead}"),
                    }
                    parents[usize::from(id.0)] += 1;
                    let mut ranks: Vec<u32> = below.children.iter().flat_map(|c| c.ranks.iter().map(|r| r.0)).collect();
                    ranks.sort_unstable();
                    assert_eq!(child.ranks, RankList::from_ranks(ranks));
                }
            }
        }
    }
    assert_eq!((parents[0], plan.nodes[0].parent), (0, None));
    assert!(parents[1..].iter().all(|count| *count == 1));
    let mut all: Vec<u32> = plan.nodes[0].children.iter().flat_map(|c| c.ranks.iter().map(|r| r.0)).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..hosts.len() as u32));
    // The plan is trimmed: its root has several children, or ranks are attached to it.
    let root = &plan.nodes[0];
    assert!(root.children.len() > 1 || matches!(root.children[0].kind, ChildKind::Rank(_)));
    check_levels(program, plan);
}

// Every set of two ranks or more that have a host or a domain in common is what hangs below one
// node, and no other node is at home in a rank but those of a cascade.
fn check_levels(program: &Program<'_>, plan: &Plan) {
    let domain = |rank: u32| program.domains.get(rank as usize).copied().flatten();
    let mut hosts: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let mut domains: BTreeMap<(&str, Option<u16>), Vec<u32>> = BTreeMap::new();
    for (rank, host) in (0..).zip(program.hosts) {
        hosts.entry(host).or_default().push(rank);
        domains.entry((host, domain(rank))).or_default().push(rank);
    }
    let several = |ranks: &Vec<u32>| ranks.len() > 1;
    let expected: BTreeSet<Vec<u32>> = match program.levels {
        Levels::None => BTreeSet::new(),
        Levels::Host => hosts.into_values().filter(several).collect(),
        Levels::Numa => hosts.into_values().chain(domains.into_values()).filter(several).collect(),
    };
    let ranks = |node: &PlanNode| {
        let mut ranks: Vec<u32> = node.children.iter().flat_map(|c| c.ranks.iter().map(|r| r.0)).collect();
        ranks.sort_unstable();
        ranks
    };
    let mut met = BTreeSet::new();
    let home = |child: &PlanChild| match child.kind {
        ChildKind::Rank(rank) => Home::Rank(rank),
        ChildKind::Node(id) => plan.nodes[usize::from(id.0)].home,
    };
    for (_, node) in plan.at_nodes() {
        let children = || node.children.iter().map(|child| (home(child).node().is_none(), child.ranks.nth(0)));
        let below: Vec<_> = children().skip_while(|(is_local, _)| !is_local).collect();
        assert!(below.iter().all(|(is_local, _)| *is_local) && below.is_sorted(), "{}: {below:?}", node.name);
    }
    for node in plan.nodes.iter().filter(|node| node.home.node().is_none()) {
        let all = ranks(node);
        let above = node.parent.map(|(above, _)| &plan.nodes[usize::from(above.0)]);
        let lead = lead_of(program, all[0]);
        assert_eq!(node.home, Home::Rank(lead));
        // A cascade's nodes have the name of its top.
        match above.filter(|above| above.name == node.name && above.home == node.home) {
            Some(above) => assert!(plan.nodes[usize::from(above.id.0)].children.len() > 1),
            None => assert!(met.insert(all), "{} stands for what another node stands for", node.name),
        }
        let firsts: Vec<u32> = node.children.iter().filter_map(|child| child.ranks.nth(0)).map(|rank| rank.0).collect();
        assert!(firsts.is_sorted(), "{firsts:?}");
    }
    assert_eq!(met, expected);
}

fn lead_of(program: &Program<'_>, rank: u32) -> Rank {
    let host = &program.hosts[rank as usize];
    Rank(program.hosts.iter().position(|other| other == host).unwrap() as u32)
}

// Trees of up to 40 nodes, hosts on one to three leaves each, and ranks on these hosts.
pub(super) fn fabrics() -> impl Strategy<Value = (String, Vec<String>)> {
    let nodes = prop::collection::vec(any::<prop::sample::Index>(), 0..40);
    let hosts = prop::collection::vec(prop::collection::btree_set(0usize..40, 1..4), 1..12);
    let ranks = prop::collection::vec(any::<prop::sample::Index>(), 1..400);
    (nodes, hosts, ranks).prop_map(|(parents, hosts, ranks)| {
        let mut text = String::from("[[node]]\nname = \"n0\"\n");
        for (i, parent) in parents.iter().enumerate() {
            // There are at most 20 levels, well inside what a topology allows.
            let above = parent.index(i + 1).max(i.saturating_sub(3)).min(i);
            let above = if i < 20 { above } else { above % 20 };
            text += &format!("[[node]]\nname = \"n{}\"\nparent = \"n{above}\"\n", i + 1);
        }
        for (i, leaves) in hosts.iter().enumerate() {
            let mut leaves: Vec<String> =
                leaves.iter().map(|leaf| format!("\"n{}\"", leaf % (parents.len() + 1))).collect();
            leaves.sort();
            leaves.dedup();
            text += &format!("[[host]]\nname = \"h{i}\"\nleaves = [{}]\n", leaves.join(", "));
        }
        (text, ranks.iter().map(|rank| format!("h{}", rank.index(hosts.len()))).collect())
    })
}

proptest! {
    #[test]
    fn every_plan_keeps_its_promises((text, hosts) in fabrics()) {
        let fabric = topology(&text);
        let first = plan(&fabric, &hosts).unwrap();
        check(&fabric, &Program::flat(&hosts), &first);
        prop_assert_eq!(plan(&fabric, &hosts).unwrap(), first);
    }
}

// Two leaves below two spines, one of which has its node on a server, and a switch without a node.
pub(super) const GRAPH: &str = "[fabric]\nmtu = 9000\n[[switch]]\nname = \"leaf[0-1]\"\n[[switch]]\nname = \"spine0\"\nlevel = 2\n\
    [[switch]]\nname = \"spine1\"\nlevel = 2\nnode = false\n[[switch]]\nname = \"bare\"\nnode = false\n\
    [[server]]\nname = \"an\"\nswitch = \"spine1\"\nrate = \"1tbit\"\naddress = \"10.0.0.9\"\n[[host]]\nname = \"a[0-1]\"\nswitch = \"leaf0\"\n\
    [[host]]\nname = \"b0\"\nswitch = \"leaf1\"\naddress = \"10.0.0.1\"\n[[host]]\nname = \"c\"\nswitch = \"bare\"\n\
    [[link]]\nends = [\"leaf[0-1],bare\", \"spine[0-1]\"]\n[limits]\ngroups = 7\n";

#[test]
fn a_job_in_a_graph_gets_the_best_tree_beside_those_of_others() {
    let fabric = topology(GRAPH);
    let mut loads = fabric.idle_loads();
    // Ranks on a host below a switch without a node are attached to the node above.
    let hosts = named(&["b0", "a1.cluster", "c", "a1", "b0"]);
    let first = super::plan(&fabric, &Program::flat(&hosts), &loads).unwrap();
    let expected = ["n0 spine0: n1(1-3/2) n2(0-4/4) r2", "n1 leaf0: r1 r3", "n2 leaf1: r0 r4"];
    assert_eq!(picture(&first), expected);
    assert_eq!(first.nodes[2].children[0].address, Some("10.0.0.1".parse().unwrap()));
    check(&fabric, &Program::flat(&hosts), &first);
    loads.add(first.tree.as_ref().unwrap());
    let second = super::plan(&fabric, &Program::flat(&hosts), &loads).unwrap();
    // The other spine gives the same shape, and so the same bits.
    assert_eq!(picture(&second), expected.map(|line| line.replace("spine0", "an")));
    assert_eq!(fabric.nodes()[second.nodes[0].home.node().unwrap()].addresses, ["10.0.0.9".parse::<IpAddr>().unwrap()]);
    loads.remove(first.tree.as_ref().unwrap());
    loads.add(second.tree.as_ref().unwrap());
    assert_eq!(picture(&super::plan(&fabric, &Program::flat(&hosts), &loads).unwrap()), expected);
    assert_eq!(picture(&plan(&fabric, &named(&["a0", "a1"])).unwrap()), ["n0 leaf0: r0 r1"]);
}

// Two rails: every host is on a leaf of each, and each rail has a spine of its own.
const RAILS: &str = "[[switch]]\nname = \"l0,l1,s\"\n[[switch]]\nname = \"m0,m1,t\"\n\
    [[host]]\nname = \"a\"\nswitch = \"l0\"\naddresses = [\"10.0.0.1\", \"10.1.0.1\"]\n\
    [[host]]\nname = \"b\"\nswitch = \"l1\"\naddresses = [\"10.0.0.2\", \"10.1.0.2\"]\n\
    [[link]]\nends = [\"m0\", \"a\"]\n[[link]]\nends = [\"m1\", \"b\"]\n\
    [[link]]\nends = [\"l0,l1\", \"s\"]\n[[link]]\nends = [\"m0,m1\", \"t\"]\n";

#[test]
fn a_rank_connects_from_its_hosts_address_on_the_rail_of_the_tree() {
    let fabric = topology(RAILS);
    let mut loads = fabric.idle_loads();
    let hosts = named(&["b", "a", "b"]);
    let first = super::plan(&fabric, &Program::flat(&hosts), &loads).unwrap();
    loads.add(first.tree.as_ref().unwrap());
    let second = super::plan(&fabric, &Program::flat(&hosts), &loads).unwrap();
    assert_eq!(picture(&first)[0].split(':').next(), Some("n0 s"));
    assert_eq!(picture(&second)[0].split(':').next(), Some("n0 t"));
    let addresses = |plan: &Plan| plan.leaves.iter().map(|leaf| leaf.address.unwrap().to_string()).collect::<Vec<_>>();
    assert_eq!(addresses(&first), ["10.0.0.2", "10.0.0.1", "10.0.0.2"]);
    assert_eq!(addresses(&second), ["10.1.0.2", "10.1.0.1", "10.1.0.2"]);
    let child = |plan: &Plan| plan.nodes[1].children[0].address.unwrap().to_string();
    assert_eq!((child(&first), child(&second)), ("10.0.0.1".into(), "10.1.0.1".into()));
    assert!(first.folds_as(&second) && first.tree != second.tree);
    assert!(!first.folds_as(&plan(&fabric, &named(&["a", "b", "b"])).unwrap()));
}

#[test]
fn trees_of_one_job_are_numbered_one_behind_the_other() {
    let first = plan(&topology(GRAPH), &named(&["b0", "a1", "a0"])).unwrap();
    let mut second = first.clone();
    second.renumber(first.nodes.len() as u16);
    let ids: Vec<u16> = first.nodes.iter().chain(&second.nodes).map(|node| node.id.0).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5]);
    for (own, moved) in first.nodes.iter().zip(&second.nodes) {
        assert_eq!(
            own.parent.map(|(parent, child)| (parent.0 + 3, child)),
            moved.parent.map(|(parent, at)| (parent.0, at))
        );
        for (child, there) in own.children.iter().zip(&moved.children) {
            match (child.kind, there.kind) {
                (ChildKind::Node(node), ChildKind::Node(other)) => assert_eq!(node.0 + 3, other.0),
                (rank, other) => assert_eq!(rank, other),
            }
        }
    }
    assert!(second.leaves.iter().all(|leaf| (3..6).contains(&leaf.node.0)));
}

#[test]
fn hosts_without_a_tree_in_the_graph_are_told() {
    let fabric = topology(
        "[[switch]]\nname = \"s[0-1]\"\n[[host]]\nname = \"a\"\nswitch = \"s0\"\n[[host]]\nname = \"b\"\nswitch = \"s1\"\n",
    );
    assert_eq!(plan(&fabric, &named(&["a", "b"])).unwrap_err(), PlanError::NoTree(TreeError::NotConnected));
    let mut line = String::from(
        "[[switch]]\nname = \"s[0-80]\"\n[[host]]\nname = \"a\"\nswitch = \"s0\"\n[[host]]\nname = \"b\"\nswitch = \"s80\"\n",
    );
    for i in 0..80 {
        line += &format!("[[link]]\nends = [\"s{i}\", \"s{}\"]\n", i + 1);
    }
    assert_eq!(plan(&topology(&line), &named(&["a", "b"])).unwrap_err(), PlanError::TooDeep(41));
}

#[test]
fn ten_thousand_ranks_on_a_fat_tree_are_planned() {
    let graph = Shape::FatTree3 { hosts: 10_000, ports: 40 }.graph(LinkRate::DEFAULT).unwrap();
    let fabric = topology(&graph.to_toml());
    let hosts: Vec<String> = (0..10_000).map(|rank| format!("h{rank}")).collect();
    let plan = plan(&fabric, &hosts).unwrap();
    check(&fabric, &Program::flat(&hosts), &plan);
    assert_eq!(plan.nodes.len(), 1 + 25 + 500);
}

proptest! {
    #[test]
    fn plans_in_graphs_keep_the_same_promises(
        shape in shapes(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..100),
    ) {
        let fabric = topology(&shape.graph(LinkRate::DEFAULT).unwrap().to_toml());
        let hosts: Vec<String> = picks.iter().map(|pick| pick.get(fabric.hosts()).name.clone()).collect();
        let first = plan(&fabric, &hosts).unwrap();
        check(&fabric, &Program::flat(&hosts), &first);
        prop_assert_eq!(plan(&fabric, &hosts).unwrap(), first);
    }
}

// "r0 r1 on a 25gbit" per way.
fn ways(plan: &Plan, topology: &Topology, hosts: &[String]) -> Vec<Vec<String>> {
    let words = |way: &Way| {
        let children: Vec<String> = way.children.iter().map(|child| child.0.to_string()).collect();
        let rate = way.rate.map_or("?".to_owned(), |rate| rate.to_string());
        format!("{} {} {rate}", children.join(","), way.host.as_deref().unwrap_or("-"))
    };
    plan.ways(topology, hosts).iter().map(|ways| ways.iter().map(words).collect()).collect()
}

#[test]
fn the_ranks_of_a_host_share_the_link_that_the_file_knows() {
    let nodes = "[[node]]\nname = \"root\"\n[[node]]\nname = \"leaf0\"\nparent = \"root\"\nrate = \"40gbit\"\n\
        [[node]]\nname = \"leaf1\"\nparent = \"root\"\n";
    let hosts =
        "[[host]]\nname = \"a\"\nleaf = \"leaf0\"\nrate = \"25gbit\"\n[[host]]\nname = \"*\"\nleaf = \"leaf1\"\n";
    let (topology, hosts) = (topology(&format!("{nodes}{hosts}")), named(&["a", "b", "a", "c", "b"]));
    let mut plan = plan(&topology, &hosts).unwrap();
    let expected = [vec!["0 - 40gbit", "1 - ?"], vec!["0,1 a 25gbit"], vec!["0,2 b ?", "1 c ?"]];
    assert_eq!(ways(&plan, &topology, &hosts), expected);
    // Another lane's numbers begin elsewhere.
    plan.renumber(7);
    assert_eq!(ways(&plan, &topology, &hosts), expected);
}

#[test]
fn a_process_with_too_many_children_is_no_link_away_from_itself() {
    let topology = topology(
        "[[node]]\nname = \"root\"\nrate = \"1gbit\"\n[[host]]\nname = \"*\"\nleaf = \"root\"\nrate = \"2gbit\"\n",
    );
    let hosts: Vec<String> = (0..65).map(|n| format!("h{n}")).collect();
    let ways = ways(&plan(&topology, &hosts).unwrap(), &topology, &hosts);
    assert_eq!((&ways[0][0][..], &ways[1][0][..]), ("0 - ?", "0 h0 2gbit"));
}

#[test]
fn the_slowest_link_of_a_way_through_switches_without_nodes_counts() {
    let text = "[fabric]\nname = \"f\"\n[[switch]]\nname = \"leaf[0-1]\"\nnode = false\n[[switch]]\nname = \"spine\"\nnode = false\n\
        [[server]]\nname = \"an0\"\nswitch = \"spine\"\nrate = \"20gbit\"\n[[host]]\nname = \"h0\"\nswitch = \"leaf0\"\n\
        [[host]]\nname = \"h1\"\nswitch = \"leaf1\"\n[[link]]\nends = [\"leaf0\", \"spine\"]\nrate = \"10gbit\"\n\
        [[link]]\nends = [\"leaf1\", \"spine\"]\nrate = \"40gbit\"\n";
    let (topology, hosts) = (topology(text), named(&["h0", "h1"]));
    // h1's own link and its trunk are faster than the server's NIC.
    assert_eq!(ways(&plan(&topology, &hosts).unwrap(), &topology, &hosts), [["0 h0 10gbit", "1 h1 20gbit"]]);
    let switches = text.replace("name = \"leaf[0-1]\"\nnode = false", "name = \"leaf[0-1]\"");
    let topology = self::topology(&switches);
    let expected = [vec!["0 - 10gbit", "1 - 20gbit"], vec!["0 h0 100gbit"], vec!["0 h1 100gbit"]];
    assert_eq!(ways(&plan(&topology, &hosts).unwrap(), &topology, &hosts), expected);
}

#[test]
fn the_transport_is_that_of_each_edges_lower_end() {
    let fabric = topology(
        "[[node]]\nname = \"root\"\n[[node]]\nname = \"leaf0\"\nparent = \"root\"\nvia = \"ucx\"\n\
         [[node]]\nname = \"leaf1\"\nparent = \"root\"\n[[host]]\nname = \"a\"\nleaf = \"leaf0\"\n\
         [[host]]\nname = \"b\"\nleaf = \"leaf1\"\nvia = \"ucx\"\n[[host]]\nname = \"c\"\nleaf = \"leaf1\"\nvia = \"tcp\"\n",
    );
    let vias = |plan: &Plan| {
        let children = plan.nodes.iter().flat_map(|node| node.children.iter().map(|child| child.via));
        children.collect::<Vec<_>>()
    };
    let flat = plan(&fabric, &named(&["a", "b", "c"])).unwrap();
    assert_eq!(vias(&flat), [Via::Ucx, Via::Tcp, Via::Tcp, Via::Ucx, Via::Tcp]);
    assert_eq!(flat.leaves.iter().map(|leaf| leaf.via).collect::<Vec<_>>(), [Via::Tcp, Via::Ucx, Via::Tcp]);

    // What stays on a host goes by none, and the node of the host goes as its ranks would.
    let hosts = named(&["b", "a", "b"]);
    let program = Program { levels: Levels::Host, ..Program::flat(&hosts) };
    let levels = super::plan(&fabric, &program, &fabric.idle_loads()).unwrap();
    assert_eq!(picture(&levels)[2..], ["n2 leaf1: n3(0-2/2)", "n3 host b: r0 r2"]);
    assert_eq!(levels.nodes[2].children[0].via, Via::Ucx);
    assert!(levels.nodes[3].children.iter().all(|child| child.via.is_tcp()));
    assert!(levels.leaves.iter().all(|leaf| leaf.via.is_tcp()));

    let graph = topology(
        "[[switch]]\nname = \"leaf[0-1]\"\nvia = \"ucx\"\n[[switch]]\nname = \"spine\"\nlevel = 2\n\
         [[host]]\nname = \"h[0-1]\"\nswitch = \"leaf0\"\nvia = \"ucx\"\n[[host]]\nname = \"h2\"\nswitch = \"leaf1\"\n\
         [[link]]\nends = [\"leaf[0-1]\", \"spine\"]\n",
    );
    let plan = plan(&graph, &named(&["h0", "h1", "h2"])).unwrap();
    assert_eq!(vias(&plan), [Via::Ucx, Via::Ucx, Via::Ucx, Via::Ucx, Via::Tcp]);

    let wrong = "[[node]]\nname = \"root\"\n[[host]]\nname = \"a\"\nleaf = \"root\"\nvia = \"udp\"\n";
    let error = Topology::parse(wrong, Path::new("test.toml")).unwrap_err().to_string();
    assert!(error.contains("test.toml:6") && error.contains("`tcp` or `ucx`"), "{error}");
}
