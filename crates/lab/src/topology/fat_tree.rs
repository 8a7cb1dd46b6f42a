//! Fat trees: hosts below leaf switches, leaf switches below a spine, or below pods that are below
//! the spine.
//!
//! ```text
//!                    spine                     manager, and an aggregation node as in every switch
//!                 /         \
//!             pod0           pod1              only with three levels
//!            /    \         /    \             trunks
//!        leaf0   leaf1   leaf2   leaf3
//!        / | \   / | \   / | \   / | \         host links
//!       h0 ... h3 ...
//! ```
//!
//! With several ports every host has as many links to its leaf, each in a network of its own, and a
//! switch has an address in each of them. With several rails all switches exist once for each rail,
//! as `leaf0.1` and so on, and every host has a link to a leaf of each. So that the manager reaches
//! all nodes, the further spines are connected to the first by links that the manager's topology
//! file leaves out.

use std::fmt::{self, Write as _};
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::counted;
use super::plan::{Place, PlaceKind, Plan, on_rail};
use super::rate::BitRate;
use crate::lab::LabError;

/// A fat tree as a value; [`Self::default`] has 8 hosts, 4 to a leaf, at 500 Mbit/s, two levels, no
/// blocking.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FatTree {
    /// Hosts: 1 to 128; the last leaf may have fewer than the others.
    pub hosts: u16,
    /// Hosts below one leaf: 1 to 128.
    pub leaf_ports: u16,
    /// Rate of a host's link, each way.
    pub rate: BitRate,
    /// Rate of the trunk above a leaf, as a multiple of a host's link: 1 to `leaf_ports`. With
    /// `leaf_ports` nothing blocks; 1 with four ports blocks 4:1. Trunks above pods block by the
    /// same ratio.
    pub uplink: u16,
    /// 2 (leaves and a spine) or 3 (with pods between).
    pub levels: u8,
    /// Leaves below one pod, with three levels: 1 to 64.
    pub pod_ports: u16,
    /// Rails of a host, each to switches of its own: 1 to 4.
    pub rails: u8,
    /// Links of a host to its leaf, on each rail: 1 to 4, and rails x ports at most 4.
    pub ports: u8,
    /// Largest IP packet on the links, bytes: 1280 to 9000.
    pub mtu: u16,
    /// Worker threads of each aggregation node: 1 to 64.
    pub workers: u16,
    /// Whether each host and each switch keeps to one core of the machine.
    pub pinned: bool,
    /// Whether all edges between places go by UCX.
    #[serde(default)]
    pub ucx: bool,
    /// The `[limits]` of the topology file, by name: numbers, or words without quotes.
    pub limits: Vec<(String, String)>,
}

impl Default for FatTree {
    fn default() -> Self {
        Self {
            hosts: 8,
            leaf_ports: 4,
            rate: BitRate::mbit(500),
            uplink: 4,
            levels: 2,
            pod_ports: 2,
            rails: 1,
            ports: 1,
            mtu: MTU_MAX,
            workers: 1,
            pinned: false,
            ucx: false,
            limits: Vec::new(),
        }
    }
}

impl FatTree {
    /// Number of leaf switches.
    pub fn leaves(&self) -> u16 {
        self.hosts.div_ceil(self.leaf_ports)
    }

    /// Number of pods; none with two levels.
    pub fn pods(&self) -> u16 {
        if self.levels == 3 { self.leaves().div_ceil(self.pod_ports) } else { 0 }
    }

    /// Refuses what cannot be built.
    pub(super) fn check(&self) -> Result<(), LabError> {
        let bounds = [
            ("hosts", u64::from(self.hosts), 1, u64::from(HOSTS_MAX)),
            ("ports of a leaf", self.leaf_ports.into(), 1, HOSTS_MAX.into()),
            ("uplink", self.uplink.into(), 1, self.leaf_ports.into()),
            ("levels", self.levels.into(), 2, 3),
            ("ports of a pod", self.pod_ports.into(), 1, 64),
            ("rails", self.rails.into(), 1, NETWORKS_MAX.into()),
            ("ports", self.ports.into(), 1, NETWORKS_MAX.into()),
            ("links of a host", u64::from(self.rails) * u64::from(self.ports), 1, NETWORKS_MAX.into()),
            ("mtu", self.mtu.into(), 1280, MTU_MAX.into()),
            ("workers", self.workers.into(), 1, 64),
        ];
        for (what, given, least, most) in bounds {
            if !(least..=most).contains(&given) {
                return Err(LabError::Shape { what, given, least, most });
            }
        }
        let plain = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let is_value = |value: &str| plain(value) || value.parse::<u64>().is_ok();
        match self.limits.iter().find(|(name, value)| !plain(name) || !is_value(value)) {
            Some((name, value)) => Err(LabError::Limit(format!("{name}={value}"))),
            None => Ok(()),
        }
    }

