use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

use super::search::work;
use super::*;
use crate::graph::tests::shapes;
use crate::graph::{LinkRate, Shape};

fn fabric(text: &str) -> Graph {
    Graph::parse(text, Path::new("test.toml"), LinkRate::DEFAULT).unwrap()
}

fn made(shape: Shape) -> Graph {
    shape.graph(LinkRate::DEFAULT).unwrap()
}

fn tree(graph: &Graph, hosts: &[usize]) -> Tree {
    find_tree(graph, hosts, &Loads::idle(graph)).unwrap()
}

fn named(graph: &Graph, names: &str) -> Vec<usize> {
    crate::hostlist::expand(names).unwrap().iter().map(|name| graph.find(name).unwrap()).collect()
}

fn root<'a>(graph: &'a Graph, tree: &Tree) -> &'a str {
    &graph.vertices()[tree.root()].name
}

// The links between switches.
fn trunks(tree: &Tree) -> BTreeSet<usize> {
    tree.branches.iter().filter_map(|branch| branch.parent.map(|(_, link)| link)).collect()
}

// What holds for every tree, whatever the graph is.
fn check_shape(graph: &Graph, hosts: &[usize], tree: &Tree) {
    assert_eq!(tree.leaves.iter().map(|leaf| leaf.host).collect::<Vec<_>>(), hosts, "it spans exactly its hosts");
    let mut links = BTreeSet::new();
    let mut connects = |link: usize, lower: usize, upper: usize| {
        let ends = graph.links()[link].ends;
        assert!(ends == [lower, upper] || ends == [upper, lower], "link {link} leads elsewhere");
        assert!(links.insert(link), "link {link} is used twice");
    };
    let mut used = vec![false; tree.branches.len()];
    for leaf in &tree.leaves {
        connects(leaf.parent.1, leaf.host, tree.branches[leaf.parent.0].switch);
        used[leaf.parent.0] = true;
    }
    for (at, branch) in tree.branches.iter().enumerate().rev() {
        assert!(used[at], "a branch leads to no host");
        match branch.parent {
            Some((parent, link)) => {
                assert!(parent < at, "parents stand first");
                connects(link, branch.switch, tree.branches[parent].switch);
                used[parent] = true;
            }
            None => assert_eq!(at, 0, "one root"),
        }
        assert_eq!(branch.node.is_some(), !graph.nodes_at(branch.switch).is_empty(), "a switch with a node folds");
        assert!(branch.node.is_none_or(|node| graph.nodes()[node].switch == branch.switch));
    }
    assert!(tree.branches[0].node.is_some(), "the root folds");
    let switches: BTreeSet<usize> = tree.branches.iter().map(|branch| branch.switch).collect();
    assert_eq!(switches.len(), tree.branches.len(), "each switch once");
}

// The streams on each link, found by following every logical child to the node above.
fn streams(tree: &Tree) -> BTreeMap<usize, u32> {
    let mut streams = BTreeMap::new();
    let mut follow = |mut way: Option<(usize, usize)>| {
        while let Some((above, link)) = way {
            *streams.entry(link).or_default() += 1;
            way = tree.branches[above].parent.filter(|_| tree.branches[above].node.is_none());
        }
    };
    tree.leaves.iter().for_each(|leaf| follow(Some(leaf.parent)));
    tree.branches.iter().filter(|branch| branch.node.is_some()).for_each(|branch| follow(branch.parent));
    streams
}

// The number of links from a switch to each vertex, by plain search. Hosts pass nothing on.
fn distances(graph: &Graph, from: usize, down_only: bool) -> BTreeMap<usize, u32> {
    let mut known = BTreeMap::from([(from, 0)]);
    let mut open = vec![from];
    while !open.is_empty() {
        let mut next = Vec::new();
        for vertex in open.into_iter().filter(|vertex| !graph.is_host(*vertex)) {
            for link in graph.links_at(vertex) {
                let other = graph.links()[*link].other(vertex);
                let is_down = graph.vertices()[other].level < graph.vertices()[vertex].level;
                if (is_down || !down_only) && !known.contains_key(&other) {
                    known.insert(other, known[&vertex] + 1);
                    next.push(other);
                }
            }
        }
        open = next;
    }
    known
}

// The trunks from a switch down to a host. Fat trees have at most one such set.
fn way_down(graph: &Graph, from: usize, host: usize) -> Option<Vec<usize>> {
    graph.links_at(from).iter().find_map(|link| {
        let other = graph.links()[*link].other(from);
        if other == host {
            return Some(Vec::new());
        }
        let is_below = !graph.is_host(other) && graph.vertices()[other].level < graph.vertices()[from].level;
        let mut links = if is_below { way_down(graph, other, host) } else { None }?;
        links.push(*link);
        Some(links)
    })
}

