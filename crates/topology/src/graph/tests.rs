use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::error::{Fault, TopologyError};

fn parse(text: &str) -> Result<Graph, TopologyError> {
    Graph::parse(text, Path::new("test.conf"), LinkRate::DEFAULT)
}

fn graph(text: &str) -> Graph {
    parse(text).unwrap()
}

// Every link as a line, with a count of parallel ones, so that graphs can be compared whatever the
// order of their links.
fn links(graph: &Graph) -> Vec<String> {
    let name = |vertex: usize| graph.vertices()[vertex].name.as_str();
    let mut lines: Vec<String> = graph
        .links()
        .iter()
        .map(|link| format!("{}-{} {}", name(link.ends[0]), name(link.ends[1]), link.rate))
        .collect();
    lines.sort();
    lines
}

fn levels(graph: &Graph) -> Vec<(&str, u32)> {
    graph.switches().map(|switch| (graph.vertices()[switch].name.as_str(), graph.vertices()[switch].level)).collect()
}

#[test]
fn slurm_files_are_read_with_lists_comments_and_long_lines() {
    let fabric = graph(
        "# two racks\nSwitchName=leaf0 Nodes=tux[0-1] LinkSpeed=200\nswitchname=leaf1 \\  \n  nodes=tux2 # the last\n\n\
         SwitchName=spine Switches=leaf[0-1] LinkSpeed=56gbit\nSwitchName=top Switches=spine Nodes=admin\n",
    );
    assert_eq!(fabric.name(), "test");
    assert_eq!(levels(&fabric), [("leaf0", 1), ("leaf1", 1), ("spine", 2), ("top", 3)]);
    let expected = [
        "admin-top 100gbit",
        "leaf0-spine 56gbit",
        "leaf1-spine 56gbit",
        "spine-top 100gbit",
        "tux0-leaf0 200gbit",
        "tux1-leaf0 200gbit",
        "tux2-leaf1 100gbit",
    ];
    assert_eq!(links(&fabric), expected);
    assert_eq!(fabric.nodes().len(), 4);
}

#[test]
fn a_slurm_switch_may_be_below_several_others() {
    let fabric = graph(
        "SwitchName=l0 Nodes=a\nSwitchName=l1 Nodes=b\nSwitchName=s0 Switches=l[0-1]\nSwitchName=s1 Switches=l[0-1]\n",
    );
    assert_eq!(levels(&fabric), [("l0", 1), ("l1", 1), ("s0", 2), ("s1", 2)]);
    assert_eq!(fabric.links().len(), 6);
}

const DUMP: &str = r##"
#
# Topology file: generated on Tue Jun  5 14:15:10 2007
#
# Initiated from node 0000000000100000 port 0000000000100001

vendid=0x2c9
devid=0xcb20
sysimgguid=0x200000
switchguid=0x200000(200000)
Switch	36 "S-0000000000200000"		# "MF0;leaf0:MSB7800/U1" base port 0 lid 2 lmc 0
[1]	"H-0000000000100000"[1](100001) 		# "tux0 mlx5_0" lid 4 4xEDR
[2][ext 2]	"H-0000000000100002"[1](100003) 		# "tux0 mlx5_1" lid 5 4xEDR
[3]	"H-0000000000100004"[1](100005) 		# "odd, one" lid 6 4xFDR
[35]	"S-0000000000200001"[1]		# "spine" lid 3 4xHDR
[36]	"S-0000000000200001"[2]		# "spine" lid 3 4xHDR
[37]	"H-0000000000300000"[1](300001) 		# "Mellanox Technologies Aggregation Node" lid 9 4xEDR

switchguid=0x200001(200001)
Switch	36 "S-0000000000200001"		# "spine" base port 0 lid 3 lmc 0
[1]	"S-0000000000200000"[35]		# "MF0;leaf0:MSB7800/U1" lid 2 4xHDR
[2]	"S-0000000000200000"[36]		# "MF0;leaf0:MSB7800/U1" lid 2 4xHDR

caguid=0x300000
Ca	1 "H-0000000000300000"		# "Mellanox Technologies Aggregation Node"
[1](300001) 	"S-0000000000200000"[37]		# lid 9 lmc 0 "MF0;leaf0:MSB7800/U1" lid 2 4xEDR

caguid=0x100000
Ca	1 "H-0000000000100000"		# "tux0 mlx5_0"
[1](100001) 	"S-0000000000200000"[1]		# lid 4 lmc 0 "MF0;leaf0:MSB7800/U1" lid 2 4xEDR

