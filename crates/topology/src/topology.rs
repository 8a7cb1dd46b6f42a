//! The checked fabric.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use trib_messages::via::Via;

use crate::addresses::addresses;
use crate::error::{Fault, TopologyError};
use crate::file::{self, File};
use crate::graph::{self, FabricFile, Graph, LinkRate};
use crate::limits::LimitTable;
use crate::trees::Loads;

/// The most aggregation nodes of a fabric.
pub(crate) const NODES_MAX: usize = 4096;
/// The most levels of nodes below the root.
pub(crate) const DEPTH_MAX: usize = 32;

/// The path MTU, in bytes, if a file says nothing.
pub(crate) const MTU_DEFAULT: u32 = 1500;

/// A fabric that a manager serves: one tree of aggregation nodes to which hosts are attached, or a
/// graph in which each job gets a tree of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    name: String,
    mtu: u32,
    faults: bool,
    nodes: Vec<AggregationNode>,
    hosts: Vec<Host>,
    by_host: BTreeMap<String, usize>,
    limits: LimitTable,
    graph: Option<Graph>,
}

/// One aggregation node (a process).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AggregationNode {
    /// Its name.
    pub name: String,
    /// The index of its parent in [`Topology::nodes`]; `None` at the root, and in a graph.
    pub parent: Option<usize>,
    /// How many levels it is below the root; 0 in a graph.
    pub depth: usize,
    /// The addresses from which it connects to its parent, if the file says. If there are several,
    /// its children reach it there too, one for each port.
    pub addresses: Vec<IpAddr>,
    /// The address from which it calls the manager, if the file says that this is another one.
    pub control: Option<IpAddr>,
    /// The rate of the link to its parent, if the file says. A graph knows its links itself.
    pub rate: Option<LinkRate>,
    /// By which transport it connects to its parent.
    pub via: Via,
}

impl AggregationNode {
    /// The address from which it connects by this port, if the file says. If there are fewer ports,
    /// they are counted round.
    pub fn connects_from(&self, port: usize) -> Option<IpAddr> {
        self.addresses.get(port % self.ports()).copied()
    }

    /// The address at which its children reach it by this port, if it has several.
    pub fn reached_at(&self, port: usize) -> Option<IpAddr> {
        self.connects_from(port).filter(|_| self.ports() > 1)
    }

    /// The number of addresses at which it is reached.
    pub(crate) fn ports(&self) -> usize {
        self.addresses.len().max(1)
    }
}

/// One host, or all hosts that have no entry of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its name, or `*`.
    pub name: String,
    /// The indices of its leaves in [`Topology::nodes`], in the file's order. There is at least
    /// one, except in a graph, where there are none.
    pub leaves: Vec<usize>,
    /// The addresses from which its ranks connect, if the file says: one, or one for each port, or
    /// in a graph one for each link.
    pub addresses: Vec<IpAddr>,
    /// The rate of the link to its leaf, if the file says. A graph knows its links itself.
    pub rate: Option<LinkRate>,
    /// By which transport its ranks connect to its leaf.
    pub via: Via,
}

impl Topology {
    /// Reads a topology file of any format.
    pub fn load(path: &Path) -> Result<Self, TopologyError> {
        Self::parse(FabricFile::read(path)?.text(), path)
    }

