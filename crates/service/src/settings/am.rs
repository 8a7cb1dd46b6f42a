//! The manager's settings.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::common::{LOG, log_file, metrics};
use super::{Default, Kind, Setting, Values};

/// The settings of a manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManagerSettings {
    /// The topology file.
    pub topology: PathBuf,
    /// The folder of the fabric's keys and certificates.
    pub credentials: PathBuf,
    /// The address at which it listens.
    pub listen: SocketAddr,
    /// The file in which its jobs are kept for the next manager.
    pub state: Option<PathBuf>,
    /// The file that says how much each tenant may use.
    pub tenants: Option<PathBuf>,
    /// The file of the constants with which it predicts.
    pub constants: Option<PathBuf>,
    /// The address at which metrics are served.
    pub metrics: Option<SocketAddr>,
    /// What is logged.
    pub log: String,
    /// The file to which it logs besides stderr.
    pub log_file: Option<PathBuf>,
}

impl From<Values> for ManagerSettings {
    fn from(mut values: Values) -> Self {
        ManagerSettings {
            topology: values.path("topology"),
            credentials: values.path("credentials"),
            listen: values.address("listen"),
            state: values.optional_path("state"),
            tenants: values.optional_path("tenants"),
            constants: values.optional_path("constants"),
            metrics: values.optional_address("metrics"),
            log: values.text("log"),
            log_file: values.optional_path("log_file"),
        }
    }
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "topology",
        option: "topology",
        variable: "TRIB_AM_TOPOLOGY",
        kind: Kind::File,
        default: Default::Required,
        unit: "",
        meaning: "The fabric: TOML, Slurm's topology.conf, or what ibnetdiscover prints",
        example: "/etc/tributary/topology.toml",
    },
    Setting {
        name: "credentials",
        option: "credentials",
        variable: "TRIB_AM_CREDENTIALS",
        kind: Kind::Folder,
        default: Default::Required,
        unit: "",
        meaning: "The fabric's keys and certificates, from `trib credentials`",
        example: "/etc/tributary",
    },
    Setting {
        name: "listen",
        option: "listen",
        variable: "TRIB_AM_LISTEN",
        kind: Kind::Address,
        default: Default::Is("0.0.0.0:7070"),
        unit: "",
        meaning: "Where to listen for nodes, programs and tools; port 0 takes a free one",
        example: "10.0.0.1:7070",
    },
    Setting {
        name: "state",
        option: "state",
        variable: "TRIB_AM_STATE",
        kind: Kind::File,
        default: Default::Off,
        unit: "",
        meaning: "Where to keep the admitted jobs, and those that were: a manager that is killed and started again knows them",
        example: "/var/lib/tributary/am.jobs",
    },
    Setting {
        name: "tenants",
        option: "tenants",
        variable: "TRIB_AM_TENANTS",
        kind: Kind::File,
        default: Default::Off,
        unit: "",
        meaning: "Who may use how much: tenants with limits, reservations and priorities, and what nodes have (tenants.md)",
        example: "/etc/tributary/tenants.toml",
    },
    Setting {
        name: "constants",
        option: "constants",
        variable: "TRIB_AM_CONSTANTS",
        kind: Kind::File,
        default: Default::Off,
        unit: "",
        meaning: "Constants of predictions, from `trib plan --calibrate`; off: /etc/tributary/constants.toml if it is there, else defaults for servers",
        example: "/etc/tributary/constants.toml",
    },
    metrics("TRIB_AM_METRICS", "10.0.0.1:9101"),
    LOG,
    log_file("TRIB_AM_LOG_FILE", "/var/log/tributary/am/am.log"),
];