caguid=0x100002
Ca	1 "H-0000000000100002"		# "tux0 mlx5_1"
[1](100003) 	"S-0000000000200000"[2]		# lid 5 lmc 0 "MF0;leaf0:MSB7800/U1" lid 2 4xEDR

caguid=0x100004
Ca	1 "H-0000000000100004"		# "odd, one"
[1](100005) 	"S-0000000000200000"[3]		# lid 6 lmc 0 "MF0;leaf0:MSB7800/U1" lid 2 4xFDR
"##;

#[test]
fn dumps_of_ibnetdiscover_are_read_and_every_cable_counts_once() {
    let fabric = graph(DUMP);
    assert_eq!(levels(&fabric), [("leaf0", 1), ("spine", 2)]);
    let names: Vec<&str> = fabric.hosts().map(|host| fabric.vertices()[host].name.as_str()).collect();
    assert_eq!(names, ["odd--one", "tux0"], "in the order of their names");
    let rates: Vec<String> = fabric.links().iter().map(|link| link.rate.to_string()).collect();
    assert_eq!(fabric.links().len(), 5, "{rates:?}");
    let count = |rate: &str| rates.iter().filter(|known| *known == rate).count();
    assert_eq!((count("100gbit"), count("200gbit"), count("54.544gbit")), (2, 2, 1));
}

#[test]
fn devices_that_share_a_description_go_by_their_identifiers() {
    let fabric = graph(
        &DUMP.replace("odd, one", "MT23108").replace("tux0 mlx5_0", "MT23108").replace("\"spine\"", "\"MT23108\""),
    );
    for name in ["H-0000000000100004", "H-0000000000100000", "S-0000000000200001", "tux0", "leaf0"] {
        assert!(fabric.find(name).is_some(), "{name}");
    }
}

#[test]
fn hosts_that_have_no_name_of_their_own_yet_stay_apart() {
    let fabric = graph(&DUMP.replace("tux0 mlx5_0", "localhost mlx5_0").replace("odd, one", "localhost mlx5_0"));
    for name in ["H-0000000000100000", "H-0000000000100004", "tux0"] {
        assert!(fabric.find(name).is_some(), "{name}");
    }
}

const IRREGULAR: &str = r#"
[fabric]
name = "odd"
[[switch]]
name = "a[0-1]"
[[switch]]
name = "b"
level = 3
node = false
[[server]]
name = "an0"
switch = "b"
rate = "40gbit"
[[host]]
name = "h[0-2]"
switch = "a0"
rate = "10gbit"
[[host]]
name = "twin"
[[link]]
ends = ["twin", "a[0-1]"]
[[link]]
ends = ["a[0-1]", "b"]
count = 2
rate = "25gbit"
"#;

/// A damaged dump has identifiers that are none. The file that is written of it can be read.
#[test]
fn no_identifier_is_taken_for_a_list_of_names() {
    let dump = graph(
        "switchguid=0x1(1)\nSwitch 4 \"S-1,2\" # \"\" lid 2\n[1] \"H-[1]\"[1](2) # \"\" lid 4 4xEDR\n\n\
         caguid=0x2\nCa 1 \"H-[1]\" # \"\"\n[1](2) \"S-1,2\"[1] # lid 4 4xEDR\n",
    );
    assert_eq!(links(&graph(&dump.to_toml())), links(&dump));
}

#[test]
fn graphs_in_toml_may_have_any_shape() {
    let fabric = graph(IRREGULAR);
    assert_eq!((fabric.name(), fabric.links().len()), ("odd", 9));
    assert_eq!(levels(&fabric), [("a0", 1), ("a1", 1), ("b", 3)]);
    let nodes: Vec<(&str, Option<LinkRate>)> =
        fabric.nodes().iter().map(|node| (node.name.as_str(), node.nic)).collect();
    assert_eq!(nodes, [("a0", None), ("a1", None), ("an0", Some(LinkRate::gbit(40)))]);
}

#[test]
fn the_tree_that_a_manager_serves_is_a_graph_too() {
    let fabric = graph(
        "[[node]]\nname = \"s\"\n[[node]]\nname = \"l\"\nparent = \"s\"\n[[host]]\nname = \"h\"\nleaf = \"l\"\n\
         [[host]]\nname = \"*\"\nleaf = \"s\"\n",
    );
    assert_eq!(links(&fabric), ["h-l 100gbit", "l-s 100gbit"]);
    assert_eq!(levels(&fabric), [("s", 2), ("l", 1)]);
}