    /// The tree spelled out: switches from the spine down, then hosts.
    pub fn plan(&self) -> Plan {
        let mut plan = Plan { places: Vec::new(), links: Vec::new(), mtu: self.mtu };
        let leaf_trunk = self.rate.times(self.uplink.into(), 1);
        let below_pod = u64::from(self.pod_ports) * u64::from(self.uplink);
        let pod_trunk = leaf_trunk.times(below_pod, self.leaf_ports.into());
        for rail in 0..self.rails {
            let above = (rail > 0).then(|| (SPINE.to_owned(), leaf_trunk));
            plan.add(self.switch(SPINE, rail, 0, 1), above);
            for pod in 0..self.pods() {
                plan.add(self.switch(&pod_name(pod), rail, 1, pod), Some((on_rail(SPINE, rail), pod_trunk)));
            }
            for leaf in 0..self.leaves() {
                let parent = on_rail(&self.leaf_parent(leaf), rail);
                plan.add(self.switch(&leaf_name(leaf), rail, 2, leaf), Some((parent, leaf_trunk)));
            }
        }
        for host in 0..self.hosts {
            let first = Ipv4Addr::from(u32::from(FIRST_HOST) + u32::from(host));
            let address = |network| in_network(first, network);
            let (name, kind) = (host_name(host), PlaceKind::Host);
            let place = Place { name, kind, address: address(0), more: (1..self.networks()).map(address).collect() };
            plan.add(place, Some((self.host_parent(host), self.rate)));
        }
        for (network, host) in (1..self.networks()).flat_map(|network| (0..self.hosts).map(move |host| (network, host)))
        {
            let leaf = on_rail(&self.host_parent(host), network / self.ports);
            plan.add_link(&host_name(host), network, leaf, self.rate);
        }
        plan
    }

    /// The number of networks, one for each link of a host: those of a rail's ports come together,
    /// rail after rail.
    fn networks(&self) -> u8 {
        self.rails * self.ports
    }

    /// Switches have addresses by level and number, below those of the hosts, in the networks of
    /// their rail.
    fn switch(&self, name: &str, rail: u8, level: u8, number: u16) -> Place {
        let low = u8::try_from(number + u16::from(level > 0)).expect("fewer than 255 switches in a level");
        let [a, b, ..] = FIRST_HOST.octets();
        let address = |port| in_network(Ipv4Addr::new(a, b, level, low), rail * self.ports + port);
        let more = (1..self.ports).map(address).collect();
        Place { name: on_rail(name, rail), kind: PlaceKind::Switch, address: address(0), more }
    }

    /// The manager's topology file: a tree where each host has one link, else a graph.
    pub(super) fn file(&self, fabric: &str) -> String {
        let mut text = format!("[fabric]\nname = \"{fabric}\"\nmtu = {}\n", self.mtu);
        if self.networks() == 1 {
            self.write_tree(&mut text)
        } else {
            self.write_graph(&mut text)
        }
        if !self.limits.is_empty() {
            text.push_str("\n[limits]\n");
        }
        for (name, value) in &self.limits {
            let quote = if value.parse::<u64>().is_ok() { "" } else { "\"" };
            put(&mut text, format_args!("{name} = {quote}{value}{quote}\n"));
        }
        text
    }

