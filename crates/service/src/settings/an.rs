//! A node's settings.

use std::net::SocketAddr;
use std::path::PathBuf;

use trib_control::ManagerUrl;

use super::common::{LOG, log_file, metrics};
use super::{Default, Kind, Setting, Values};

/// The settings of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeSettings {
    /// Its name in the topology.
    pub name: String,
    /// The manager's address.
    pub manager: ManagerUrl,
    /// The addresses at which children connect.
    pub listen: Vec<SocketAddr>,
    /// The number of worker threads for each of these addresses.
    pub workers: usize,
    /// The most bytes of buffers for all jobs together.
    pub memory: Option<u64>,
    /// The address at which metrics are served.
    pub metrics: Option<SocketAddr>,
    /// What is logged.
    pub log: String,
    /// The file to which it logs besides stderr.
    pub log_file: Option<PathBuf>,
}

impl From<Values> for NodeSettings {
    fn from(mut values: Values) -> Self {
        NodeSettings {
            name: values.text("name"),
            manager: values.manager("manager"),
            listen: values.addresses("listen"),
            workers: usize::try_from(values.integer("workers")).expect("the table bounds it"),
            memory: values.optional_integer("memory"),
            metrics: values.optional_address("metrics"),
            log: values.text("log"),
            log_file: values.optional_path("log_file"),
        }
    }
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "name",
        option: "name",
        variable: "TRIB_AN_NAME",
        kind: Kind::Name,
        default: Default::Required,
        unit: "",
        meaning: "Its name in the manager's topology",
        example: "leaf0",
    },
    Setting {
        name: "manager",
        option: "manager",
        variable: "TRIB_MANAGER",
        kind: Kind::Manager,
        default: Default::Required,
        unit: "",
        meaning: "Where the manager is, and the folder of the fabric's credentials",
        example: "tls://am.cluster:7070?credentials=/etc/tributary",
    },
    Setting {
        name: "listen",
        option: "listen",
        variable: "TRIB_AN_LISTEN",
        kind: Kind::Addresses,
        default: Default::Required,
        unit: "",
        meaning: "Where children connect; port 0 takes a free one. Datagrams come to the same addresses at ports that the kernel chooses. Of several addresses children are told those that the topology names, and for 0.0.0.0 the one from which the node calls the manager",
        example: "10.0.0.2:7071",
    },
    Setting {
        name: "workers",
        option: "workers",
        variable: "TRIB_AN_WORKERS",
        kind: Kind::Integer { least: 1, most: 64 },
        default: Default::Is("1"),
        unit: "threads",
        meaning: "Worker threads for each address; a connection belongs to one of them for good",
        example: "4",
    },
    Setting {
        name: "memory",
        option: "memory",
        variable: "TRIB_AN_MEMORY",
        kind: Kind::Integer { least: 1 << 20, most: 1 << 50 },
        default: Default::Off,
        unit: "bytes",
        meaning: "Most memory for the buffers of all jobs together; a job that does not fit is refused",
        example: "68719476736",
    },
    metrics("TRIB_AN_METRICS", "10.0.0.2:9102"),
    LOG,
    log_file("TRIB_AN_LOG_FILE", "/var/log/tributary/an/an.log"),
];
