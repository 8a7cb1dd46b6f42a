use super::*;

#[test]
fn what_calibration_writes_is_what_plan_reads() {
    let about = About {
        machine: "a \"box\", 4 cores".into(),
        kernel: "6.1".into(),
        date: "2026-01-02".into(),
        how: "x".into(),
    };
    let constant = Constant::named("node_byte_ns").unwrap();
    let text = written(&about, &[Measured { constant, value: 0.1234, spread: 0.05, how: "leaf".into() }]);
    let read = Constants::parse(&text, "here.toml").unwrap();
    assert!((read.model.node_byte - 0.1234e-9).abs() < 1e-18);
    assert_eq!(read.model.hop, Model::server().hop);
    assert!(read.source.starts_with("here.toml, measured on a \"box\", 4 cores, Linux 6.1, 2026-01-02; "), "{read}");
    assert!(read.source.contains("defaults for servers: hop_us, message_us"), "what was not measured is named: {read}");
}

#[test]
fn the_file_of_a_laboratory_has_all_of_its_constants() {
    let read = Constants::parse(&laboratory_file(), "lab.toml").unwrap();
    for constant in CONSTANTS {
        let (found, wanted) = (constant.get(&read.model), constant.get(&Model::laboratory()));
        assert!((found - wanted).abs() < 1e-4, "{}: {found}, {wanted}", constant.name);
    }
    assert!(!read.source.contains("defaults"), "{}", read.source);
}

#[test]
fn nonsense_is_named_with_what_would_do() {
    let refused = |text: &str| Constants::parse(text, "f.toml").unwrap_err().to_string();
    assert!(refused("[constants]\nhops = 1").contains("f.toml: there is no constant `hops`; there are hop_us, "));
    assert!(
        refused("[constants]\ntree_share = 2").contains("tree_share = 2 makes no sense: give a number from 0.01 to 1")
    );
    assert!(refused("[constants]\nhop_us = nan").contains("makes no sense"));
    assert!(refused("[constants]\nhop_us = \"x\"").contains("--calibrate"));
    assert!(refused("constants = 3").contains("f.toml"));
    let mut constants = Constants::server();
    assert!(constants.replace(&["workers".into()]).unwrap_err().to_string().contains("NAME=NUMBER"));
    constants.replace(&["workers=2".into()]).unwrap();
    assert_eq!(constants.model.workers, 2.0);
    assert!(constants.source.ends_with("by hand: workers=2"));
}

#[test]
fn the_document_has_every_constant_with_its_values_and_their_basis() {
    let document = include_str!("../../../../../docs/topology.md");
    for Constant { name, meaning, server, basis, laboratory, .. } in CONSTANTS {
        let row = format!("| `{name}` | {server} | {laboratory} | {meaning} | {basis} |");
        assert!(document.contains(&row), "docs/topology.md lacks this row:\n{row}");
    }
}