#[test]
fn what_is_wrong_is_told_with_line_cause_and_remedy() {
    let toml = |more: &str| format!("[[switch]]\nname = \"s\"\n[[host]]\nname = \"h\"\nswitch = \"s\"\n{more}");
    let many: Vec<String> = (0..17).map(|i| format!("\"10.{i}.0.1\"")).collect();
    let cases = [
        ("SwitchName=s Nodes=h\nSwitchName=t Speed=9\n".to_owned(), "test.conf:2: `Speed=9` is no field"),
        ("BlockName=b Nodes=h\n".to_owned(), "test.conf:1: `BlockName=b` is no field"),
        ("SwitchName=s Nodes=h[0\n".to_owned(), "test.conf:1: `h[0` has an unpaired bracket"),
        ("SwitchName=s Nodes=h Nodes=g\n".to_owned(), "test.conf:1: `Nodes=g`: the line has this field already"),
        ("SwitchName=s Nodes=h\nNodes=g\n".to_owned(), "test.conf:2: the line has no SwitchName="),
        ("SwitchName=s Nodes=h LinkSpeed=fast\n".to_owned(), "test.conf:1: `fast` is no rate"),
        (
            "SwitchName=s Nodes=h LinkSpeed=99999999999999999999\n".to_owned(),
            "test.conf:1: `99999999999999999999` is no rate",
        ),
        ("SwitchName=s\nSwitchName=t Switches=u\n".to_owned(), "test.conf:2: `u` is neither a switch nor a host"),
        ("SwitchName=s Switches=t\nSwitchName=t Switches=s\n".to_owned(), "test.conf:1: switch `s` lies below itself"),
        ("SwitchName=s Nodes=h\n\nSwitchName=s Nodes=g\n".to_owned(), "test.conf:3: `s` stands there twice"),
        ("SwitchName=s\n".to_owned(), "test.conf: there is no host with a name"),
        (DUMP.replace("4xFDR", "4xWDR"), "test.conf:14: `4xWDR` is no rate"),
        (DUMP.replace("lid 6 4xFDR", "lid 6"), "test.conf:14: a port line is"),
        (DUMP.replace("\n[1]\t\"H-", "\n[one]\t\"H-"), "test.conf:12: a port line is"),
        (DUMP.replace("devid=0xcb20", "garbage"), "test.conf:8: `garbage` starts no line of ibnetdiscover's"),
        (toml("[[link]]\nends = [\"s\", \"x\"]\n"), "test.conf:6: `x` is neither a switch nor a host"),
        (toml("[[link]]\nends = [\"s\", \"s\"]\n"), "test.conf:6: a link connects `s` with itself"),
        (toml("[[link]]\nends = [\"s\", \"h\"]\ncount = 0\n"), "test.conf:6: 0 parallel links"),
        (toml("[[host]]\nname = \"s\"\n"), "test.conf:6: `s` stands there twice"),
        (
            toml("[[host]]\nname = \"g\"\n[[link]]\nends = [\"g\", \"h\"]\n"),
            "test.conf:8: a link connects the hosts `g` and `h`",
        ),
        (toml("[[server]]\nname = \"n\"\nswitch = \"h\"\n"), "test.conf:6: `h` is no switch"),
        (toml("[[server]]\nname = \"h\"\nswitch = \"s\"\n"), "test.conf: `h` stands there twice"),
        (toml("[[host]]\nname = \"g\"\ncolour = 1\n"), "test.conf:8: unknown field `colour`"),
        (toml("[[host]]\nname = \"g\"\nswitch = \"s\"\nrate = \"1\"\n"), "test.conf:6: `1` is no rate"),
        ("[[switch]]\nname = \"s\"\nlevel = 65\n".to_owned(), "test.conf:1: level 65; switches have 1 to 64"),
        ("[[switch]]\nname = \"s[0-999999]\"\n".to_owned(), "test.conf:1: `s[0-999999]` stands for more than"),
        (toml("[fabric]\nmtu = 100\n"), "test.conf:7: the mtu 100 lies outside"),
        (toml("[limits]\nwindow = 65\n"), "test.conf:7: limit `window` = 65"),
        (
            toml("[[host]]\nname = \"g[0-1]\"\naddress = \"10.0.0.1\"\n"),
            "test.conf:6: `g[0-1]` stands for several names",
        ),
        (
            toml("[[switch]]\nname = \"t\"\nnode = false\naddress = \"10.0.0.1\"\n"),
            "test.conf:6: switch `t` has an address and no aggregation node",
        ),
        (toml("[[host]]\nname = \"g\"\naddress = \"10.0.0\"\n"), "test.conf:8: invalid IP address syntax"),
        (
            toml("[[host]]\nname = \"g\"\nswitch = \"s\"\naddresses = [\"10.0.0.1\", \"10.0.0.2\"]\n"),
            "test.conf:6: host `g` has 2 addresses and 1 links",
        ),
        (
            toml("[[host]]\nname = \"g\"\naddress = \"10.0.0.1\"\naddresses = [\"10.0.0.1\"]\n"),
            "test.conf:6: `g` has `address` and `addresses`",
        ),
        (
            toml("[[switch]]\nname = \"t\"\naddress = \"10.0.0.1\"\naddresses = [\"10.0.0.2\"]\n"),
            "test.conf:6: `t` has `address` and `addresses`",
        ),
        (
            toml("[[switch]]\nname = \"t\"\naddresses = [\"10.0.0.1\", \"10.0.0.1\"]\n"),
            "test.conf:6: `t` has the address 10.0.0.1 twice",
        ),
        (toml("[[switch]]\nname = \"t\"\naddresses = []\n"), "test.conf:6: `t` has an empty list of addresses"),
        (
            toml(&format!("[[server]]\nname = \"t\"\nswitch = \"s\"\naddresses = [{}]\n", many.join(", "))),
            "test.conf:6: `t` has 17 addresses; 1 to 16 are possible",
        ),
        (
            toml("[[switch]]\nname = \"t[0-1]\"\ncontrol = \"10.0.0.1\"\n"),
            "test.conf:6: `t[0-1]` stands for several names, which cannot have the same addresses",
        ),
        (
            toml("[[switch]]\nname = \"t[0-1]\"\naddresses = [\"10.0.0.1\", \"10.1.0.1\"]\n"),
            "test.conf:6: `t[0-1]` stands for several names, which cannot have the same addresses",
        ),
        (
            toml("[[switch]]\nname = \"t\"\nnode = false\naddresses = [\"10.0.0.1\"]\n"),
            "test.conf:6: switch `t` has an address and no aggregation node",
        ),
        (
            toml("[[host]]\nname = \"g[7]\"\nswitch = \"s\"\naddresses = [\"10.0.0.1\", \"10.0.0.2\"]\n"),
            "test.conf:6: host `g7` has 2 addresses and 1 links",
        ),
        (
            toml("[[host]]\nname = \"g[0-1]\"\naddresses = [\"10.0.0.1\"]\n"),
            "test.conf:6: `g[0-1]` stands for several names",
        ),
        ("".to_owned(), "test.conf: there is no [[node]]"),
    ];
    for (text, expected) in cases {
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.starts_with(&format!("topology {expected}")), "{message}\nexpected {expected}");
        assert!(message.rsplit_once("; ").is_some_and(|(_, remedy)| remedy.len() > 8), "no remedy: {message}");
    }
}

