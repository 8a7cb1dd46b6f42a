//! What a laboratory is made of, as values: nothing here touches the machine.
//!
//! - [`Local`]: everything on loopback, no hosts and no links of its own
//! - [`FatTree`]: hosts, switches and shaped links, each host and switch a place of its own
//! - [`Plan`]: the fat tree spelled out: which places, which links, which addresses
//! - [`BitRate`]: the rate of a link

mod fat_tree;
mod homes;
mod local;
mod plan;
mod rate;

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use fat_tree::FatTree;
pub(crate) use fat_tree::host_name;
pub(crate) use homes::homes;
pub use local::Local;
pub use plan::{Link, Place, PlaceKind, Plan};
pub(crate) use plan::{hardware_address, network};
pub use rate::BitRate;

use crate::lab::LabError;

/// What a laboratory is made of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// Manager and nodes on loopback.
    Local(Local),
    /// Hosts and switches with links.
    FatTree(FatTree),
}

/// So many of a thing, in words: `1 worker`, `2 workers`.
fn counted(count: u16, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// An aggregation node that the laboratory starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its name in the manager's topology, and that of the place it runs in.
    pub name: String,
    /// The addresses that it listens on, at least one.
    pub listen: Vec<IpAddr>,
}

impl Topology {
    /// Refuses what cannot be built.
    ///
    /// # Errors
    /// [`LabError::Shape`] with the bound that was crossed.
    pub fn check(&self) -> Result<(), LabError> {
        match self {
            Self::Local(local) => local.check(),
            Self::FatTree(tree) => tree.check(),
        }
    }

    /// Worker threads of each node.
    pub fn workers(&self) -> u16 {
        match self {
            Self::Local(local) => local.workers,
            Self::FatTree(tree) => tree.workers,
        }
    }

    /// Whether every place keeps to one core of the machine.
    pub fn is_pinned(&self) -> bool {
        matches!(self, Self::FatTree(tree) if tree.pinned)
    }

    /// Whether edges between places go by UCX.
    pub(crate) fn is_over_ucx(&self) -> bool {
        matches!(self, Self::FatTree(tree) if tree.ucx)
    }

    /// Number of hosts with links of their own; none on loopback.
    pub fn hosts(&self) -> u16 {
        match self {
            Self::Local(_) => 0,
            Self::FatTree(tree) => tree.hosts,
        }
    }

    /// The aggregation nodes, the root first.
    pub fn nodes(&self) -> Vec<Node> {
        match self {
            Self::Local(local) => {
                local.nodes().into_iter().map(|name| Node { name, listen: vec![Local::ADDRESS] }).collect()
            }
            Self::FatTree(tree) => {
                let switches = tree.plan().places.into_iter().filter(|place| place.kind == PlaceKind::Switch);
                let node =
                    |place: Place| Node { listen: place.addresses().map(IpAddr::V4).collect(), name: place.name };
                switches.map(node).collect()
            }
        }
    }

    /// Places and links to be built; `None` on loopback.
    pub fn plan(&self) -> Option<Plan> {
        match self {
            Self::Local(_) => None,
            Self::FatTree(tree) => Some(tree.plan()),
        }
    }

    /// The topology file of the manager.
    pub fn file(&self, fabric: &str) -> String {
        match self {
            Self::Local(local) => local.file(fabric),
            Self::FatTree(tree) => tree.file(fabric),
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(local) => local.fmt(f),
            Self::FatTree(tree) => tree.fmt(f),
        }
    }
}
