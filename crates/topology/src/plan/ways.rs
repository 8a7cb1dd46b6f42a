//! What leads from a logical node to each of its children: the link of a host, which its ranks
//! share, or the links up to the node above.

use std::collections::BTreeMap;

use trib_wire::ids::{ChildIndex, ChildKind};

use super::in_graph::node_at;
use super::{Home, Plan, PlanNode};
use crate::graph::{Graph, LinkRate};
use crate::topology::Topology;
use crate::trees::Tree;

/// A way from a logical node to one child, or to the ranks of one host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// The children, in fold order.
    pub children: Vec<ChildIndex>,
    /// The host of the ranks, as they call it; `None` of an aggregation node.
    pub host: Option<String>,
    /// Of its slowest link; `None` where the topology does not say, or where both ends are one
    /// process or on one host.
    pub rate: Option<LinkRate>,
}

impl Plan {
    /// The ways of every logical node, in the order of [`Plan::nodes`], for ranks on `hosts` (by
    /// rank).
    pub fn ways(&self, topology: &Topology, hosts: &[String]) -> Vec<Vec<Way>> {
        let rates = Rates::of(self, topology);
        self.nodes.iter().map(|node| ways(self, node, &rates, hosts)).collect()
    }
}

fn ways(plan: &Plan, node: &PlanNode, rates: &Rates<'_>, hosts: &[String]) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let first = plan.nodes.first().map_or(0, |first| first.id.0);
    for (at, child) in node.children.iter().enumerate() {
        let children = vec![ChildIndex(at as u16)];
        match child.kind {
            ChildKind::Node(below) => {
                let below = plan.nodes[usize::from(below.0 - first)].home;
                let lead = match below {
                    Home::Rank(lead) if node.home != below => Some(lead.0 as usize),
                    _ => None,
                };
                let rate = match lead {
                    Some(lead) => rates.to_host(plan.hosts[lead]),
                    None => rates.to_node(node.home, below),
                };
                ways.push(Way { children, host: lead.map(|lead| hosts[lead].clone()), rate });
            }
            ChildKind::Rank(rank) => {
                let host = &hosts[rank.0 as usize];
                match known.get(host.as_str()) {
                    Some(way) => ways[*way].children.extend(children),
                    None => {
                        known.insert(host, ways.len());
                        let rate = node.home.node().and_then(|_| rates.to_host(plan.hosts[rank.0 as usize]));
                        ways.push(Way { children, host: Some(host.clone()), rate });
                    }
                }
            }
        }
    }
    ways
}

/// What the topology says of links: with each entry, or in a graph of every link.
struct Rates<'a> {
    topology: &'a Topology,
    graph: Option<InGraph<'a>>,
}

/// By host's vertex and by aggregation node, the slowest link on the way up to the next node.
struct InGraph<'a> {
    graph: &'a Graph,
    hosts: BTreeMap<usize, LinkRate>,
    nodes: BTreeMap<usize, LinkRate>,
}

impl<'a> Rates<'a> {
    fn of(plan: &Plan, topology: &'a Topology) -> Rates<'a> {
        let graph = topology.graph().zip(plan.tree.as_ref()).map(|(graph, tree)| InGraph::of(graph, tree));
        Rates { topology, graph }
    }

    fn to_node(&self, above: Home, below: Home) -> Option<LinkRate> {
        // A process may have too many children for one logical node.
        let index = below.node().filter(|_| above != below)?;
        match &self.graph {
            Some(in_graph) => in_graph.nodes.get(&index).copied(),
            None => self.topology.nodes()[index].rate,
        }
    }

    fn to_host(&self, host: usize) -> Option<LinkRate> {
        let host = &self.topology.hosts()[host];
        match &self.graph {
            Some(in_graph) => in_graph.hosts.get(&in_graph.graph.find(&host.name)?).copied(),
            None => host.rate,
        }
    }
}

impl<'a> InGraph<'a> {
    fn of(graph: &'a Graph, tree: &Tree) -> InGraph<'a> {
        let slowest = |vertex_link: usize, branch: usize, below: Option<usize>| {
            let nic = |node: usize| graph.nodes()[node].nic;
            let mut rate = graph.links()[vertex_link].rate;
            let mut at = branch;
            while let (None, Some((above, link))) = (tree.branches[at].node, tree.branches[at].parent) {
                rate = rate.min(graph.links()[link].rate);
                at = above;
            }
            let ends = [Some(node_at(tree, branch)), below];
            ends.into_iter().flatten().filter_map(nic).fold(rate, LinkRate::min)
        };
        let hosts = tree.leaves.iter().map(|leaf| (leaf.host, slowest(leaf.parent.1, leaf.parent.0, None)));
        let nodes = tree.branches.iter().filter_map(|branch| {
            let (node, (above, link)) = (branch.node?, branch.parent?);
            Some((node, slowest(link, above, Some(node))))
        });
        InGraph { graph, hosts: hosts.collect(), nodes: nodes.collect() }
    }
}
