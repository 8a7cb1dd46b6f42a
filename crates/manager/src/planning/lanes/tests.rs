use std::path::Path;

use trib_messages::request::QuotaAsk;

use super::*;
use crate::planning::quota::RANKS_MAX;
use crate::planning::trees::Trees;

/// Two leaves below two spines, one of which is slower.
fn fabric() -> Topology {
    let text = "[[switch]]\nname = \"leaf[0-1]\"\n[[switch]]\nname = \"spine[0-1]\"\n[[host]]\nname = \"a\"\nswitch = \"leaf0\"\n\
        rate = \"100gbit\"\n[[host]]\nname = \"b\"\nswitch = \"leaf1\"\nrate = \"100gbit\"\n[[link]]\nends = [\"leaf[0-1]\", \"spine0\"]\n\
        rate = \"100gbit\"\n[[link]]\nends = [\"leaf[0-1]\", \"spine1\"]\nrate = \"50gbit\"\n[limits]\nlanes = { maximum = 4 }\n";
    Topology::parse(text, Path::new("test.toml")).unwrap()
}

/// The lanes of a job from `a` to `b`, as trees are planned for it.
fn planned(fabric: &Topology, wish: &Wish) -> Vec<PlannedLane> {
    let hosts = ["a", "b"].map(String::from);
    let program = trib_topology::Program::flat(&hosts);
    let here = fabric.nodes().iter().map(|node| node.name.clone()).collect();
    Trees::new(fabric, trib_topology::predict::Model::server()).plan(fabric, &program, &here, wish).unwrap().lanes
}

fn ask(lanes: u32, trees: Option<u32>) -> QuotaAsk {
    QuotaAsk { lanes: Some(lanes), trees, ..QuotaAsk::default() }
}

#[test]
fn lanes_take_turns_over_trees_and_carry_what_their_links_can() {
    let fabric = fabric();
    let wish = Wish::of(&ask(3, None), &fabric, 2).unwrap();
    assert_eq!((wish.trees_most(), wish.stripe_threshold), (3, 128 << 10));
    let Lanes { plan, tickets, status } = Lanes::over(&planned(&fabric, &wish), &fabric, &wish).unwrap();
    let names: Vec<&str> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
    let tree = |spine| [spine, "leaf0", "leaf1"];
    assert_eq!(names, [tree("spine0"), tree("spine1"), tree("spine0")].concat());
    assert!(plan.nodes.iter().enumerate().all(|(at, node)| usize::from(node.id.0) == at), "numbers are positions");
    // Two channels share the faster tree.
    assert_eq!(tickets.iter().map(|lane| lane.weight).collect::<Vec<_>>(), [50_000, 50_000, 50_000]);
    assert_eq!(tickets.iter().map(|lane| lane.leaves[0].node.0).collect::<Vec<_>>(), [1, 4, 7]);
    let told = |tree, spine: &str, first, weight| LaneStatus {
        tree,
        root: spine.into(),
        first: NodeId(first),
        nodes: 3,
        weight,
        from: None,
        to: None,
    };
    assert_eq!(status, [told(0, "spine0", 0, 50_000), told(1, "spine1", 3, 50_000), told(0, "spine0", 6, 50_000)]);
    let wish = Wish::of(&ask(2, None), &fabric, 2).unwrap();
    let two = Lanes::over(&planned(&fabric, &wish), &fabric, &wish).unwrap();
    assert_eq!(two.tickets.iter().map(|lane| lane.weight).collect::<Vec<_>>(), [100_000, 50_000]);
}

#[test]
fn what_cannot_be_had_is_refused_with_both_numbers() {
    let fabric = fabric();
    let refused = |ask: QuotaAsk, ranks| Wish::of(&ask, &fabric, ranks).unwrap_err();
    let cases = [
        (refused(ask(5, None), 2), Resource::Lanes, 5, 4),
        (refused(ask(2, Some(3)), 2), Resource::Trees, 3, 2),
        (refused(ask(2, Some(0)), 2), Resource::Trees, 0, 2),
        (refused(ask(2, None), RANKS_MAX), Resource::Lanes, 2, 1),
    ];
    for (refusal, resource, asked, available) in cases {
        assert_eq!((refusal.resource, refusal.asked, refusal.available), (resource, asked, available), "{refusal}");
    }
    let wish = Wish::of(&ask(3, Some(3)), &fabric, 2).unwrap();
    let lanes = planned(&fabric, &wish);
    let refusal = Lanes::over(&lanes, &fabric, &wish).err().unwrap();
    assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Trees, 3, 2), "{refusal}");
    // If it does not wish for two trees, two of them take one tree.
    assert!(Lanes::over(&lanes, &fabric, &Wish::of(&ask(3, None), &fabric, 2).unwrap()).is_ok());
}