// The rule for roots, from the module's description: the lowest level of a common node, else the
// least depth.
fn check_root(graph: &Graph, hosts: &[usize], found: Result<&Tree, &TreeError>) {
    let nodes: BTreeSet<usize> = graph.nodes().iter().map(|node| node.switch).collect();
    let depth = |switch: &usize, down_only| {
        let known = distances(graph, *switch, down_only);
        hosts
            .iter()
            .map(|host| known.get(host).copied())
            .collect::<Option<Vec<u32>>>()
            .and_then(|all| all.into_iter().max())
    };
    let level = |switch: &usize| graph.vertices()[*switch].level;
    let lowest = nodes.iter().filter(|switch| depth(switch, true).is_some()).map(level).min();
    let least = nodes.iter().filter_map(|switch| depth(switch, false)).min();
    match (found, lowest, least) {
        (Ok(tree), Some(lowest), _) => {
            assert_eq!(level(&tree.root()), lowest, "the root is a lowest common node");
            assert!(depth(&tree.root(), true).is_some());
        }
        (Ok(tree), None, least) => assert_eq!(depth(&tree.root(), false), least, "the root has the least depth"),
        (Err(error), None, None) => assert_eq!(*error, TreeError::NotConnected),
        (Err(error), ..) => panic!("there is a tree, but: {error}"),
    }
}

// At least one host, each once, in any order.
fn some_hosts(graph: &Graph, picks: &[Index]) -> Vec<usize> {
    let all: Vec<usize> = graph.hosts().collect();
    let mut seen = BTreeSet::new();
    picks.iter().map(|pick| *pick.get(&all)).filter(|host| seen.insert(*host)).collect()
}

// Switches in a random tree with additional links across, some of them parallel; some switches
// without a node, some with servers; hosts on one switch or two. The graph is not always connected.
fn irregular() -> impl Strategy<Value = String> {
    let switch = (any::<bool>(), 0u8..3, any::<Index>(), 1u32..3);
    let link = (any::<Index>(), any::<Index>(), 1u32..4);
    let host = (any::<Index>(), any::<Index>(), any::<bool>());
    (
        proptest::collection::vec(switch, 1..9),
        proptest::collection::vec(link, 0..6),
        proptest::collection::vec(host, 1..12),
        0usize..10,
    )
        .prop_map(|(switches, links, hosts, cut)| {
            let count = switches.len();
            let mut text = String::new();
            for (i, (node, ..)) in switches.iter().enumerate() {
                text += &format!("[[switch]]\nname = \"s{i}\"\nnode = {node}\n");
            }
            for (i, (_, servers, ..)) in switches.iter().enumerate().filter(|(_, switch)| switch.1 > 0) {
                text += &format!("[[server]]\nname = \"an{i}-[1-{servers}]\"\nswitch = \"s{i}\"\nrate = \"10gbit\"\n");
            }
            for (i, (first, second, twice)) in hosts.iter().enumerate() {
                text += &format!("[[host]]\nname = \"h{i}\"\nswitch = \"s{}\"\n", first.index(count));
                if *twice {
                    text += &format!("[[link]]\nends = [\"h{i}\", \"s{}\"]\n", second.index(count));
                }
            }
            for (i, (.., above, parallel)) in switches.iter().enumerate().skip(1).filter(|(i, _)| *i != cut) {
                text += &format!("[[link]]\nends = [\"s{i}\", \"s{}\"]\ncount = {parallel}\n", above.index(i));
            }
            for (first, second, gbit) in links {
                let (first, second) = (first.index(count), second.index(count));
                if first != second {
                    text += &format!("[[link]]\nends = [\"s{first}\", \"s{second}\"]\nrate = \"{gbit}0gbit\"\n");
                }
            }
            text
        })
}

