use std::path::Path;

use trib_messages::quota::QuotaField;

use super::*;

fn parse(text: &str) -> Result<Topology, TopologyError> {
    Topology::parse(text, Path::new("fabric.toml"))
}

const TREE: &str = r#"
[fabric]
name = "lab"
mtu = 9000
[[node]]
name = "leaf"
parent = "root"
[[node]]
name = "root"
[[host]]
name = "*"
leaf = "leaf"
[[host]]
name = "h0"
leaves = ["root", "leaf"]
address = "10.0.0.1"
[limits]
groups = 100
streams = { default = 2, maximum = 8 }
window = { maximum = 4 }
"#;

#[test]
fn a_good_file_is_read_whole() {
    let topology = parse(TREE).unwrap();
    assert_eq!((topology.name(), topology.mtu()), ("lab", 9000));
    assert_eq!(topology.nodes()[0].parent, Some(1));
    assert_eq!((topology.nodes()[0].depth, topology.nodes()[1].depth), (1, 0));
    assert_eq!(topology.hosts()[1].leaves, [1, 0]);
    let limits = topology.limits();
    assert_eq!((limits[QuotaField::Groups].default, limits[QuotaField::Groups].maximum), (100, 100));
    assert_eq!((limits[QuotaField::Streams].default, limits[QuotaField::Streams].maximum), (2, 8));
    assert_eq!((limits[QuotaField::Window].default, limits[QuotaField::Window].maximum), (4, 4));
    assert_eq!(limits[QuotaField::Osts], LimitTable::default()[QuotaField::Osts]);
}

#[test]
fn nodes_and_hosts_may_have_an_address_for_each_port() {
    let several = "addresses = [\"10.0.0.1\", \"fd00::1\"]\n";
    let tree =
        parse(&format!("[[node]]\nname = \"a\"\n{several}[[host]]\nname = \"h\"\nleaf = \"a\"\n{several}")).unwrap();
    let graph = format!(
        "[[switch]]\nname = \"a\"\n{several}[[server]]\nname = \"an\"\nswitch = \"a\"\n{several}\
         [[host]]\nname = \"h\"\nswitch = \"a\"\n{several}[[link]]\nends = [\"h\", \"a\"]\n"
    );
    let graph = parse(&graph).unwrap();
    let expected = ["10.0.0.1", "fd00::1"].map(|address| address.parse::<IpAddr>().unwrap());
    for fabric in [&tree, &graph] {
        assert!(fabric.nodes().iter().all(|node| node.addresses == expected));
        assert_eq!(fabric.hosts()[0].addresses, expected);
    }
    assert_eq!((tree.nodes().len(), graph.nodes().len()), (1, 2));
}

#[test]
fn hosts_are_found_by_full_then_short_name_then_star() {
    let topology = parse(TREE).unwrap();
    assert_eq!(topology.host_index("h0"), Some(1));
    assert_eq!(topology.host_index("h0.cluster.example"), Some(1));
    assert_eq!(topology.host_index("h1"), Some(0));
}

