//! The form of a fabric as a value, and the topology file that says it to the manager.
//!
//! ```text
//!            root
//!           /    \
//!       leaf0    leaf1 ...      every host may hang below every leaf
//! ```

use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use super::error::FabricError;

/// One manager, one root node and some leaf nodes below it, each its own process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shape {
    /// Leaf nodes: 1 to 64.
    pub leaves: u16,
    /// Worker threads of each node: 1 to 64.
    pub workers: u16,
    /// Largest IP packet on the fabric's links, bytes.
    pub mtu: u16,
    /// Address of this machine that manager and nodes listen on.
    pub listen: IpAddr,
}

impl Shape {
    /// The local fabric: everything on loopback.
    pub fn local(leaves: u16, workers: u16) -> Self {
        Self { leaves, workers, mtu: LOOPBACK_MTU, listen: IpAddr::V4(Ipv4Addr::LOCALHOST) }
    }

    /// Refuses what cannot be built.
    pub(crate) fn check(&self) -> Result<(), FabricError> {
        let Self { leaves, workers, .. } = *self;
        let counts = 1..=COUNT_MAX;
        if counts.contains(&leaves) && counts.contains(&workers) {
            Ok(())
        } else {
            Err(FabricError::Shape { leaves, workers })
        }
    }

    /// Names of the aggregation nodes, the root first.
    pub fn nodes(&self) -> Vec<String> {
        let leaves = (0..self.leaves).map(leaf_name);
        std::iter::once(ROOT.to_owned()).chain(leaves).collect()
    }

    /// The topology file of the manager.
    pub fn topology(&self, fabric: &str) -> String {
        let mut text = format!("[fabric]\nname = \"{fabric}\"\nmtu = {}\n\n[[node]]\nname = \"{ROOT}\"\n", self.mtu);
        for leaf in 0..self.leaves {
            let name = leaf_name(leaf);
            write!(text, "\n[[node]]\nname = \"{name}\"\nparent = \"{ROOT}\"\n")
                .expect("writing to memory cannot fail");
        }
        let leaves: Vec<String> = (0..self.leaves).map(|leaf| format!("\"{}\"", leaf_name(leaf))).collect();
        write!(text, "\n[[host]]\nname = \"*\"\nleaves = [{}]\n", leaves.join(", "))
            .expect("writing to memory cannot fail");
        text
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { leaves, workers, mtu, listen } = self;
        write!(f, "{leaves} leaf nodes, {workers} workers per node, mtu {mtu}, on {listen}")
    }
}

fn leaf_name(leaf: u16) -> String {
    format!("leaf{leaf}")
}

/// A logical node has at most 64 children, and more threads than that are no use on any machine of today.
pub(crate) const COUNT_MAX: u16 = 64;
const ROOT: &str = "root";
/// Loopback would take 64 KiB; a jumbo frame is what real fabrics have, so that the demo runs what they run.
const LOOPBACK_MTU: u16 = 9000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topology_names_every_node_once_and_lets_hosts_hang_below_every_leaf() {
        let expected = "[fabric]\nname = \"local\"\nmtu = 9000\n\n[[node]]\nname = \"root\"\n\n[[node]]\nname = \"leaf0\"\nparent = \"root\"\n\n\
             [[node]]\nname = \"leaf1\"\nparent = \"root\"\n\n[[host]]\nname = \"*\"\nleaves = [\"leaf0\", \"leaf1\"]\n";
        assert_eq!(Shape::local(2, 1).topology("local"), expected);
        assert_eq!(Shape::local(2, 1).nodes(), ["root", "leaf0", "leaf1"]);
    }

    #[test]
    fn shapes_that_cannot_be_built_are_refused() {
        for (leaves, workers) in [(0, 1), (1, 0), (65, 1), (1, 65)] {
            assert!(Shape::local(leaves, workers).check().is_err(), "{leaves} {workers}");
        }
        Shape::local(64, 64).check().unwrap();
    }
}