#[test]
fn nodes_are_where_the_operator_says() {
    let mut fabric = graph(IRREGULAR);
    let kept = |fabric: &Graph| fabric.nodes().iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    fabric.keep_nodes(&["b".into(), "a1".into()]).unwrap();
    assert_eq!(kept(&fabric), ["a1", "b", "an0"]);
    let b = fabric.find("b").unwrap();
    assert_eq!(fabric.nodes_at(b).iter().map(|node| fabric.nodes()[*node].switch).collect::<Vec<_>>(), [b, b]);
    assert!(matches!(fabric.keep_nodes(&["h0".into()]), Err(GraphFault::NotASwitch(_))));
    assert!(matches!(fabric.keep_nodes(&["x".into()]), Err(GraphFault::Unknown(_))));
    fabric.keep_nodes(&[]).unwrap();
    assert_eq!(kept(&fabric), ["an0"]);
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let error = FabricFile::read(Path::new("/nonexistent/file")).err().unwrap();
    assert!(matches!(error.fault, Fault::Unreadable(_)), "{error}");
}

#[test]
fn shapes_have_the_links_that_they_should() {
    let made = |shape: Shape| shape.graph(LinkRate::DEFAULT).unwrap();
    let counts = |graph: &Graph| (graph.hosts().count(), graph.switches().count(), graph.links().len());
    assert_eq!(counts(&made(Shape::FatTree2 { hosts: 32, ports: 8 })), (32, 12, 32 + 32));
    // A full fat tree of switches with p ports has p^3/4 hosts, 5p^2/4 switches, and in each of
    // three layers as many links as hosts.
    assert_eq!(counts(&made(Shape::FatTree3 { hosts: 128, ports: 8 })), (128, 80, 3 * 128));
    assert_eq!(counts(&made(Shape::DragonflyPlus { groups: 3, leaves: 2, hosts: 2 })), (12, 12, 12 + 12 + 6));
    assert_eq!(counts(&made(Shape::Torus { sides: [4, 2, 1], hosts: 1 })), (8, 8, 8 + 8 + 4));
    assert_eq!(counts(&made(Shape::Hypercube { dimensions: 4, hosts: 2 })), (32, 16, 32 + 32));
}

