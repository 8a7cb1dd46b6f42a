//! The namespace in the middle: a bridge, the aggregation nodes' address, and rules for what passes between hosts.

use super::error::LabError;
use super::netns::Namespace;

/// A switch. Hosts are its ports `h0`, `h1`, ...
#[derive(Debug)]
pub(super) struct Switch {
    pub(super) namespace: Namespace,
}

impl Switch {
    /// Makes the bridge with `address` (with prefix length) on it, and a forward chain that lets everything pass.
    pub(super) fn create(name: String, address: &str, mtu: u16) -> Result<Self, LabError> {
        let namespace = Namespace::create(name)?;
        // Without spanning tree and multicast snooping a port forwards from its first moment, and says nothing of its own.
        namespace.ip("link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0")?;
        namespace.ip(&format!("link set br0 mtu {mtu} addrgenmode none up"))?;
        namespace.ip(&format!("address add {address} dev br0"))?;
        namespace.nft(&format!(
            "add table bridge {TABLE}; add chain bridge {TABLE} {CHAIN} {{ type filter hook forward priority 0; }}"
        ))?;
        Ok(Self { namespace })
    }

    /// Joins a host by a veth pair: `h<index>` here, `eth0` with `address` there.
    pub(super) fn join(&self, host: &Namespace, index: u16, address: &str, mtu: u16) -> Result<(), LabError> {
        let peer = host.name();
        self.namespace.ip(&format!("link add h{index} mtu {mtu} type veth peer name eth0 mtu {mtu} netns {peer}"))?;
        self.namespace.ip(&format!("link set h{index} master br0 addrgenmode none up"))?;
        host.ip("link set eth0 addrgenmode none")?;
        host.ip(&format!("address add {address} dev eth0"))?;
        host.ip("link set eth0 up").map(drop)
    }

    /// Counts and drops all that goes from host to host.
    pub(super) fn drop_forwarded(&self) -> Result<(), LabError> {
        self.allow_forwarded()?;
        self.namespace.nft(&format!("add rule bridge {TABLE} {CHAIN} counter drop")).map(drop)
    }

    /// Lets it pass again.
    pub(super) fn allow_forwarded(&self) -> Result<(), LabError> {
        self.namespace.nft(&format!("flush chain bridge {TABLE} {CHAIN}")).map(drop)
    }

    /// Packets that the rule has dropped since it was set; 0 without one.
    pub(super) fn dropped_packets(&self) -> Result<u64, LabError> {
        let list = format!("list chain bridge {TABLE} {CHAIN}");
        let answer = self.namespace.nft(&list)?;
        let Some((_, rest)) = answer.split_once("counter packets ") else {
            return Ok(0);
        };
        let number = rest.split(' ').next().and_then(|number| number.parse().ok());
        number.ok_or_else(|| LabError::Answer { command: format!("nft {list}"), reason: "no packet count".to_owned() })
    }
}

const TABLE: &str = "lab";
const CHAIN: &str = "between-hosts";
