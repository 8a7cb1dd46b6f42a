//! A fabric's file in any format: TOML, Slurm's topology.conf, ibnetdiscover.
//!
//! Asserted: a file is read or refused with words and a remedy; a graph that was read comes back
//! the same from the TOML that it is written as, and can be drawn.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use trib_topology::Topology;
use trib_topology::draw;
use trib_topology::graph::{Graph, LinkRate};

fuzz_target!(|text: &str| {
    match Topology::parse(text, Path::new(NAME)) {
        Ok(topology) => assert!(!topology.nodes().is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let Ok(graph) = Graph::parse(text, Path::new(NAME), LinkRate::DEFAULT) else { return };
    if graph.vertices().len() > VERTICES_WATCHED {
        return;
    }
    let again = Graph::parse(&graph.to_toml(), Path::new(NAME), LinkRate::DEFAULT).expect("it was written here");
    assert_eq!((again.hosts().count(), again.switches().count()), (graph.hosts().count(), graph.switches().count()));
    assert_eq!(again.links().len(), graph.links().len());
    assert_eq!(again.nodes().len(), graph.nodes().len());
    let _ = draw::text(&graph);
    assert!(draw::svg(&graph).ends_with("</svg>\n"));
});

const NAME: &str = "fabric";
/// Larger graphs say nothing new and take longer.
const VERTICES_WATCHED: usize = 64;
