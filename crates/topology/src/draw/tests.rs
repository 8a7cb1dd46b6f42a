use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::graph::tests::shapes;
use crate::graph::{Graph, LinkRate, Shape};

const SMALL: &str = "[fabric]\nname = \"a & b\"\n[[switch]]\nname = \"leaf[0-1]\"\n[[switch]]\nname = \"spine\"\nnode = false\n\
    [[server]]\nname = \"an0\"\nswitch = \"spine\"\nrate = \"40gbit\"\n[[host]]\nname = \"h[0-2]\"\nswitch = \"leaf0\"\n\
    [[host]]\nname = \"h3\"\nswitch = \"leaf1\"\n[[link]]\nends = [\"leaf[0-1]\", \"spine\"]\ncount = 2\n[[link]]\nends = [\"leaf0\", \"leaf1\"]\nrate = \"10gbit\"\n";

fn small() -> Graph {
    Graph::parse(SMALL, Path::new("test.toml"), LinkRate::DEFAULT).unwrap()
}

#[test]
fn every_switch_has_a_line() {
    let expected = "level 2\n  spine  server an0 40gbit  down leaf[0-1] 2 x 100gbit\nlevel 1\n\
        \x20 leaf0  node  hosts h[0-2] 100gbit  across leaf1 10gbit  up spine 2 x 100gbit\n\
        \x20 leaf1  node  hosts h3 100gbit  across leaf0 10gbit  up spine 2 x 100gbit\n";
    assert_eq!(text(&small()), expected);
}

#[test]
fn pictures_name_everything() {
    let picture = svg(&small());
    let words = [
        "a &amp; b",
        ">spine<",
        ">leaf1<",
        ">h3<",
        "server an0 40gbit",
        "leaf0 to spine: 2 x 100gbit",
        "switch with a node leaf0",
    ];
    for word in words {
        assert!(picture.contains(word), "{word}\n{picture}");
    }
}

#[test]
fn many_hosts_are_one_box_for_each_switch() {
    let graph = Shape::FatTree3 { hosts: 10_000, ports: 40 }.graph(LinkRate::DEFAULT).unwrap();
    let picture = svg(&graph);
    assert!(picture.contains(">h[0-19]<") && picture.contains("leaf0 to h[0-19]: 20 x 100gbit"));
    assert!(picture.len() < 8 << 20, "{}", picture.len());
}

proptest! {
    #[test]
    fn pictures_are_finite_and_end(shape in shapes()) {
        let picture = svg(&shape.graph(LinkRate::DEFAULT).unwrap());
        prop_assert!(!picture.contains("NaN") && !picture.contains("inf"));
        let numbers = picture.split(" x=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok());
        prop_assert!(numbers.into_iter().all(|x| x >= 0.0));
        prop_assert_eq!(picture.matches("<g").count(), picture.matches("</g>").count());
        prop_assert!(picture.ends_with("</svg>\n"));
    }
}