proptest! {
    #[test]
    fn trees_of_regular_fabrics_span_their_hosts_use_links_once_and_have_the_right_root(
        shape in shapes(),
        picks in proptest::collection::vec(any::<Index>(), 1..20),
    ) {
        let graph = made(shape);
        let hosts = some_hosts(&graph, &picks);
        let tree = tree(&graph, &hosts);
        check_shape(&graph, &hosts, &tree);
        check_root(&graph, &hosts, Ok(&tree));
        // Every switch folds, so each link carries one stream.
        prop_assert!(tree.copies().links.iter().all(|(_, count)| *count == 1));
    }

    #[test]
    fn trees_of_irregular_fabrics_do_so_too(
        text in irregular(),
        picks in proptest::collection::vec(any::<Index>(), 1..9),
        busy in proptest::collection::vec(any::<Index>(), 1..4),
    ) {
        let graph = fabric(&text);
        let hosts = some_hosts(&graph, &picks);
        let mut loads = Loads::idle(&graph);
        if let Ok(tree) = find_tree(&graph, &some_hosts(&graph, &busy), &loads) {
            loads.add(&tree);
        }
        let found = find_tree(&graph, &hosts, &loads);
        check_root(&graph, &hosts, found.as_ref());
        if let Ok(tree) = found {
            check_shape(&graph, &hosts, &tree);
            prop_assert_eq!(tree.copies().links.into_iter().collect::<BTreeMap<_, _>>(), streams(&tree));
        }
    }

    #[test]
    fn jobs_take_idle_trunks_as_long_as_there_are_any(
        shape in prop_oneof![
            (1u32..33).prop_map(|hosts| Shape::FatTree2 { hosts, ports: 8 }),
            (1u32..55).prop_map(|hosts| Shape::FatTree3 { hosts, ports: 6 }),
        ],
        jobs in proptest::collection::vec(proptest::collection::vec(any::<Index>(), 1..6), 1..8),
    ) {
        let graph = made(shape);
        let mut loads = Loads::idle(&graph);
        for picks in jobs {
            let hosts = some_hosts(&graph, &picks);
            let tree = find_tree(&graph, &hosts, &loads).unwrap();
            let is_idle = |root: usize| hosts.iter().all(|host| {
                way_down(&graph, root, *host).is_some_and(|links| links.iter().all(|link| loads.link(*link) == 0))
            });
            let level = graph.vertices()[tree.root()].level;
            let an_idle_one = graph.switches().any(|root| graph.vertices()[root].level == level && is_idle(root));
            prop_assert_eq!(loads.leaves_alone(&graph, &tree), an_idle_one);
            loads.add(&tree);
        }
    }

    #[test]
    fn a_closed_node_is_as_good_as_none(
        shape in shapes(),
        picks in proptest::collection::vec(any::<Index>(), 1..20),
        away in proptest::collection::vec(any::<Index>(), 0..6),
    ) {
        let graph = made(shape);
        let hosts = some_hosts(&graph, &picks);
        let switches: Vec<usize> = graph.switches().collect();
        let away: BTreeSet<usize> = away.iter().map(|pick| *pick.get(&switches)).collect();
        let mut loads = Loads::idle(&graph);
        for (node, known) in graph.nodes().iter().enumerate() {
            if away.contains(&known.switch) {
                loads.close(node);
            }
        }
        let names = switches.iter().filter(|switch| !away.contains(switch));
        let names: Vec<String> = names.map(|switch| graph.vertices()[*switch].name.clone()).collect();
        let mut without = graph.clone();
        without.keep_nodes(&names).unwrap();
        let (found, expected) = (find_tree(&graph, &hosts, &loads), find_tree(&without, &hosts, &Loads::idle(&without)));
        let way = |tree: &Tree| {
            let branches: Vec<_> = tree.branches.iter().map(|b| (b.switch, b.node.is_some(), b.parent)).collect();
            (branches, tree.leaves.clone())
        };
        prop_assert_eq!(found.as_ref().map(way), expected.as_ref().map(way));
        if let Ok(tree) = found {
            prop_assert!(tree.branches.iter().all(|branch| branch.node.is_none_or(|node| loads.is_open(node))));
        }
        loads.open();
        prop_assert_eq!(find_tree(&graph, &hosts, &loads), find_tree(&graph, &hosts, &Loads::idle(&graph)));
    }

    #[test]
    fn a_footprint_finds_its_streams_again_whatever_the_order_of_the_file(
        text in irregular(),
        picks in proptest::collection::vec(any::<Index>(), 1..9),
    ) {
        let graph = fabric(&text);
        let Ok(tree) = find_tree(&graph, &some_hosts(&graph, &picks), &Loads::idle(&graph)) else { return Ok(()) };
        let copies = tree.copies();
        let footprint = Footprint::of(&graph, &copies);
        prop_assert_eq!(footprint.in_graph(&graph), copies);
        // The same fabric stands in another file, where indices differ and names are the same.
        let other = fabric(&format!("[[switch]]\nname = \"new\"\n[[host]]\nname = \"newer\"\nswitch = \"new\"\n{text}"));
        let moved = footprint.in_graph(&other);
        prop_assert_eq!(Footprint::of(&other, &moved), footprint.clone());
        let mut loads = Loads::idle(&other);
        loads.add_copies(&moved);
        loads.remove_copies(&moved);
        prop_assert_eq!(loads, Loads::idle(&other));
        // This fabric has none of the parts, so nothing is left.
        let gone = fabric("[[switch]]\nname = \"new\"\n[[host]]\nname = \"newer\"\nswitch = \"new\"\n");
        prop_assert_eq!(footprint.in_graph(&gone), Copies::default());
    }

    #[test]
    fn loads_end_with_their_trees(shape in shapes(), picks in proptest::collection::vec(any::<Index>(), 1..20)) {
        let graph = made(shape);
        let mut loads = Loads::idle(&graph);
        let stripes = find_stripes(&graph, &some_hosts(&graph, &picks), 4, &mut loads).unwrap();
        prop_assert!(!stripes.is_empty());
        stripes.iter().for_each(|tree| loads.remove(tree));
        prop_assert_eq!(loads, Loads::idle(&graph));
    }
}

