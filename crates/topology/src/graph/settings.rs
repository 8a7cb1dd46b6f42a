//! What a graph's file says to a manager beyond the graph.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::limits::LimitTable;
use crate::topology::MTU_DEFAULT;

/// The settings; those of a format without settings are the defaults.
pub(crate) struct Settings {
    /// Path MTU between hosts and nodes.
    pub(crate) mtu: u32,
    pub(crate) limits: LimitTable,
    /// The addresses of the nodes and hosts of these names: one, or one for each port; of a host for each link, in the order of
    /// the links.
    pub(crate) addresses: BTreeMap<String, Vec<IpAddr>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mtu: MTU_DEFAULT, limits: LimitTable::default(), addresses: BTreeMap::new() }
    }
}