    fn write_tree(&self, text: &mut String) {
        let (Plan { places, links, .. }, via) = (self.plan(), self.via());
        for place in places {
            let above = links.iter().find(|link| link.lower == place.name);
            let parent = above.map(|link| (link.upper.as_str(), link.rate.bits()));
            let name = &place.name;
            let entry = match (place.kind, parent) {
                (PlaceKind::Host, Some((leaf, rate))) => {
                    format!("\n[[host]]\nname = \"{name}\"\nleaf = \"{leaf}\"\nrate = \"{rate}bit\"\n{via}")
                }
                (_, Some((parent, rate))) => {
                    format!("\n[[node]]\nname = \"{name}\"\nparent = \"{parent}\"\nrate = \"{rate}bit\"\n{via}")
                }
                (_, None) => format!("\n[[node]]\nname = \"{name}\"\n"),
            };
            text.push_str(&entry);
        }
    }

    fn write_graph(&self, text: &mut String) {
        let (Plan { places, links, .. }, via) = (self.plan(), self.via());
        for place in places.iter().filter(|place| place.kind == PlaceKind::Switch) {
            put(text, format_args!("\n[[switch]]\nname = \"{}\"\n{via}", place.name));
            if self.ports > 1 {
                put(text, format_args!("addresses = [{}]\n", quoted_addresses(place)));
            }
        }
        for place in places.iter().filter(|place| place.kind == PlaceKind::Host) {
            let addresses = quoted_addresses(place);
            put(text, format_args!("\n[[host]]\nname = \"{}\"\naddresses = [{addresses}]\n{via}", place.name));
        }
        // The links between spines are there for the manager, not for trees.
        for link in links.iter().filter(|link| !is_spine(&link.lower)) {
            let (lower, upper, rate) = (&link.lower, &link.upper, link.rate.bits());
            put(text, format_args!("\n[[link]]\nends = [\"{lower}\", \"{upper}\"]\nrate = \"{rate}bit\"\n"));
        }
    }

    fn via(&self) -> &'static str {
        if self.ucx { "via = \"ucx\"\n" } else { "" }
    }

    fn host_parent(&self, host: u16) -> String {
        leaf_name(host / self.leaf_ports)
    }

    fn leaf_parent(&self, leaf: u16) -> String {
        if self.levels == 3 { pod_name(leaf / self.pod_ports) } else { SPINE.to_owned() }
    }
}

impl fmt::Display for FatTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hosts, leaf_ports, rate, uplink, levels, rails, ports, mtu, workers, pinned, ucx, .. } = self;
        let leaves = self.leaves();
        write!(f, "{hosts} hosts at {rate}, {leaves} leaves of {leaf_ports} ports, ")?;
        if *levels == 3 {
            write!(f, "{} pods of {} ports, ", self.pods(), self.pod_ports)?;
        }
        if *ports > 1 {
            write!(f, "{ports} links from each host to its leaf, ")?;
        }
        if *rails > 1 {
            write!(f, "all of it on each of {rails} rails, ")?;
        }
        write!(f, "trunks of {uplink} host links, mtu {mtu}, {} per node", counted(*workers, "worker"))?;
        if *pinned {
            write!(f, ", each place on one core")?;
        }
        if *ucx {
            write!(f, ", links by UCX")?;
        }
        for (name, value) in &self.limits {
            write!(f, ", {name}={value}")?;
        }
        Ok(())
    }
}

/// The same address in another network.
fn in_network(address: Ipv4Addr, network: u8) -> Ipv4Addr {
    let [a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b + network, c, d)
}

fn quoted_addresses(place: &Place) -> String {
    let addresses: Vec<String> = place.addresses().map(|address| format!("\"{address}\"")).collect();
    addresses.join(", ")
}

