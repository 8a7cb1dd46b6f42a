//! A graph while it grows. Every bound is checked before anything is kept.

use std::collections::{HashMap, HashSet};

use super::error::{GraphFault, LEVEL_MAX, PARALLEL_MAX};
use super::{Graph, Kind, LINKS_MAX, Link, LinkRate, Node, VERTICES_MAX, Vertex, levels, nodes_at};

/// The graph that readers and makers fill.
pub(super) struct Builder {
    name: String,
    vertices: Vec<Vertex>,
    links: Vec<Link>,
    nodes: Vec<Node>,
    by_name: HashMap<String, usize>,
}

impl Builder {
    pub(super) fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { name, vertices: Vec::new(), links: Vec::new(), nodes: Vec::new(), by_name: HashMap::new() }
    }

    /// Adds a switch, with or without a node in it. Without a level it gets one when the graph is
    /// finished.
    pub(super) fn switch(&mut self, name: &str, level: Option<u32>, node: bool) -> Result<usize, GraphFault> {
        if let Some(level) = level.filter(|level| !(1..=LEVEL_MAX).contains(level)) {
            return Err(GraphFault::Level(level));
        }
        let switch = self.vertex(name, Kind::Switch, level.unwrap_or(0))?;
        if node {
            self.nodes.push(Node { name: name.into(), switch, nic: None });
        }
        Ok(switch)
    }

    pub(super) fn host(&mut self, name: &str) -> Result<usize, GraphFault> {
        self.vertex(name, Kind::Host, 0)
    }

    /// Adds a server with one NIC beside a switch, on which a node runs.
    pub(super) fn server(&mut self, name: &str, switch: usize, nic: LinkRate) -> Result<(), GraphFault> {
        if name.is_empty() {
            return Err(GraphFault::EmptyName("server"));
        }
        if self.nodes.len() >= VERTICES_MAX {
            return Err(GraphFault::TooManyVertices);
        }
        if self.vertices[switch].kind != Kind::Switch {
            return Err(GraphFault::NotASwitch(self.vertices[switch].name.clone()));
        }
        self.nodes.push(Node { name: name.into(), switch, nic: Some(nic) });
        Ok(())
    }

    /// `count` parallel links.
    pub(super) fn link(&mut self, ends: [usize; 2], rate: LinkRate, count: u32) -> Result<(), GraphFault> {
        let [first, second] = ends.map(|end| &self.vertices[end]);
        if ends[0] == ends[1] {
            return Err(GraphFault::Loop(first.name.clone()));
        }
        if first.kind == Kind::Host && second.kind == Kind::Host {
            return Err(GraphFault::HostToHost(first.name.clone(), second.name.clone()));
        }
        if !(1..=PARALLEL_MAX).contains(&count) {
            return Err(GraphFault::Parallel(count));
        }
        if self.links.len() + count as usize > LINKS_MAX {
            return Err(GraphFault::TooManyLinks);
        }
        self.links.extend(std::iter::repeat_n(Link { ends, rate }, count as usize));
        Ok(())
    }

    pub(super) fn find(&self, name: &str) -> Result<usize, GraphFault> {
        self.by_name.get(name).copied().ok_or_else(|| GraphFault::Unknown(name.into()))
    }

    /// Sets the level of a switch that was made without one.
    pub(super) fn set_level(&mut self, switch: usize, level: u32) -> Result<(), GraphFault> {
        if level > LEVEL_MAX {
            return Err(GraphFault::Level(level));
        }
        self.vertices[switch].level = level;
        Ok(())
    }

    /// The graph, in which all switches have levels.
    pub(super) fn finish(mut self) -> Result<Graph, GraphFault> {
        if !self.vertices.iter().any(|vertex| vertex.kind == Kind::Host) {
            return Err(GraphFault::NoHosts);
        }
        if !self.vertices.iter().any(|vertex| vertex.kind == Kind::Switch) {
            return Err(GraphFault::NoSwitches);
        }
        self.check_servers()?;
        let mut links_at = vec![Vec::new(); self.vertices.len()];
        for (at, link) in self.links.iter().enumerate() {
            link.ends.iter().for_each(|end| links_at[*end].push(at));
        }
        levels::derive(&mut self.vertices, &self.links, &links_at);
        let Self { name, vertices, links, nodes, by_name } = self;
        let nodes_at = nodes_at(vertices.len(), &nodes);
        Ok(Graph { name, vertices, links, nodes, links_at, nodes_at, by_name })
    }

    // A node in a switch has the switch's name, which is the name of a vertex; servers must have
    // other names.
    fn check_servers(&self) -> Result<(), GraphFault> {
        let mut seen = HashSet::new();
        for node in &self.nodes {
            let is_taken = node.nic.is_some() && self.by_name.contains_key(&node.name);
            if is_taken || !seen.insert(&node.name) {
                return Err(GraphFault::Duplicate(node.name.clone()));
            }
        }
        Ok(())
    }

    fn vertex(&mut self, name: &str, kind: Kind, level: u32) -> Result<usize, GraphFault> {
        if name.is_empty() {
            return Err(GraphFault::EmptyName(if kind == Kind::Host { "host" } else { "switch" }));
        }
        if self.vertices.len() >= VERTICES_MAX {
            return Err(GraphFault::TooManyVertices);
        }
        let at = self.vertices.len();
        if self.by_name.insert(name.into(), at).is_some() {
            return Err(GraphFault::Duplicate(name.into()));
        }
        self.vertices.push(Vertex { name: name.into(), kind, level });
        Ok(at)
    }
}
