//! Files as real tools write them (`tests/files/README.md` tells how) are read, drawn, converted
//! and planned.

use std::path::{Path, PathBuf};

use trib_topology::draw;
use trib_topology::graph::{FabricFile, Graph, LinkRate};
use trib_topology::predict::{Model, Ranks, forecast};
use trib_topology::trees::{Loads, find_tree};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn load(name: &str) -> Graph {
    FabricFile::read(&path(name)).and_then(|file| file.graph(LinkRate::DEFAULT)).unwrap()
}

/// Reads a file and checks that all its hosts are spanned, that it can be drawn, and that it is the
/// same fabric as TOML.
fn check(name: &str, hosts: usize, switches: usize, links: usize) -> Graph {
    let graph = load(name);
    assert_eq!(
        (graph.hosts().count(), graph.switches().count(), graph.links().len()),
        (hosts, switches, links),
        "{name}"
    );
    let all: Vec<usize> = graph.hosts().collect();
    let tree = find_tree(&graph, &all, &Loads::idle(&graph)).unwrap();
    assert_eq!(tree.leaves.len(), hosts, "{name}");
    assert!(forecast(&graph, Ranks::flat(&all), 4, 1, &Model::server()).unwrap().choice(1 << 20).time(1 << 20) > 0.0);
    assert!(draw::svg(&graph).ends_with("</svg>\n"));
    let text = draw::text(&graph);
    assert!(graph.switches().all(|switch| text.contains(&graph.vertices()[switch].name)), "{text}");
    let again = Graph::parse(&graph.to_toml(), Path::new(name), LinkRate::DEFAULT).unwrap();
    assert_eq!((again.vertices().len(), again.links().len()), (graph.vertices().len(), links), "{name}");
    graph
}

#[test]
fn two_switches_with_parallel_links() {
    let graph = check("two-switches.ibnetdiscover", 4, 2, 6);
    assert_eq!(graph.links().iter().map(|link| link.rate.to_string()).collect::<Vec<_>>(), ["8gbit"; 6]);
}

#[test]
fn a_fat_tree_that_ibsim_simulated() {
    let graph = check("fat-tree.ibnetdiscover", 32, 12, 64);
    let level = |name: &str| graph.vertices()[graph.find(name).unwrap()].level;
    assert_eq!((level("leaf7"), level("spine3")), (1, 2));
}

#[test]
fn a_torus_that_ibsim_simulated() {
    check("torus.ibnetdiscover", 32, 16, 64);
}

#[test]
fn a_slurm_file() {
    let graph = check("topology.conf", 46, 5, 50);
    let all: Vec<usize> = graph.hosts().collect();
    let tree = find_tree(&graph, &all, &Loads::idle(&graph)).unwrap();
    assert_eq!((graph.vertices()[tree.root()].name.as_str(), tree.depth()), ("core", 2));
}

#[test]
fn a_slurm_file_of_a_machines_shape() {
    let graph = check("frontera.conf", 8008, 188, 9100);
    let all: Vec<usize> = graph.hosts().collect();
    let job = forecast(&graph, Ranks::flat(&all), 8, 1, &Model::server()).unwrap();
    let roots: Vec<&str> = job.trees.iter().map(|tree| graph.vertices()[tree.root()].name.as_str()).collect();
    assert_eq!(roots, ["core1", "core2", "core3", "core4", "core5", "core6"]);
    // Half a rack stays below its leaf.
    let half: Vec<usize> = all[44..88].to_vec();
    let tree = find_tree(&graph, &half, &Loads::idle(&graph)).unwrap();
    assert_eq!((graph.vertices()[tree.root()].name.as_str(), tree.depth()), ("leaf002", 1));
}