fn is_spine(name: &str) -> bool {
    name.strip_prefix(SPINE).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn put(text: &mut String, words: fmt::Arguments<'_>) {
    text.write_fmt(words).expect("writing to memory cannot fail");
}

fn pod_name(pod: u16) -> String {
    format!("pod{pod}")
}

fn leaf_name(leaf: u16) -> String {
    format!("leaf{leaf}")
}

/// The name of a host, which is its host name too.
pub(crate) fn host_name(host: u16) -> String {
    format!("h{host}")
}

/// The switch at the top, where the manager is.
pub(crate) const SPINE: &str = "spine";
/// The first address of a host. Hosts have a range of their own inside the laboratory's network, so
/// that one rule can tell them from switches.
const FIRST_HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 128, 1);
/// The most links that a host may have: each is in a network of its own, and the laboratory's rules
/// for hosts name these networks.
const NETWORKS_MAX: u8 = 4;
/// This is more than any two-core machine can drive, and few enough for one process to hold all
/// namespaces open.
const HOSTS_MAX: u16 = 128;
/// Jumbo frames; Ethernet has no larger ones.
const MTU_MAX: u16 = 9000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Link, Topology};
    use std::collections::BTreeSet;

    fn rates(tree: &FatTree) -> Vec<(String, u64)> {
        tree.plan().links.into_iter().map(|Link { lower, rate, .. }| (lower, rate.bits() / 1_000_000)).collect()
    }

    #[test]
    fn two_levels() {
        let tree = FatTree { hosts: 3, leaf_ports: 2, uplink: 2, ..FatTree::default() };
        let plan = tree.plan();
        let names: Vec<&str> = plan.places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, ["spine", "leaf0", "leaf1", "h0", "h1", "h2"]);
        let expected = [("leaf0", 1000), ("leaf1", 1000), ("h0", 500), ("h1", 500), ("h2", 500)];
        assert_eq!(rates(&tree), expected.map(|(name, rate)| (name.to_owned(), rate)));
        assert_eq!(plan.links[4].upper, "leaf1");
        assert_eq!((plan.links[4].lower_device.as_str(), plan.links[4].upper_device.as_str()), ("eth0", "h2"));
    }

    #[test]
    fn three_levels_block_by_the_same_ratio_above_leaves_and_pods() {
        let tree = FatTree { hosts: 16, levels: 3, pod_ports: 2, ..FatTree::default() };
        let trunk = |tree: &FatTree, name: &str| rates(tree).into_iter().find(|(lower, _)| lower == name).unwrap().1;
        assert_eq!((trunk(&tree, "leaf3"), trunk(&tree, "pod1")), (2000, 4000));
        let blocking = FatTree { uplink: 1, ..tree };
        assert_eq!((trunk(&blocking, "leaf3"), trunk(&blocking, "pod1")), (500, 250));
    }

    #[test]
    fn over_ucx_every_link_says_so() {
        for ports in [1, 2] {
            let tree = FatTree { hosts: 3, leaf_ports: 2, uplink: 1, ports, ucx: true, ..FatTree::default() };
            let said = |tree: &FatTree| tree.file("lab").matches("via = \"ucx\"").count();
            // The spine of a graph is an entry like others, and has nothing above it.
            assert_eq!(said(&tree), if ports == 1 { 5 } else { 6 });
            assert_eq!(said(&FatTree { ucx: false, ..tree }), 0);
        }
    }

    #[test]
    fn every_place_has_an_address_of_its_own_whatever_the_size() {
        for (hosts, leaf_ports, levels) in [(1, 1, 2), (32, 32, 2), (128, 1, 3), (128, 128, 2), (64, 4, 3), (9, 4, 3)] {
            let tree = FatTree { hosts, leaf_ports, uplink: 1, levels, ..FatTree::default() };
            Topology::FatTree(tree.clone()).check().unwrap();
            let plan = tree.plan();
            let addresses: BTreeSet<_> = plan.places.iter().map(|place| place.address).collect();
            assert_eq!(addresses.len(), plan.places.len());
            assert_eq!(plan.links.len(), plan.places.len() - 1, "a tree");
        }
    }

    #[test]
    fn the_topology_file_says_it_to_the_manager() {
        let limits = [("groups", "7"), ("recovery", "strict")];
        let limits = limits.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let tree = FatTree { hosts: 2, leaf_ports: 1, uplink: 1, limits, ..FatTree::default() };
        let expected = "[fabric]\nname = \"lab\"\nmtu = 9000\n\n[[node]]\nname = \"spine\"\n\n[[node]]\nname = \"leaf0\"\nparent = \"spine\"\nrate = \"500000000bit\"\n\n\
            [[node]]\nname = \"leaf1\"\nparent = \"spine\"\nrate = \"500000000bit\"\n\n[[host]]\nname = \"h0\"\nleaf = \"leaf0\"\nrate = \"500000000bit\"\n\n[[host]]\nname = \"h1\"\nleaf = \"leaf1\"\nrate = \"500000000bit\"\n\n\
            [limits]\ngroups = 7\nrecovery = \"strict\"\n";
        assert_eq!(tree.file("lab"), expected);
    }

    #[test]
    fn each_rail_has_its_switches_and_the_file_tells_no_way_between_them() {
        let tree = FatTree { hosts: 2, leaf_ports: 1, uplink: 1, rails: 2, ..FatTree::default() };
        let plan = tree.plan();
        let names: Vec<&str> = plan.places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, ["spine", "leaf0", "leaf1", "spine.1", "leaf0.1", "leaf1.1", "h0", "h1"]);
        let ends = |name: &str| plan.link(name).map(|link| (link.upper.as_str(), link.lower_device.as_str())).unwrap();
        assert_eq!((ends("h1"), ends("h1.1")), (("leaf1", "eth0"), ("leaf1.1", "eth1")));
        assert_eq!(ends("spine.1"), ("spine", "trunk"));
        let addresses: BTreeSet<_> = plan.places.iter().flat_map(|place| place.addresses()).collect();
        assert_eq!(addresses.len(), 10);
        let file = tree.file("lab");
        assert!(file.contains("name = \"h1\"\naddresses = [\"10.77.128.2\", \"10.78.128.2\"]\n"), "{file}");
        assert!(file.contains("ends = [\"leaf1.1\", \"spine.1\"]\nrate = \"500000000bit\"\n"), "{file}");
        assert_eq!(file.matches("[[link]]").count(), 4 + 4, "{file}");
        assert!(!file.contains("ends = [\"spine.1\""), "{file}");
    }

    #[test]
    fn each_port_is_a_link_to_the_same_leaf_in_a_network_of_its_own() {
        let tree = FatTree { hosts: 2, leaf_ports: 1, uplink: 1, ports: 2, ..FatTree::default() };
        let plan = tree.plan();
        let names: Vec<&str> = plan.places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, ["spine", "leaf0", "leaf1", "h0", "h1"]);
        let ends = |name: &str| plan.link(name).map(|link| (link.upper.as_str(), link.upper_device.as_str())).unwrap();
        assert_eq!((ends("h1"), ends("h1.1")), (("leaf1", "h1"), ("leaf1", "h1.1")));
        let addresses: BTreeSet<_> = plan.places.iter().flat_map(|place| place.addresses()).collect();
        assert_eq!(addresses.len(), 10);
        let file = tree.file("lab");
        assert!(file.contains("name = \"leaf1\"\naddresses = [\"10.77.2.2\", \"10.78.2.2\"]\n"), "{file}");
        assert_eq!(file.matches("ends = [\"h1\", \"leaf1\"]\nrate").count(), 2, "{file}");
        // The ports of the next rail follow.
        let both = FatTree { rails: 2, ..tree };
        let plan = both.plan();
        let leaf = plan.place("leaf1.1").unwrap();
        assert_eq!((leaf.address.octets(), leaf.more[0].octets()), ([10, 79, 2, 2], [10, 80, 2, 2]));
        assert_eq!(plan.link("h1.3").map(|link| link.upper.as_str()), Some("leaf1.1"));
        Topology::FatTree(both).check().unwrap();
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_its_bound() {
        let good = FatTree::default();
        let bad = [
            FatTree { hosts: 0, ..good.clone() },
            FatTree { hosts: 129, ..good.clone() },
            FatTree { leaf_ports: 0, ..good.clone() },
            FatTree { uplink: 5, ..good.clone() },
            FatTree { levels: 4, ..good.clone() },
            FatTree { levels: 3, pod_ports: 0, ..good.clone() },
            FatTree { rails: 5, ..good.clone() },
            FatTree { ports: 0, ..good.clone() },
            FatTree { ports: 3, rails: 2, ..good.clone() },
            FatTree { mtu: 576, ..good.clone() },
            FatTree { workers: 0, ..good.clone() },
            FatTree { limits: vec![("a\nb".to_owned(), "1".to_owned())], ..good.clone() },
            FatTree { limits: vec![("groups".to_owned(), "1\nb = 2".to_owned())], ..good.clone() },
            FatTree { limits: vec![("groups".to_owned(), "-1".to_owned())], ..good.clone() },
        ];
        for tree in bad {
            assert!(tree.check().is_err(), "{tree}");
        }
        good.check().unwrap();
    }
}
