use std::path::Path;

use trib_messages::candidates::BACKUPS_MAX;

use super::*;
use crate::plan::{PlanNode, Program, plan};

const LEAVES: &str = "[[node]]\nname = \"spine\"\n[[node]]\nname = \"leaf0\"\nparent = \"spine\"\n[[node]]\nname = \"leaf1\"\n\
    parent = \"spine\"\n[[node]]\nname = \"leaf2\"\nparent = \"spine\"\n[[host]]\nname = \"*\"\n\
    leaves = [\"leaf0\", \"leaf1\", \"leaf2\"]\n";

const SLURM: &str = "SwitchName=leaf0 Nodes=a[0-1]\nSwitchName=leaf1 Nodes=b[0-1]\nSwitchName=leaf2 Nodes=c\n\
    SwitchName=spine0 Switches=leaf[0-1]\nSwitchName=spine1 Switches=leaf[0-1]\nSwitchName=core Switches=spine[0-1],leaf2\n";

/// A line for each logical node of a job: its process, and its backups.
fn told(file: &str, text: &str, hosts: &[&str], without: &[&str], most: usize) -> Vec<String> {
    let topology = Topology::parse(text, Path::new(file)).unwrap();
    let hosts: Vec<String> = hosts.iter().map(|host| host.to_string()).collect();
    let plan = plan(&topology, &Program::flat(&hosts), &topology.idle_loads()).unwrap();
    let name = |at: usize| topology.nodes()[at].name.as_str();
    let may = (0..topology.nodes().len()).filter(|at| !without.contains(&name(*at))).collect();
    let ranked = backups(&topology, &plan, &may, most);
    let line = |(node, backups): (&PlanNode, &Vec<usize>)| {
        let backups: Vec<&str> = backups.iter().map(|at| name(*at)).collect();
        format!("{}: {}", node.name, backups.join(" "))
    };
    plan.nodes.iter().zip(&ranked).map(line).collect()
}

#[test]
fn nodes_of_the_same_level_come_first_and_each_backs_up_another() {
    let expected = [
        "spine: leaf0 leaf1 leaf2",
        "leaf0: leaf1 leaf2 spine",
        "leaf1: leaf2 leaf0 spine",
        "leaf2: leaf0 leaf1 spine",
    ];
    for _ in 0..2 {
        assert_eq!(told("test.toml", LEAVES, &["x"; 6], &[], BACKUPS_MAX), expected, "equal input, equal ranks");
    }
}

#[test]
fn a_node_that_is_away_or_alone_is_no_backup_and_has_none() {
    assert_eq!(told("test.toml", LEAVES, &["x"], &["leaf1", "spine"], 2), ["leaf0: leaf2"]);
    assert_eq!(told("test.toml", LEAVES, &["x"], &["leaf1", "spine", "leaf2"], 2), ["leaf0: "]);
    assert_eq!(told("test.toml", LEAVES, &["x"], &[], 0), ["leaf0: "]);
    assert_eq!(told("test.toml", LEAVES, &["x"], &[], 1), ["leaf0: leaf1"]);
}

#[test]
fn in_a_graph_a_node_beside_is_nearer_than_one_above_and_an_idle_one_is_better() {
    let told = told("topology.conf", SLURM, &["a0", "b0"], &[], 3);
    assert_eq!(told, ["spine0: spine1 core leaf0", "leaf0: leaf1 leaf2 spine1", "leaf1: leaf0 leaf2 spine0"]);
}
