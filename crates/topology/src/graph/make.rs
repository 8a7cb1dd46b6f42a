//! Fabrics of regular shape, as values.

use super::builder::Builder;
use super::{Graph, GraphFault, LinkRate};

/// A shape and its measures. Every switch has an aggregation node. All links have one rate, and are
/// single unless the shape says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Leaves and spines, with a link from each leaf to each spine. Half of a leaf's ports go down.
    FatTree2 {
        /// Hosts; the last leaf may have fewer than the others.
        hosts: u32,
        /// Ports of a switch, even.
        ports: u32,
    },
    /// Pods of leaves and spines, and cores above. The spine with number i in its pod has links to
    /// the i-th block of cores.
    FatTree3 {
        /// The number of hosts.
        hosts: u32,
        /// Ports of a switch, even.
        ports: u32,
    },
    /// Groups of leaves and spines, with a link from each leaf to each spine of its group, and
    /// links between the spines of any two groups.
    DragonflyPlus {
        /// The number of groups.
        groups: u32,
        /// The number of leaves of a group, and of its spines.
        leaves: u32,
        /// Hosts of a leaf.
        hosts: u32,
    },
    /// A grid that is closed in each of three dimensions. A dimension that is not wanted has 1.
    Torus {
        /// Switches in each dimension.
        sides: [u32; 3],
        /// Hosts of a switch.
        hosts: u32,
    },
    /// Switches whose numbers differ in one bit are connected.
    Hypercube {
        /// Bits of a number.
        dimensions: u32,
        /// Hosts of a switch.
        hosts: u32,
    },
}

/// Measures that give no fabric.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// A measure is outside its range.
    #[error("{what} is {given}; choose {least} to {most}")]
    Measure {
        /// The measure.
        what: &'static str,
        /// What was asked for.
        given: u32,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// The number of ports is odd.
    #[error("a switch has {0} ports; half of them go up, so choose an even number")]
    OddPorts(u32),
    /// The shape has more than a graph may have.
    #[error("{0}; {remedy}", remedy = .0.remedy())]
    Graph(#[from] GraphFault),
}

impl Shape {
    /// The fabric.
    pub fn graph(&self, rate: LinkRate) -> Result<Graph, ShapeError> {
        self.check()?;
        let mut fabric = Fabric { builder: Builder::new(self.name()), rate, hosts: 0 };
        match *self {
            Shape::FatTree2 { hosts, ports } => fabric.fat_tree_2(hosts, ports / 2),
            Shape::FatTree3 { hosts, ports } => fabric.fat_tree_3(hosts, ports / 2),
            Shape::DragonflyPlus { groups, leaves, hosts } => fabric.dragonfly_plus(groups, leaves, hosts),
            Shape::Torus { sides, hosts } => fabric.torus(sides, hosts),
            Shape::Hypercube { dimensions, hosts } => fabric.hypercube(dimensions, hosts),
        }?;
        Ok(fabric.builder.finish()?)
    }

    fn name(&self) -> &'static str {
        match self {
            Shape::FatTree2 { .. } | Shape::FatTree3 { .. } => "fat-tree",
            Shape::DragonflyPlus { .. } => "dragonfly-plus",
            Shape::Torus { .. } => "torus",
            Shape::Hypercube { .. } => "hypercube",
        }
    }

    fn check(&self) -> Result<(), ShapeError> {
        let bounded = |what, given, least, most| match (least..=most).contains(&given) {
            true => Ok(()),
            false => Err(ShapeError::Measure { what, given, least, most }),
        };
        match *self {
            Shape::FatTree2 { hosts, ports } | Shape::FatTree3 { hosts, ports } => {
                bounded("the number of ports", ports, 2, PORTS_MAX)?;
                if !ports.is_multiple_of(2) {
                    return Err(ShapeError::OddPorts(ports));
                }
                // With switches of p ports there are p pods of p/2 leaves with p/2 hosts each;
                // without pods there are p leaves.
                let half = ports / 2;
                let most = if matches!(self, Shape::FatTree2 { .. }) { ports * half } else { ports * half * half };
                bounded("the number of hosts", hosts, 1, most)
            }
            Shape::DragonflyPlus { groups, leaves, hosts } => {
                bounded("the number of groups", groups, 2, PORTS_MAX)?;
                bounded("the number of leaves", leaves, 1, PORTS_MAX)?;
                bounded("the number of hosts of a leaf", hosts, 1, PORTS_MAX)
            }
            Shape::Torus { sides, hosts } => {
                sides.iter().try_for_each(|side| bounded("a side", *side, 1, 64))?;
                bounded("the number of hosts of a switch", hosts, 1, PORTS_MAX)
            }
            Shape::Hypercube { dimensions, hosts } => {
                bounded("the number of dimensions", dimensions, 1, 16)?;
                bounded("the number of hosts of a switch", hosts, 1, PORTS_MAX)
            }
        }
    }
}

