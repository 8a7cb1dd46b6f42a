//! What a graph's file tells a manager besides the graph.

use std::collections::BTreeMap;
use std::net::IpAddr;

use trib_messages::via::Via;

use crate::limits::LimitTable;
use crate::topology::MTU_DEFAULT;

/// The settings. A format without settings gives the defaults.
pub(crate) struct Settings {
    /// Path MTU between hosts and nodes, in bytes.
    pub(crate) mtu: u32,
    /// Whether tests may let processes lose datagrams on purpose.
    pub(crate) faults: bool,
    pub(crate) limits: LimitTable,
    /// The addresses of nodes and hosts by name: one, or one for each port. A host with several
    /// links has one for each link, in their order.
    pub(crate) addresses: BTreeMap<String, Vec<IpAddr>>,
    /// The addresses from which nodes call the manager, by name, where the file says that these are
    /// others.
    pub(crate) control: BTreeMap<String, IpAddr>,
    /// By which transport nodes and hosts connect upwards, by name, where the file says.
    pub(crate) via: BTreeMap<String, Via>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mtu: MTU_DEFAULT,
            faults: false,
            limits: LimitTable::default(),
            addresses: BTreeMap::new(),
            control: BTreeMap::new(),
            via: BTreeMap::new(),
        }
    }
}