    /// Reads the text of a topology file; `path` stands in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self, TopologyError> {
        let wrong = |(line, fault)| TopologyError { file: path.into(), line, fault };
        if let Some((graph, settings)) = graph::read_graph(text, path, LinkRate::DEFAULT).map_err(wrong)? {
            return of_graph::topology(graph, settings).map_err(|fault| wrong((None, fault)));
        }
        let wrong = |(span, fault): Complaint| wrong((span.map(|span| line_of(text, span.start)), fault));
        let file: File = toml::from_str(text)
            .map_err(|error| wrong((error.span(), Fault::Syntax(error.message().trim().into()))))?;
        check(&file).map_err(wrong)
    }

    /// The fabric's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The length in bytes of the largest IP packet that passes everywhere.
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Whether tests may let processes of this fabric lose datagrams on purpose.
    pub fn faults(&self) -> bool {
        self.faults
    }

    /// The nodes, in the file's order.
    pub fn nodes(&self) -> &[AggregationNode] {
        &self.nodes
    }

    /// The hosts, in the file's order.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&AggregationNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The graph, if the file describes one.
    pub fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }

    /// The loads of the graph while there are no trees.
    pub fn idle_loads(&self) -> Loads {
        self.graph.as_ref().map(Loads::idle).unwrap_or_default()
    }

    /// The fabric's limits.
    pub fn limits(&self) -> &LimitTable {
        &self.limits
    }

    /// The index of the entry for a host: that of its full name, else that of its name up to the
    /// first dot, else that of `*`.
    pub(crate) fn host_index(&self, name: &str) -> Option<usize> {
        let short = name.split('.').next().unwrap_or(name);
        [name, short, "*"].into_iter().find_map(|key| self.by_host.get(key)).copied()
    }
}

/// A fault, and the part of the file in which it is.
pub(crate) type Complaint = (Option<Range<usize>>, Fault);

/// The file's MTU, or the default.
pub(crate) fn check_mtu(fabric: &file::Fabric) -> Result<u32, Complaint> {
    match &fabric.mtu {
        Some(mtu) if !(576..=65_536).contains(mtu.get_ref()) => at(mtu, Fault::Mtu(*mtu.get_ref())),
        Some(mtu) => Ok(*mtu.get_ref()),
        None => Ok(MTU_DEFAULT),
    }
}

fn check(file: &File) -> Result<Topology, Complaint> {
    let mtu = check_mtu(&file.fabric)?;
    let by_name = index_nodes(&file.node)?;
    let mut nodes = link_nodes(&file.node, &by_name)?;
    measure_depths(&file.node, &mut nodes)?;
    let hosts = check_hosts(&file.host, &by_name)?;
    let by_host = index_hosts(&hosts);
    let limits = LimitTable::from_file(&file.limits)?;
    let name = file.fabric.name.clone().unwrap_or_else(|| "fabric".into());
    let faults = file.fabric.faults;
    Ok(Topology { name, mtu, faults, nodes, hosts, by_host, limits, graph: None })
}

fn index_hosts(hosts: &[Host]) -> BTreeMap<String, usize> {
    hosts.iter().enumerate().map(|(i, host)| (host.name.clone(), i)).collect()
}

fn index_nodes(nodes: &[file::Node]) -> Result<BTreeMap<&str, usize>, Complaint> {
    match nodes.len() {
        0 => return Err((None, Fault::NoNodes)),
        count if count > NODES_MAX => return Err((None, Fault::TooManyNodes(count))),
        _ => {}
    }
    let mut by_name = BTreeMap::new();
    for (i, node) in nodes.iter().enumerate() {
        let name = node.name.get_ref();
        if name.is_empty() {
            return at(&node.name, Fault::EmptyName("node"));
        }
        if by_name.insert(name.as_str(), i).is_some() {
            return at(&node.name, Fault::DuplicateNode(name.clone()));
        }
    }
    Ok(by_name)
}

fn link_nodes(nodes: &[file::Node], by_name: &BTreeMap<&str, usize>) -> Result<Vec<AggregationNode>, Complaint> {
    let mut root: Option<&file::Node> = None;
    let mut linked = Vec::with_capacity(nodes.len());
    for node in nodes {
        let name = node.name.get_ref().clone();
        let parent = match (&node.parent, root) {
            (Some(parent), _) => match by_name.get(parent.get_ref().as_str()) {
                Some(index) => Some(*index),
                None => return at(parent, Fault::UnknownParent { node: name, parent: parent.get_ref().clone() }),
            },
            (None, Some(root)) => {
                return at(&node.name, Fault::TwoRoots { first: root.name.get_ref().clone(), second: name });
            }
            (None, None) => {
                root = Some(node);
                None
            }
        };
        let addresses = addresses(&name, node.address, node.addresses.as_deref());
        let addresses = addresses.or_else(|fault| at(&node.name, Fault::Addresses(fault)))?;
        let rate = rate(node.rate.as_ref())?;
        linked.push(AggregationNode { name, parent, depth: 0, addresses, control: node.control, rate, via: node.via });
    }
    Ok(linked)
}