struct Fabric {
    builder: Builder,
    rate: LinkRate,
    hosts: u32,
}

impl Fabric {
    fn fat_tree_2(&mut self, hosts: u32, half: u32) -> Result<(), GraphFault> {
        let leaves = self.leaves(hosts, half, "leaf")?;
        let spines = self.switches(half, "spine", 2)?;
        self.connect(&leaves, &spines)
    }

    fn fat_tree_3(&mut self, hosts: u32, half: u32) -> Result<(), GraphFault> {
        let leaves = self.leaves(hosts, half, "leaf")?;
        let pods: Vec<&[usize]> = leaves.chunks(half as usize).collect();
        let spines = self.switches(pods.len() as u32 * half, "spine", 2)?;
        for (pod, spines) in pods.iter().zip(spines.chunks(half as usize)) {
            self.connect(pod, spines)?;
        }
        let cores = self.switches(half * half, "core", 3)?;
        for (i, spine) in spines.iter().enumerate() {
            let block = i % half as usize * half as usize;
            self.connect(&[*spine], &cores[block..block + half as usize])?;
        }
        Ok(())
    }

    fn dragonfly_plus(&mut self, groups: u32, leaves: u32, hosts: u32) -> Result<(), GraphFault> {
        let mut spines = Vec::new();
        for group in 0..groups {
            let lower = self.leaves(leaves * hosts, hosts, &format!("g{group}leaf"))?;
            let upper = self.switches(leaves, &format!("g{group}spine"), 2)?;
            self.connect(&lower, &upper)?;
            spines.push(upper);
        }
        // Two groups have as many links between them as a group has spines, spread over the spines
        // of both.
        for first in 0..spines.len() {
            for second in first + 1..spines.len() {
                for (i, spine) in spines[first].iter().enumerate() {
                    let peer = spines[second][(i + first + second) % spines[second].len()];
                    self.builder.link([*spine, peer], self.rate, 1)?;
                }
            }
        }
        Ok(())
    }

    fn torus(&mut self, sides: [u32; 3], hosts: u32) -> Result<(), GraphFault> {
        let count: u32 = sides.iter().product();
        let switches = self.leaves(count * hosts, hosts, "switch")?;
        let [x, y, _] = sides.map(|side| side as usize);
        let steps = [1, x, x * y];
        for at in 0..count as usize {
            for (side, step) in sides.map(|side| side as usize).into_iter().zip(steps) {
                let position = at / step % side;
                // In a dimension of two, the way round would be the same link again.
                if side > 2 || (side == 2 && position == 0) {
                    let next = at - position * step + (position + 1) % side * step;
                    self.builder.link([switches[at], switches[next]], self.rate, 1)?;
                }
            }
        }
        Ok(())
    }

    fn hypercube(&mut self, dimensions: u32, hosts: u32) -> Result<(), GraphFault> {
        let count: u32 = 1 << dimensions;
        let switches = self.leaves(count * hosts, hosts, "switch")?;
        for at in 0..switches.len() {
            for other in (0..dimensions).map(|bit| at ^ (1 << bit)).filter(|other| *other > at) {
                self.builder.link([switches[at], switches[other]], self.rate, 1)?;
            }
        }
        Ok(())
    }

    // Adds switches with hosts, `each` on every one but the last, numbered on over the whole
    // fabric.
    fn leaves(&mut self, hosts: u32, each: u32, name: &str) -> Result<Vec<usize>, GraphFault> {
        let leaves = self.switches(hosts.div_ceil(each), name, 1)?;
        for i in 0..hosts {
            let host = self.builder.host(&format!("h{}", self.hosts))?;
            self.hosts += 1;
            self.builder.link([host, leaves[(i / each) as usize]], self.rate, 1)?;
        }
        Ok(leaves)
    }

    fn switches(&mut self, count: u32, name: &str, level: u32) -> Result<Vec<usize>, GraphFault> {
        (0..count).map(|i| self.builder.switch(&format!("{name}{i}"), Some(level), true)).collect()
    }

    fn connect(&mut self, lower: &[usize], upper: &[usize]) -> Result<(), GraphFault> {
        for lower in lower {
            for upper in upper {
                self.builder.link([*lower, *upper], self.rate, 1)?;
            }
        }
        Ok(())
    }
}

const PORTS_MAX: u32 = 128;