#[test]
fn measures_that_make_no_fabric_are_refused() {
    for shape in [
        Shape::FatTree2 { hosts: 33, ports: 8 },
        Shape::FatTree3 { hosts: 1, ports: 7 },
        Shape::FatTree3 { hosts: 0, ports: 8 },
        Shape::DragonflyPlus { groups: 1, leaves: 1, hosts: 1 },
        Shape::DragonflyPlus { groups: 128, leaves: 128, hosts: 128 },
        Shape::Torus { sides: [64, 64, 64], hosts: 128 },
        Shape::Hypercube { dimensions: 0, hosts: 1 },
    ] {
        assert!(shape.graph(LinkRate::DEFAULT).is_err(), "{shape:?}");
    }
}

#[test]
fn ten_thousand_hosts_are_written_and_read() {
    let fabric = Shape::FatTree3 { hosts: 10_000, ports: 40 }.graph(LinkRate::DEFAULT).unwrap();
    let text = fabric.to_toml();
    assert!(text.len() < 1 << 20, "{}", text.len());
    assert_eq!(links(&graph(&text)), links(&fabric));
}

pub(crate) fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![
        (1u32..33).prop_map(|hosts| Shape::FatTree2 { hosts, ports: 8 }),
        (1u32..55).prop_map(|hosts| Shape::FatTree3 { hosts, ports: 6 }),
        (2u32..5, 1u32..4, 1u32..4).prop_map(|(groups, leaves, hosts)| Shape::DragonflyPlus { groups, leaves, hosts }),
        (1u32..5, 1u32..5, 1u32..3, 1u32..3).prop_map(|(x, y, z, hosts)| Shape::Torus { sides: [x, y, z], hosts }),
        (1u32..5, 1u32..4).prop_map(|(dimensions, hosts)| Shape::Hypercube { dimensions, hosts }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(shape in shapes()) {
        let fabric = shape.graph(LinkRate::gbit(25)).unwrap();
        let again = graph(&fabric.to_toml());
        prop_assert_eq!(links(&again), links(&fabric));
        prop_assert_eq!(levels(&again), levels(&fabric));
        let hosts = |graph: &Graph| graph.hosts().map(|host| graph.vertices()[host].name.clone()).collect::<Vec<_>>();
        prop_assert_eq!(hosts(&again), hosts(&fabric));
        let nodes = |graph: &Graph| graph.nodes().iter().map(|node| (node.name.clone(), node.nic)).collect::<Vec<_>>();
        prop_assert_eq!(nodes(&again), nodes(&fabric));
        prop_assert_eq!(again.to_toml(), fabric.to_toml());
    }

    #[test]
    fn any_text_is_read_or_refused(
        start in prop_oneof![Just("SwitchName=s "), Just("caguid=0x1\n"), Just("[[switch]]\n"), Just("")],
        text in "[A-Za-z0-9=\\[\\]\",#\n\t\\\\ -]{0,80}",
    ) {
        let _ = parse(&format!("{start}{text}"));
    }

    #[test]
    fn a_damaged_dump_is_read_or_refused(at in 0..DUMP.len(), with in "[\\[\\]\"#x0-9 \n]{0,3}", cut in 0usize..30) {
        let mut text = DUMP.to_owned();
        text.replace_range(at..(at + cut).min(DUMP.len()), &with);
        let _ = parse(&text);
    }
}
