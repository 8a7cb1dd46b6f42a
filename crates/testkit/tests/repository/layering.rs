//! Crates depend downwards only. A dependency that is not in the table fails this test, and has to
//! be argued for here.
//!
//! ```text
//!   trib            tributary (capi)   sharp_coll   nccl_net_tributary
//!   compare  service
//!   sim   lab       (testkit: for tests only)
//!   client
//!   manager  node
//!   topology  proto  control  sums          transport     none of them knows another
//!   messages                  reduce        |
//!   keys ---------------------|------------ seal
//!   wire ---------------------+                   waiting, device, log (nothing below, no frames)
//! ```

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

/// Which of our crates each of our crates may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("trib-waiting", &[]),
    ("trib-device", &[]),
    ("trib-log", &[]),
    ("trib-wire", &[]),
    ("trib-keys", &["trib-wire"]),
    ("trib-seal", &["trib-wire", "trib-keys"]),
    ("trib-messages", &["trib-wire", "trib-keys"]),
    ("trib-reduce", &["trib-wire"]),
    ("trib-sums", &["trib-wire", "trib-reduce"]),
    ("trib-topology", &["trib-wire", "trib-messages"]),
    ("trib-proto", &["trib-wire", "trib-messages"]),
    ("trib-transport", &["trib-waiting", "trib-wire", "trib-keys", "trib-seal"]),
    ("trib-control", &["trib-wire", "trib-messages"]),
    ("trib-manager", &["trib-wire", "trib-keys", "trib-messages", "trib-topology", "trib-control"]),
    (
        "trib-node",
        &[
            "trib-waiting",
            "trib-wire",
            "trib-keys",
            "trib-seal",
            "trib-messages",
            "trib-reduce",
            "trib-proto",
            "trib-transport",
            "trib-control",
        ],
    ),
    (
        "trib-client",
        &[
            "trib-waiting",
            "trib-device",
            "trib-log",
            "trib-wire",
            "trib-keys",
            "trib-seal",
            "trib-messages",
            "trib-reduce",
            "trib-sums",
            "trib-proto",
            "trib-transport",
            "trib-control",
            "trib-node",
        ],
    ),
    ("trib-sim", &["trib-wire", "trib-proto"]),
    ("trib-launcher", &[]),
    ("trib-lab", &["trib-wire", "trib-topology", "trib-control"]),
    ("trib-compare", &["trib-wire", "trib-lab"]),
    ("trib-service", &["trib-log", "trib-wire", "trib-messages", "trib-control", "trib-manager", "trib-node"]),
    ("trib-testkit", &["trib-wire", "trib-messages"]),
    (
        "trib",
        &[
            "trib-log",
            "trib-wire",
            "trib-messages",
            "trib-reduce",
            "trib-sums",
            "trib-topology",
            "trib-proto",
            "trib-transport",
            "trib-control",
            "trib-manager",
            "trib-node",
            "trib-client",
            "trib-sim",
            "trib-lab",
            "trib-launcher",
            "trib-compare",
            "trib-service",
        ],
    ),
    ("tributary", &["trib-wire", "trib-client"]),
    ("nccl_net_tributary", &["trib-client"]),
    ("sharp_coll", &["trib-waiting", "trib-device", "trib-client"]),
    // This is the same library without a network, for tests.
    ("trib-null-client", &["trib-wire", "trib-messages", "trib-proto"]),
    ("sharp_coll_null", &["trib-waiting", "trib-device", "trib-null-client"]),
];

/// What tests may use in addition.
const FOR_TESTS: &str = "trib-testkit";

/// One dependency between two of our crates.
#[derive(Debug)]
struct Edge {
    from: String,
    to: String,
    for_tests: bool,
}

/// The dependencies that the table does not allow, as sentences.
fn offences<'a>(edges: &'a [Edge]) -> impl Iterator<Item = String> + 'a {
    edges.iter().filter_map(|Edge { from, to, for_tests }| {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| name == from) else {
            return Some(format!("{from} is not in the table of layers: add it"));
        };
        let fine = allowed.contains(&to.as_str()) || (*for_tests && to == FOR_TESTS);
        let how = if *for_tests { "in its tests " } else { "" };
        (!fine).then(|| format!("{from} uses {to} {how}but may use only {allowed:?}"))
    })
}

/// Every package of ours, as Cargo describes it.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn workspace() -> (BTreeSet<String>, Vec<Edge>) {
    let packages = packages();
    let names: BTreeSet<String> = packages.iter().map(|p| text(&p["name"])).collect();
    let mut edges = Vec::new();
    for package in &packages {
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = text(&dependency["name"]);
            if names.contains(&to) {
                edges.push(Edge { from: text(&package["name"]), to, for_tests: dependency["kind"] == "dev" });
            }
        }
    }
    (names, edges)
}

#[test]
fn crates_use_only_what_lies_below_them() {
    let (names, edges) = workspace();
    assert!(names.contains("trib-wire") && edges.len() >= 10, "the workspace was not read: {names:?}");
    let mut found: Vec<String> = offences(&edges).collect();
    found.extend(names.iter().filter(|n| !ALLOWED.iter().any(|(a, _)| a == n)).map(|n| format!("{n} has no layer")));
    assert!(found.is_empty(), "{found:#?}");
}

/// A packet filter takes `trib-wire` for the layout of a frame, and with it nothing that reads
/// text.
#[test]
fn frames_know_text_only_where_messages_ask_for_it() {
    let packages = packages();
    let wire = packages.iter().find(|package| package["name"] == "trib-wire").unwrap();
    let of_wire: Vec<&Value> = wire["dependencies"].as_array().unwrap().iter().collect();
    assert!(of_wire.iter().any(|d| d["name"] == "serde" && d["optional"] == true), "{of_wire:#?}");
    assert!(wire["features"].get("default").is_none(), "what is on by default, every packet filter has");
    let uses = packages.iter().flat_map(|package| {
        package["dependencies"].as_array().unwrap().iter().map(|dependency| (text(&package["name"]), dependency))
    });
    let asking: Vec<String> = uses
        .filter(|(_, dependency)| dependency["name"] == "trib-wire" && dependency["features"] != json!([]))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(asking, ["trib-messages"]);
}

#[test]
fn the_table_itself_has_no_way_up() {
    for (at, (name, allowed)) in ALLOWED.iter().enumerate() {
        for lower in *allowed {
            let below = ALLOWED[..at].iter().any(|(other, _)| other == lower);
            assert!(below, "{name} may use {lower}, which does not stand above it in the table");
        }
    }
}

#[test]
fn an_edge_upwards_is_named() {
    let edge = |from: &str, to: &str, for_tests| Edge { from: from.into(), to: to.into(), for_tests };
    let wrong = [
        edge("trib-proto", "trib-transport", false),
        edge("trib-wire", "trib-reduce", true),
        edge("trib-node", "trib-testkit", false),
        edge("trib-new", "trib-wire", false),
    ];
    let found: Vec<String> = offences(&wrong).collect();
    assert_eq!(found.len(), wrong.len());
    assert!(found[0].starts_with("trib-proto uses trib-transport but"));
    assert!(found[1].starts_with("trib-wire uses trib-reduce in its tests but"));
    assert_eq!(offences(&[edge("trib-reduce", "trib-testkit", true)]).count(), 0);
}