// Each fault has its line and its cause, and every message ends with a remedy.
#[test]
fn every_fault_names_file_line_and_remedy() {
    let root = "[[node]]\nname = \"a\"\n";
    let host = "[[host]]\nname = \"*\"\nleaf = \"a\"\n";
    let with = |more: &str| format!("{root}{host}{more}");
    let table: [(String, Option<usize>, &str); 28] = [
        (with("[[node]]\nname = 3\n"), Some(7), "invalid type"),
        (with("[[node]]\nnmae = \"x\"\n"), Some(7), "unknown field `nmae`"),
        (with("colour = 1"), Some(6), "unknown field `colour`"),
        (with("[[node]]\nname = \"b\"\nparent = \"z\"\n"), Some(8), "`z`, which is no node"),
        (with("[[node]]\nname = \"b\"\n"), Some(7), "both have no parent"),
        (with("[[node]]\nname = \"a\"\nparent = \"a\"\n"), Some(7), "stands there twice"),
        (with("[[node]]\nname = \"b\"\nparent = \"b\"\n"), Some(7), "`b` is its own ancestor"),
        (
            with(
                "[[node]]\nname = \"x\"\nparent = \"c\"\n[[node]]\nname = \"b\"\nparent = \"c\"\n[[node]]\nname = \"c\"\nparent = \"b\"\n",
            ),
            None,
            "is its own ancestor",
        ),
        (with("[[node]]\nname = \"\"\nparent = \"a\"\n"), Some(7), "empty name"),
        (with("[[host]]\nname = \"*\"\nleaf = \"a\"\n"), Some(7), "host `*` stands there twice"),
        (with("[[host]]\nname = \"h\"\nleaf = \"q\"\n"), Some(8), "hangs on `q`"),
        (with("[[host]]\nname = \"h\"\n"), Some(7), "needs either"),
        (with("[[host]]\nname = \"h\"\nleaves = []\n"), Some(7), "needs either"),
        (with("[[host]]\nname = \"h\"\nleaves = [\"a\", \"a\"]\n"), Some(8), "names leaf `a` twice"),
        (
            format!("{root}[[host]]\nname = \"*\"\nleaf = \"a\"\naddress = \"10.0.0.1\"\n"),
            Some(4),
            "cannot have one address",
        ),
        (
            format!("{root}[[host]]\nname = \"*\"\nleaf = \"a\"\naddresses = [\"10.0.0.1\"]\n"),
            Some(4),
            "cannot have one address",
        ),
        (
            with("[[node]]\nname = \"b\"\nparent = \"a\"\naddresses = [\"10.0.0.1\", \"10.0.0.1\"]\n"),
            Some(7),
            "`b` has the address 10.0.0.1 twice",
        ),
        (with("[[host]]\nname = \"h\"\nleaf = \"a\"\naddresses = []\n"), Some(7), "`h` has an empty list"),
        (with("[fabric]\nmtu = 100\n"), Some(7), "mtu 100"),
        (with("[limits]\nwindow = 65\n"), Some(7), "limit `window` = 65 is out of range: it is 1 to 64 fragments"),
        (with("[limits]\npayload = 20\n"), Some(7), "multiple of 8"),
        (
            with("[limits]\nstaging = 2000\n"),
            Some(7),
            "limit `staging` = 2000 is out of range: it is 1 to 1024 segments",
        ),
        (with("[limits]\nflight = { maximum = 65536 }\n"), Some(7), "it is 1 to 1024 segments"),
        (with("[limits]\ntrees = 2\n"), Some(7), "unknown limit `trees`, expected one of groups, window, osts"),
        (with("[limits]\ngroups = { default = 9, maximum = 8 }\n"), Some(7), "above the maximum"),
        (with("[limits]\ngroups = \"many\"\n"), Some(7), "a number, or {"),
        (with("[limits]\nheartbeat_ms = 50000\n"), None, "three times"),
        (root.into(), None, "no [[host]]"),
    ];
    for (text, line, cause) in table {
        let error = parse(&text).expect_err(&text);
        let message = error.to_string();
        assert!(message.contains(cause), "{text}\n{message}");
        assert!(message.ends_with(error.fault.remedy()), "{message}");
        if let Some(line) = line {
            assert!(message.starts_with(&format!("topology fabric.toml:{line}: ")), "{text}\n{message}");
        }
    }
    assert!(matches!(parse("").unwrap_err().fault, Fault::NoNodes));
    let missing = Topology::load(Path::new("/nonexistent/fabric.toml")).unwrap_err().to_string();
    assert!(missing.contains("/nonexistent/fabric.toml: cannot read it"), "{missing}");
}

#[test]
fn a_chain_may_be_deep_but_not_endless() {
    let chain = |nodes: usize| {
        let mut text = String::from("[[host]]\nname = \"*\"\nleaf = \"n0\"\n[[node]]\nname = \"n0\"\n");
        for i in 1..nodes {
            text += &format!("[[node]]\nname = \"n{i}\"\nparent = \"n{}\"\n", i - 1);
        }
        parse(&text)
    };
    assert!(chain(DEPTH_MAX + 1).is_ok());
    assert!(matches!(chain(DEPTH_MAX + 2).unwrap_err().fault, Fault::TooDeep(_)));
}

#[test]
fn a_graph_is_served_with_its_settings_and_without_them() {
    let fabric = parse(
        "[fabric]\nmtu = 9000\n[[switch]]\nname = \"s\"\naddress = \"10.0.0.1\"\n[[host]]\nname = \"h\"\nswitch = \"s\"\n\
         [limits]\ngroups = 7\n",
    );
    let fabric = fabric.unwrap();
    assert_eq!((fabric.name(), fabric.mtu(), fabric.limits()[QuotaField::Groups].maximum), ("fabric", 9000, 7));
    assert_eq!(fabric.node("s").unwrap().addresses, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
    let slurm = parse("SwitchName=s Nodes=h[0-1]\n").unwrap();
    assert_eq!((slurm.mtu(), slurm.limits(), slurm.hosts().len()), (1500, &LimitTable::default(), 2));
    assert_eq!(slurm.host_index("h1.cluster.example"), Some(1));
    let bare = parse("[[switch]]\nname = \"s\"\nnode = false\n[[host]]\nname = \"h\"\nswitch = \"s\"\n").unwrap_err();
    assert!(bare.to_string().contains("no switch has an aggregation node; leave `node = false` out"), "{bare}");
    let many: String = (0..=NODES_MAX).map(|i| format!("SwitchName=s{i} Nodes=h\n")).collect();
    assert!(matches!(parse(&many).unwrap_err().fault, Fault::TooManyNodes(_)));
}

// Operators copy from docs/topology.md.
#[test]
fn the_documentation_says_what_is_so() {
    let text = include_str!("../../../../docs/topology.md");
    let example = text.split("```toml").nth(1).unwrap().split("```").next().unwrap();
    let topology = parse(example).unwrap();
    assert_eq!((topology.nodes().len(), topology.hosts().len(), topology.mtu()), (3, 2, 9000));
    let graph = parse(text.split("```toml").nth(2).unwrap().split("```").next().unwrap()).unwrap();
    assert_eq!((graph.nodes().len(), graph.hosts().len(), graph.mtu()), (3, 8, 9000));
    assert_eq!(graph.graph().map(|graph| graph.links().len()), Some(8 + 4 * 2));
}