#[test]
fn the_root_is_no_higher_than_its_hosts_need() {
    let graph = made(Shape::FatTree3 { hosts: 54, ports: 6 });
    for (hosts, expected, depth) in
        [("h0", "leaf0", 1), ("h[0-2]", "leaf0", 1), ("h[0-3]", "spine0", 2), ("h0,h53", "core0", 3)]
    {
        let tree = tree(&graph, &named(&graph, hosts));
        assert_eq!((root(&graph, &tree), tree.depth()), (expected, depth), "{hosts}");
    }
}

#[test]
fn stripes_of_a_job_go_over_different_spines() {
    let graph = made(Shape::FatTree2 { hosts: 32, ports: 8 });
    let hosts: Vec<usize> = graph.hosts().collect();
    let stripes = find_stripes(&graph, &hosts, 9, &mut Loads::idle(&graph)).unwrap();
    let roots: BTreeSet<&str> = stripes.iter().map(|tree| root(&graph, tree)).collect();
    assert_eq!(roots, BTreeSet::from(["spine0", "spine1", "spine2", "spine3"]));
    let trunks: Vec<BTreeSet<usize>> = stripes.iter().map(trunks).collect();
    assert_eq!(trunks.iter().flatten().collect::<BTreeSet<_>>().len(), 32, "each trunk in one stripe");
}

#[test]
fn concurrent_jobs_avoid_each_others_trunks() {
    let graph = made(Shape::FatTree3 { hosts: 54, ports: 6 });
    let mut loads = Loads::idle(&graph);
    let mut taken = BTreeSet::new();
    // Each job has one host on every leaf, so each needs a core and a trunk of every leaf, and
    // there are three of these.
    for job in 0..3 {
        let hosts: Vec<usize> = graph.hosts().skip(job).step_by(3).collect();
        let tree = find_tree(&graph, &hosts, &loads).unwrap();
        assert!(loads.leaves_alone(&graph, &tree));
        assert!(trunks(&tree).into_iter().all(|link| taken.insert(link)), "job {job}");
        loads.add(&tree);
    }
}

#[test]
fn parallel_links_and_rails_are_taken_in_turn() {
    let graph = fabric(
        "[[switch]]\nname = \"a[0-1]\"\n[[switch]]\nname = \"s[0-1]\"\nlevel = 2\n[[host]]\nname = \"h[0-1]\"\n\
         [[link]]\nends = [\"h[0-1]\", \"a[0-1]\"]\n[[link]]\nends = [\"a[0-1]\", \"s[0-1]\"]\n",
    );
    let hosts = named(&graph, "h[0-1]");
    let stripes = find_stripes(&graph, &hosts, 2, &mut Loads::idle(&graph)).unwrap();
    let names: Vec<&str> = stripes.iter().map(|tree| root(&graph, tree)).collect();
    assert_eq!(names, ["a0", "a1"], "the second stripe goes over the other rail");
    let doubled = fabric(
        "[[switch]]\nname = \"a[0-1]\"\n[[switch]]\nname = \"s\"\nlevel = 2\n[[host]]\nname = \"h[0-1]\"\nswitch = \"a0\"\n\
         [[host]]\nname = \"g[0-1]\"\nswitch = \"a1\"\n[[link]]\nends = [\"a[0-1]\", \"s\"]\ncount = 2\n",
    );
    let mut loads = Loads::idle(&doubled);
    let first = find_tree(&doubled, &named(&doubled, "h0,g0"), &loads).unwrap();
    loads.add(&first);
    let second = find_tree(&doubled, &named(&doubled, "h1,g1"), &loads).unwrap();
    assert!(trunks(&first).is_disjoint(&trunks(&second)));
}

