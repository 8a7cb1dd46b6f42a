use std::path::Path;

use trib_topology::plan;

use super::*;

/// Two leaves below two spines, one of which is slower.
fn fabric() -> Topology {
    let text = "[[switch]]\nname = \"leaf[0-1]\"\n[[switch]]\nname = \"spine[0-1]\"\n[[host]]\nname = \"a\"\nswitch = \"leaf0\"\n\
        rate = \"100gbit\"\n[[host]]\nname = \"b\"\nswitch = \"leaf1\"\nrate = \"100gbit\"\n[[link]]\nends = [\"leaf[0-1]\", \"spine0\"]\n\
        rate = \"100gbit\"\n[[link]]\nends = [\"leaf[0-1]\", \"spine1\"]\nrate = \"50gbit\"\n[limits]\nlanes = { maximum = 4 }\n";
    Topology::parse(text, Path::new("test.toml")).unwrap()
}

fn trees(fabric: &Topology) -> Vec<Plan> {
    let hosts = ["a", "b"].map(String::from);
    let mut loads = fabric.idle_loads();
    let first = plan(fabric, &hosts, &loads).unwrap();
    // So that the slower spine is the better one.
    (0..4).for_each(|_| loads.add(first.tree.as_ref().unwrap()));
    vec![first, plan(fabric, &hosts, &loads).unwrap()]
}

fn ask(lanes: u32, trees: Option<u32>) -> QuotaAsk {
    QuotaAsk { lanes: Some(lanes), trees, ..QuotaAsk::default() }
}

#[test]
fn lanes_take_turns_over_trees_and_carry_what_their_links_can() {
    let fabric = fabric();
    let wish = Wish::of(&ask(3, None), &fabric, 2).unwrap();
    assert_eq!((wish.trees_most(), wish.stripe_threshold), (3, 128 << 10));
    let Lanes { plan, tickets, status } = Lanes::over(&trees(&fabric), &fabric, &wish).unwrap();
    let names: Vec<&str> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
    let tree = |spine| [spine, "leaf0", "leaf1"];
    assert_eq!(names, [tree("spine0"), tree("spine1"), tree("spine0")].concat());
    assert!(plan.nodes.iter().enumerate().all(|(at, node)| usize::from(node.id.0) == at), "numbers are places");
    // Two channels share the faster tree.
    assert_eq!(tickets.iter().map(|lane| lane.weight).collect::<Vec<_>>(), [50_000, 50_000, 50_000]);
    assert_eq!(tickets.iter().map(|lane| lane.leaves[0].node.0).collect::<Vec<_>>(), [1, 4, 7]);
    let told = |tree, spine: &str, first, weight| LaneStatus {
        tree,
        root: spine.into(),
        first: NodeId(first),
        nodes: 3,
        weight,
    };
    assert_eq!(status, [told(0, "spine0", 0, 50_000), told(1, "spine1", 3, 50_000), told(0, "spine0", 6, 50_000)]);
    let two = Lanes::over(&trees(&fabric), &fabric, &Wish::of(&ask(2, None), &fabric, 2).unwrap()).unwrap();
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
    let wish = Wish::of(&ask(2, Some(2)), &fabric, 2).unwrap();
    let one = &trees(&fabric)[..1];
    let refusal = Lanes::over(one, &fabric, &wish).err().unwrap();
    assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Trees, 2, 1), "{refusal}");
    // Without that wish, both take the one tree.
    assert!(Lanes::over(one, &fabric, &Wish::of(&ask(2, None), &fabric, 2).unwrap()).is_ok());
}
