//! A topology file that gives the tree by hand, seen as a graph: each node is a switch with a node
//! in it.

use super::builder::Builder;
use super::{Graph, GraphFault, LinkRate};
use crate::topology::Topology;

/// Makes the graph. Links get `rate` if the file does not tell theirs. The host `*` has no name for
/// which to plan, and is left out.
pub(super) fn read(topology: &Topology, rate: LinkRate) -> Result<Graph, GraphFault> {
    let deepest = topology.nodes().iter().map(|node| node.depth).max().unwrap_or(0);
    let mut builder = Builder::new(topology.name());
    let mut switches = Vec::with_capacity(topology.nodes().len());
    for node in topology.nodes() {
        switches.push(builder.switch(&node.name, Some((deepest - node.depth) as u32 + 1), true)?);
    }
    for (node, switch) in topology.nodes().iter().zip(&switches) {
        if let Some(parent) = node.parent {
            builder.link([*switch, switches[parent]], node.rate.unwrap_or(rate), 1)?;
        }
    }
    for host in topology.hosts().iter().filter(|host| host.name != "*") {
        let vertex = builder.host(&host.name)?;
        for leaf in &host.leaves {
            builder.link([vertex, switches[*leaf]], host.rate.unwrap_or(rate), 1)?;
        }
    }
    builder.finish()
}
