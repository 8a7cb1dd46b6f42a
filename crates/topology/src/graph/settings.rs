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
    /// Where the nodes and hosts of these names connect from.
    pub(crate) addresses: BTreeMap<String, IpAddr>,
    /// The addresses of hosts that have one for each of their links, in the order of the links.
    pub(crate) rails: BTreeMap<String, Vec<IpAddr>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mtu: MTU_DEFAULT, limits: LimitTable::default(), addresses: BTreeMap::new(), rails: BTreeMap::new() }
    }
}