/// Two hosts with two links each, the second of which is slower, to one switch that is reached at
/// two addresses. The file tells no addresses of `b`.
const PORTS: &str = "[[switch]]\nname = \"leaf\"\naddresses = [\"10.0.1.1\", \"10.1.1.1\"]\n\
    [[host]]\nname = \"a\"\naddresses = [\"10.0.0.1\", \"10.1.0.1\"]\n[[host]]\nname = \"b\"\n\
    [[link]]\nends = [\"a,b\", \"leaf\"]\nrate = \"100gbit\"\n[[link]]\nends = [\"a,b\", \"leaf\"]\nrate = \"40gbit\"\n\
    [limits]\nlanes = { maximum = 4 }\n";

#[test]
fn channels_of_one_tree_go_by_its_ports_and_carry_what_their_links_can() {
    let fabric = Topology::parse(PORTS, Path::new("test.toml")).unwrap();
    let wish = Wish::of(&ask(3, None), &fabric, 2).unwrap();
    let Lanes { plan, tickets, status } = Lanes::over(&planned(&fabric, &wish), &fabric, &wish).unwrap();
    let addresses = |texts: [&str; 3]| texts.map(|text| Some(text.parse::<std::net::IpAddr>().unwrap()));
    let to = addresses(["10.0.1.1", "10.1.1.1", "10.0.1.1"]);
    let from = addresses(["10.0.0.1", "10.1.0.1", "10.0.0.1"]);
    assert_eq!(plan.nodes.iter().map(|node| node.address).collect::<Vec<_>>(), to);
    assert_eq!(status.iter().map(|lane| lane.to).collect::<Vec<_>>(), to);
    assert_eq!(status.iter().map(|lane| lane.from).collect::<Vec<_>>(), from);
    assert_eq!(tickets.iter().map(|lane| lane.leaves[0].address).collect::<Vec<_>>(), from);
    assert!(tickets.iter().all(|lane| lane.leaves[1].address.is_none()));
    assert_eq!(plan.nodes.iter().map(|node| node.children[0].address).collect::<Vec<_>>(), from);
    assert!(status.iter().all(|lane| lane.tree == 0), "it is one tree");
    // The first port has two of the three lanes.
    assert_eq!(tickets.iter().map(|lane| lane.weight).collect::<Vec<_>>(), [50_000, 40_000, 50_000]);
    // Two ports are not two trees.
    let two = Wish::of(&ask(2, Some(2)), &fabric, 2).unwrap();
    let refusal = Lanes::over(&planned(&fabric, &two), &fabric, &two).err().unwrap();
    assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Trees, 2, 1), "{refusal}");
}

#[test]
fn a_second_tree_is_found_behind_parallel_links_of_the_first() {
    let text = "[[switch]]\nname = \"leaf[0-1]\"\n[[switch]]\nname = \"spine[0-1]\"\n[[host]]\nname = \"a\"\nswitch = \"leaf0\"\n\
        [[host]]\nname = \"b\"\nswitch = \"leaf1\"\n[[link]]\nends = [\"leaf[0-1]\", \"spine0\"]\nrate = \"100gbit\"\ncount = 2\n\
        [[link]]\nends = [\"leaf[0-1]\", \"spine1\"]\nrate = \"50gbit\"\n";
    let fabric = Topology::parse(text, Path::new("test.toml")).unwrap();
    let wish = Wish::of(&ask(3, Some(2)), &fabric, 2).unwrap();
    let Lanes { status, .. } = Lanes::over(&planned(&fabric, &wish), &fabric, &wish).unwrap();
    // The other links of the first tree are another way for a channel, not another tree.
    let told: Vec<_> = status.iter().map(|lane| (lane.tree, lane.root.as_str(), lane.weight)).collect();
    assert_eq!(told, [(0, "spine0", 50_000), (1, "spine1", 50_000), (0, "spine0", 50_000)]);
}
