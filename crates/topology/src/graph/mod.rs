//! The physical fabric as a graph: switches, hosts, links, and where aggregation nodes are.
//!
//! ```text
//!            spine0   spine1        level 2     a switch may have a node in it,
//!            /  |  \ /  |  \                    an `an0`: a server beside it with one NIC,
//!      an0-leaf0  leaf1  leaf2      level 1     or none: then data only passes through
//!          |  |    |  |    |  |
//!          h0 h1   h2 h3   h4 h5    level 0
//! ```
//! Map: `load` (which format a file has), `slurm`, `ibnetdiscover`, `toml_file` and `tree_file`
//! (the readers), `job_graph` (a tree by hand, for one job), `settings` (what else a manager finds
//! in such a file), `write` (back to TOML), `make` (fabrics of regular shape), `builder` (checks
//! and bounds), `levels`, `rate`, `error`.
//!
//! Every cable is a link of its own, even if others are parallel to it: a connection travels over
//! one of them.

mod builder;
mod error;
mod ibnetdiscover;
mod job_graph;
mod levels;
mod load;
mod make;
mod rate;
mod settings;
mod slurm;
mod toml_file;
mod tree_file;
mod write;

use std::collections::{HashMap, HashSet};

pub use error::GraphFault;
pub(crate) use job_graph::job_graph;
pub(crate) use load::read_graph;
pub use load::{FabricFile, Format};
pub use make::{Shape, ShapeError};
pub use rate::LinkRate;
pub(crate) use settings::Settings;

/// The most switches and hosts together.
pub const VERTICES_MAX: usize = 1 << 18;
/// The most links.
pub const LINKS_MAX: usize = 1 << 20;

/// A fabric. Vertices, links and nodes are named by their index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    name: String,
    vertices: Vec<Vertex>,
    links: Vec<Link>,
    nodes: Vec<Node>,
    links_at: Vec<Vec<usize>>,
    nodes_at: Vec<Vec<usize>>,
    by_name: HashMap<String, usize>,
}

/// A switch or a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vertex {
    /// Its name.
    pub name: String,
    /// Whether it is a switch or a host.
    pub kind: Kind,
    /// How far above the hosts it stands; 0 for hosts, at least 1 for switches.
    pub level: u32,
}

/// What a vertex is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A host, which is a leaf of trees.
    Host,
    /// A switch, which connects.
    Switch,
}

/// One cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The vertices at its ends.
    pub ends: [usize; 2],
    /// Its rate in each direction.
    pub rate: LinkRate,
}

impl Link {
    /// The end that is not `vertex`.
    pub fn other(&self, vertex: usize) -> usize {
        if self.ends[0] == vertex { self.ends[1] } else { self.ends[0] }
    }
}

/// One aggregation node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its name. A node in a switch has the switch's name.
    pub name: String,
    /// The switch in which or beside which it is.
    pub switch: usize,
    /// For a server, the rate of its one NIC, over which the data of all its children come.
    pub nic: Option<LinkRate>,
}

impl Graph {
    /// The fabric's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Switches and hosts, in the file's order.
    pub fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }

    /// The links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The aggregation nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Indices of the links that end at a vertex.
    pub fn links_at(&self, vertex: usize) -> &[usize] {
        &self.links_at[vertex]
    }

    /// Indices of the nodes in or beside a vertex.
    pub fn nodes_at(&self, vertex: usize) -> &[usize] {
        &self.nodes_at[vertex]
    }

    /// The vertex of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Whether a vertex is a host.
    pub fn is_host(&self, vertex: usize) -> bool {
        self.vertices[vertex].kind == Kind::Host
    }

    /// Indices of the hosts.
    pub fn hosts(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.vertices.len()).filter(|vertex| self.is_host(*vertex))
    }

    /// Leaves an aggregation node only in these switches. Servers beside switches stay.
    pub fn keep_nodes(&mut self, switches: &[String]) -> Result<(), GraphFault> {
        let mut kept = HashSet::new();
        for name in switches {
            let switch = self.find(name).ok_or_else(|| GraphFault::Unknown(name.clone()))?;
            if self.is_host(switch) {
                return Err(GraphFault::NotASwitch(name.clone()));
            }
            kept.insert(switch);
        }
        let servers = std::mem::take(&mut self.nodes).into_iter().filter(|node| node.nic.is_some());
        let inside = |switch: usize| Node { name: self.vertices[switch].name.clone(), switch, nic: None };
        self.nodes = self.switches().filter(|switch| kept.contains(switch)).map(inside).chain(servers).collect();
        self.nodes_at = nodes_at(self.vertices.len(), &self.nodes);
        Ok(())
    }

    /// Indices of the switches.
    pub fn switches(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.vertices.len()).filter(|vertex| !self.is_host(*vertex))
    }
}

fn nodes_at(vertices: usize, nodes: &[Node]) -> Vec<Vec<usize>> {
    let mut nodes_at = vec![Vec::new(); vertices];
    for (at, node) in nodes.iter().enumerate() {
        nodes_at[node.switch].push(at);
    }
    nodes_at
}

#[cfg(test)]
pub(crate) mod tests;
