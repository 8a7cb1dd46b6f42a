//! What a tree takes of a fabric, with names for the parts of which it takes it.
//!
//! Indices are valid for one reading of one file. Names can be kept for a later reading, though the
//! fabric may have changed meanwhile: parts that no longer exist carry nothing.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Copies;
use crate::graph::Graph;

/// Streams of a tree on links and at nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Footprint {
    links: Vec<OnLink>,
    nodes: Vec<AtNode>,
}

/// The names of the two ends, which of the parallel links between them it is, and the streams.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct OnLink(String, String, usize, u32);

/// A node's name, and the streams from below and from above.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct AtNode(String, u32, u32);

impl Footprint {
    /// The footprint of streams in this graph.
    pub fn of(graph: &Graph, copies: &Copies) -> Footprint {
        let name = |vertex: usize| graph.vertices()[vertex].name.clone();
        let link = |(link, count): &(usize, u32)| {
            let [first, second] = graph.links()[*link].ends;
            let nth = parallel(graph, first, second).position(|other| other == *link);
            OnLink(name(first), name(second), nth.expect("a link ends at its ends"), *count)
        };
        let node = |(node, below, above): &(usize, u32, u32)| AtNode(graph.nodes()[*node].name.clone(), *below, *above);
        Footprint { links: copies.links.iter().map(link).collect(), nodes: copies.nodes.iter().map(node).collect() }
    }

    /// The footprint of both together.
    #[must_use]
    pub fn and(mut self, other: Footprint) -> Footprint {
        self.links.extend(other.links);
        self.nodes.extend(other.nodes);
        self
    }

    /// The same streams in another graph, as far as it has the parts that carried them.
    pub fn in_graph(&self, graph: &Graph) -> Copies {
        let link = |OnLink(first, second, nth, count): &OnLink| {
            let (first, second) = (graph.find(first)?, graph.find(second)?);
            let link = parallel(graph, first, second).nth(*nth)?;
            Some((link, *count))
        };
        let by_name: HashMap<&str, usize> =
            graph.nodes().iter().enumerate().map(|(at, node)| (node.name.as_str(), at)).collect();
        let node = |AtNode(name, below, above): &AtNode| Some((*by_name.get(name.as_str())?, *below, *above));
        Copies {
            links: self.links.iter().filter_map(link).collect(),
            nodes: self.nodes.iter().filter_map(node).collect(),
        }
    }
}

/// The links between two vertices, in the file's order.
pub(crate) fn parallel(graph: &Graph, first: usize, second: usize) -> impl Iterator<Item = usize> + '_ {
    // A host has few links, and a switch has many.
    let fewer = if graph.links_at(first).len() <= graph.links_at(second).len() { first } else { second };
    let other = if fewer == first { second } else { first };
    graph.links_at(fewer).iter().copied().filter(move |link| graph.links()[*link].other(fewer) == other)
}
