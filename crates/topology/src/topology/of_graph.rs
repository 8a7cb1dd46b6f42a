//! A graph as a fabric that a manager serves: its nodes and hosts in the graph's order.

use super::{AggregationNode, Host, NODES_MAX, Topology, index_hosts};
use crate::error::Fault;
use crate::graph::{Graph, GraphFault, Settings};

pub(super) fn topology(graph: Graph, settings: Settings) -> Result<Topology, Fault> {
    let Settings { mtu, faults, limits, addresses, control, via } = settings;
    match graph.nodes().len() {
        0 => return Err(GraphFault::NoNodes.into()),
        count if count > NODES_MAX => return Err(Fault::TooManyNodes(count)),
        _ => {}
    }
    let of = |name: &str| addresses.get(name).cloned().unwrap_or_default();
    let via = |name: &str| via.get(name).copied().unwrap_or_default();
    let node = |name: &String| {
        let (addresses, via) = (of(name), via(name));
        let control = control.get(name).copied();
        AggregationNode { name: name.clone(), parent: None, depth: 0, addresses, control, rate: None, via }
    };
    let host = |name: &String| {
        let (addresses, via) = (of(name), via(name));
        Host { name: name.clone(), leaves: Vec::new(), addresses, rate: None, via }
    };
    let nodes = graph.nodes().iter().map(|known| node(&known.name)).collect();
    let hosts: Vec<Host> = graph.hosts().map(|vertex| host(&graph.vertices()[vertex].name)).collect();
    let (name, by_host) = (graph.name().to_owned(), index_hosts(&hosts));
    Ok(Topology { name, mtu, faults, nodes, hosts, by_host, limits, graph: Some(graph) })
}