// Follows every chain of parents to the root. A chain that is longer than the number of nodes runs
// in a circle, and the node that it has reached is on that circle. There is also a circle if every
// node has a parent.
fn measure_depths(file: &[file::Node], nodes: &mut [AggregationNode]) -> Result<(), Complaint> {
    for i in 0..nodes.len() {
        let (mut above, mut depth) = (nodes[i].parent, 0);
        while let Some(parent) = above {
            depth += 1;
            if depth > nodes.len() {
                return at(&file[parent].name, Fault::Cycle(nodes[parent].name.clone()));
            }
            above = nodes[parent].parent;
        }
        if depth > DEPTH_MAX {
            return at(&file[i].name, Fault::TooDeep(nodes[i].name.clone()));
        }
        nodes[i].depth = depth;
    }
    Ok(())
}

fn check_hosts(hosts: &[file::Host], by_name: &BTreeMap<&str, usize>) -> Result<Vec<Host>, Complaint> {
    if hosts.is_empty() {
        return Err((None, Fault::NoHosts));
    }
    let mut seen = BTreeMap::new();
    let mut checked = Vec::with_capacity(hosts.len());
    for host in hosts {
        let name = host.name.get_ref().clone();
        if name.is_empty() {
            return at(&host.name, Fault::EmptyName("host"));
        }
        if name == "*" && (host.address.is_some() || host.addresses.is_some()) {
            return at(&host.name, Fault::WildAddress);
        }
        if seen.insert(name.clone(), ()).is_some() {
            return at(&host.name, Fault::DuplicateHost(name));
        }
        let leaves = check_leaves(host, &name, by_name)?;
        let addresses = addresses(&name, host.address, host.addresses.as_deref());
        let addresses = addresses.or_else(|fault| at(&host.name, Fault::Addresses(fault)))?;
        checked.push(Host { name, leaves, addresses, rate: rate(host.rate.as_ref())?, via: host.via });
    }
    Ok(checked)
}

fn rate(text: Option<&Spanned<String>>) -> Result<Option<LinkRate>, Complaint> {
    let read = |text: &Spanned<String>| text.get_ref().parse().or_else(|expected| at(text, Fault::Rate(expected)));
    text.map(read).transpose()
}

fn check_leaves(host: &file::Host, name: &str, by_name: &BTreeMap<&str, usize>) -> Result<Vec<usize>, Complaint> {
    let named: Vec<&Spanned<String>> = match (&host.leaf, &host.leaves) {
        (Some(leaf), None) => vec![leaf],
        (None, Some(leaves)) if !leaves.is_empty() => leaves.iter().collect(),
        _ => return at(&host.name, Fault::NoLeaf(name.into())),
    };
    let mut leaves = Vec::with_capacity(named.len());
    for leaf in named {
        let (host, text) = (name.to_string(), leaf.get_ref().clone());
        match by_name.get(text.as_str()) {
            None => return at(leaf, Fault::UnknownLeaf { host, leaf: text }),
            Some(index) if leaves.contains(index) => return at(leaf, Fault::DuplicateLeaf { host, leaf: text }),
            Some(index) => leaves.push(*index),
        }
    }
    Ok(leaves)
}

fn at<T, S>(part: &Spanned<S>, fault: Fault) -> Result<T, Complaint> {
    Err((Some(part.span()), fault))
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

mod of_graph;
#[cfg(test)]
mod tests;
