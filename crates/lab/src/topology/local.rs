//! The local fabric: everything on loopback, for programs of this machine.
//!
//! ```text
//!            root
//!           /    \
//!       leaf0    leaf1 ...      every host may hang below every leaf
//! ```

use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use trib_topology::BACKUPS_MAX;

use super::counted;
use crate::lab::LabError;

/// One manager, one root node and some leaf nodes below it, each its own process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Local {
    /// Leaf nodes: 1 to 64.
    pub leaves: u16,
    /// Worker threads of each node: 1 to 64.
    pub workers: u16,
    /// Backups of each logical node: 0 to 11.
    #[serde(default)]
    pub backups: u16,
    /// Whether ranks of this machine share a host, as they do. Else each counts as one on a host of
    /// its own, so that all of them are children of aggregation nodes.
    #[serde(default)]
    pub shared_host: bool,
}

impl Local {
    /// What manager and nodes listen on.
    pub const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Refuses what cannot be built.
    pub(super) fn check(&self) -> Result<(), LabError> {
        for (what, given) in [("leaf nodes", self.leaves), ("workers", self.workers)] {
            if !(1..=COUNT_MAX).contains(&given) {
                return Err(LabError::Shape { what, given: given.into(), least: 1, most: COUNT_MAX.into() });
            }
        }
        if usize::from(self.backups) > BACKUPS_MAX {
            let (given, most) = (self.backups.into(), BACKUPS_MAX as u64);
            return Err(LabError::Shape { what: "backups", given, least: 0, most });
        }
        Ok(())
    }

    /// Names of the aggregation nodes, the root first.
    pub(super) fn nodes(&self) -> Vec<String> {
        let leaves = (0..self.leaves).map(leaf_name);
        std::iter::once(ROOT.to_owned()).chain(leaves).collect()
    }

    /// The topology file of the manager.
    pub(super) fn file(&self, fabric: &str) -> String {
        let mut text =
            format!("[fabric]\nname = \"{fabric}\"\nmtu = {}\n\n[[node]]\nname = \"{ROOT}\"\n", LOOPBACK_MTU);
        for leaf in 0..self.leaves {
            let name = leaf_name(leaf);
            write!(text, "\n[[node]]\nname = \"{name}\"\nparent = \"{ROOT}\"\n")
                .expect("writing to memory cannot fail");
        }
        let leaves: Vec<String> = (0..self.leaves).map(|leaf| format!("\"{}\"", leaf_name(leaf))).collect();
        write!(text, "\n[[host]]\nname = \"*\"\nleaves = [{}]\n", leaves.join(", "))
            .expect("writing to memory cannot fail");
        let backups = (self.backups > 0).then(|| format!("backups = {{ default = {} }}\n", self.backups));
        let levels = (!self.shared_host).then(|| "levels = { default = \"none\" }\n".to_owned());
        let limits: String = backups.into_iter().chain(levels).collect();
        if !limits.is_empty() {
            write!(text, "\n[limits]\n{limits}").expect("writing to memory cannot fail");
        }
        text
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { leaves, workers, backups, shared_host } = self;
        write!(f, "{}, {} per node, ", counted(*leaves, "leaf node"), counted(*workers, "worker"))?;
        if *backups > 0 {
            write!(f, "{} of each logical node, ", counted(*backups, "backup"))?;
        }
        if *shared_host {
            f.write_str("ranks share their host, ")?;
        }
        f.write_str("on loopback")
    }
}

fn leaf_name(leaf: u16) -> String {
    format!("leaf{leaf}")
}

/// A logical node has at most 64 children, and no machine of today has a use for more threads than
/// that.
const COUNT_MAX: u16 = 64;
const ROOT: &str = "root";
/// Loopback would carry packets of 64 KiB. Real fabrics have jumbo frames, and the demo is to run
/// what they run.
const LOOPBACK_MTU: u16 = 9000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topology_names_every_node_once_and_lets_hosts_hang_below_every_leaf() {
        let expected = "[fabric]\nname = \"local\"\nmtu = 9000\n\n[[node]]\nname = \"root\"\n\n[[node]]\nname = \"leaf0\"\nparent = \"root\"\n\n\
             [[node]]\nname = \"leaf1\"\nparent = \"root\"\n\n[[host]]\nname = \"*\"\nleaves = [\"leaf0\", \"leaf1\"]\n";
        let local = |backups, shared_host| Local { leaves: 2, workers: 1, backups, shared_host };
        assert_eq!(local(0, true).file("local"), expected);
        let none = "levels = { default = \"none\" }\n";
        assert_eq!(local(0, false).file("local"), format!("{expected}\n[limits]\n{none}"));
        assert_eq!(local(3, false).file("local"), format!("{expected}\n[limits]\nbackups = {{ default = 3 }}\n{none}"));
        assert_eq!(local(0, false).nodes(), ["root", "leaf0", "leaf1"]);
    }

    #[test]
    fn one_thing_is_one_and_several_are_several() {
        let said = |leaves, workers, backups, shared_host| Local { leaves, workers, backups, shared_host }.to_string();
        assert_eq!(said(1, 2, 0, false), "1 leaf node, 2 workers per node, on loopback");
        let all = "2 leaf nodes, 1 worker per node, 1 backup of each logical node, ranks share their host, on loopback";
        assert_eq!(said(2, 1, 1, true), all);
    }

    #[test]
    fn shapes_that_cannot_be_built_are_refused() {
        let check = |leaves, workers, backups| Local { leaves, workers, backups, shared_host: false }.check();
        for (leaves, workers, backups) in [(0, 1, 0), (1, 0, 0), (65, 1, 0), (1, 65, 0), (1, 1, 12)] {
            assert!(check(leaves, workers, backups).is_err(), "{leaves} {workers} {backups}");
        }
        check(64, 64, 11).unwrap();
    }
}