#[test]
fn data_passes_through_switches_without_nodes() {
    let graph = fabric(
        "[[switch]]\nname = \"leaf[0-1]\"\nnode = false\n[[switch]]\nname = \"spine\"\nlevel = 2\n\
         [[host]]\nname = \"h[0-1]\"\nswitch = \"leaf0\"\n[[host]]\nname = \"h2\"\nswitch = \"leaf1\"\n\
         [[link]]\nends = [\"leaf[0-1]\", \"spine\"]\n",
    );
    let tree = tree(&graph, &named(&graph, "h[0-2]"));
    let copies = tree.copies();
    assert_eq!((root(&graph, &tree), tree.depth()), ("spine", 1));
    assert_eq!(copies.nodes, [(0, 3, 0)]);
    assert_eq!(copies.links.iter().map(|(_, count)| *count).max(), Some(2));
    assert_eq!((tree.parent_node(0), tree.parent_node(1)), (None, Some(0)));
}

#[test]
fn among_equal_roots_the_widest_wins() {
    let graph = fabric(
        "[[switch]]\nname = \"leaf[0-1]\"\n[[switch]]\nname = \"spine[0-2]\"\nlevel = 2\n[[host]]\nname = \"h0\"\nswitch = \"leaf0\"\n\
         [[host]]\nname = \"h1\"\nswitch = \"leaf1\"\n[[link]]\nends = [\"leaf[0-1]\", \"spine[0,2]\"]\n\
         [[link]]\nends = [\"leaf[0-1]\", \"spine1\"]\nrate = \"200gbit\"\n",
    );
    assert_eq!(root(&graph, &tree(&graph, &named(&graph, "h[0-1]"))), "spine1");
}

#[test]
fn what_has_no_tree_is_told() {
    let graph = fabric(
        "[[switch]]\nname = \"s[0-1]\"\n[[host]]\nname = \"h0\"\nswitch = \"s0\"\n[[host]]\nname = \"h1\"\nswitch = \"s1\"\n[[host]]\nname = \"x\"\n",
    );
    let error = |names: &str| find_tree(&graph, &named(&graph, names), &Loads::idle(&graph)).unwrap_err();
    assert_eq!(error("h0,h1"), TreeError::NotConnected);
    assert_eq!(error("h0,x"), TreeError::Alone("x".into()));
    assert_eq!(error("h0,h0"), TreeError::Twice("h0".into()));
    assert_eq!(error("h0,s1"), TreeError::NotAHost("s1".into()));
    assert_eq!(find_tree(&graph, &[], &Loads::idle(&graph)), Err(TreeError::NoHosts));
}

#[test]
fn ten_thousand_hosts_are_planned_with_bounded_work() {
    let graph = made(Shape::FatTree3 { hosts: 10_000, ports: 40 });
    let hosts: Vec<usize> = graph.hosts().collect();
    let tree = tree(&graph, &hosts);
    check_shape(&graph, &hosts, &tree);
    assert_eq!((root(&graph, &tree), tree.branches.len(), tree.depth()), ("core0", 1 + 25 + 500, 3));
    let links = graph.links().len() as u64;
    let work = work(&graph, &hosts, &Loads::idle(&graph));
    assert!(work <= 400 * links, "{work} looks at {links} links");
    let torus = made(Shape::Torus { sides: [16, 16, 16], hosts: 2 });
    let all: Vec<usize> = torus.hosts().collect();
    let found = find_tree(&torus, &all, &Loads::idle(&torus)).unwrap();
    check_shape(&torus, &all, &found);
}

#[test]
fn a_fabric_in_pieces_costs_one_walk_over_the_piece() {
    let ring = "[[switch]]\nname = \"s[0-499]\"\n[[host]]\nname = \"h0\"\nswitch = \"s0\"\n[[switch]]\nname = \"apart\"\n\
                [[host]]\nname = \"x\"\nswitch = \"apart\"\n";
    let link = |at: usize| format!("[[link]]\nends = [\"s{at}\", \"s{}\"]\n", (at + 1) % 500);
    let graph = fabric(&(ring.to_owned() + &(0..500).map(link).collect::<String>()));
    let hosts = named(&graph, "h0,x");
    assert_eq!(find_tree(&graph, &hosts, &Loads::idle(&graph)), Err(TreeError::NotConnected));
    let work = work(&graph, &hosts, &Loads::idle(&graph));
    assert!(work <= 4 * graph.links().len() as u64, "{work} looks at {} links", graph.links().len());
}
