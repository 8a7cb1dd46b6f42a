//! Links as scripts for `ip -batch` and `tc -batch`, one of each per place.
//!
//! A link is a pair of virtual Ethernet devices. At both ends a token bucket shapes what is sent: a
//! place's own device is the way up, the port above it the way down. Segmentation is left to the
//! receiver's end, so a packet of 64 KiB crosses the bridge in one piece; without this the CPU
//! would be the bottleneck. The bucket counts such a packet as the segments for which it stands.
//!
//! Only the fabric's own packets are on the links: neighbours are permanent entries, and IPv6 and
//! multicast snooping are off.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::topology::{BitRate, Link, Place, PlaceKind, Plan, hardware_address, network as network_of};

/// The script that makes `place` and the links below it. Scripts have to be run in the order of the
/// places, because the upper place makes the link.
///
/// `network` returns the file that stands for a place's network.
pub(crate) fn ip_script(plan: &Plan, place: &Place, network: impl Fn(&str) -> Option<PathBuf>) -> Option<String> {
    let mut script = "link set dev lo up\n".to_owned();
    let mtu = plan.mtu;
    if place.kind == PlaceKind::Switch {
        let address = hardware_address(place.address);
        // Without spanning tree a port forwards from its first moment.
        line(
            &mut script,
            format_args!(
                "link add name br0 address {address} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
            ),
        );
        line(&mut script, format_args!("link set dev br0 mtu {mtu} addrgenmode none {GSO} up"));
    }
    let mut devices = place.addressed_devices();
    for Link { lower, upper, lower_device, upper_device, .. } in &plan.links {
        if *upper == place.name {
            let peer = network(lower)?;
            let peer = peer.display();
            line(
                &mut script,
                format_args!(
                    "link add name {upper_device} mtu {mtu} type veth peer name {lower_device} mtu {mtu} netns {peer}"
                ),
            );
            line(&mut script, format_args!("link set dev {upper_device} master br0 addrgenmode none {GSO} up"));
        } else if *lower == place.name {
            let role = match place.kind {
                // Links and addresses are in the same order.
                PlaceKind::Host => format!("address {}", hardware_address(devices.next()?.0)),
                PlaceKind::Switch => "master br0".to_owned(),
            };
            line(&mut script, format_args!("link set dev {lower_device} {role} addrgenmode none {GSO} up"));
        }
    }
    let last = place.more.len();
    for (at, (address, device)) in place.addressed_devices().enumerate() {
        line(&mut script, format_args!("address add {address}/16 dev {device}"));
        // A host reaches each network by the device that is in it. Switches, and the manager on one
        // of them, reach all networks by the bridge, so their routes are added once, at the end.
        let mut networks: Vec<_> = plan.places.iter().flat_map(|other| other.addresses()).map(network_of).collect();
        networks.sort_unstable();
        networks.dedup();
        networks.retain(|network| match place.kind {
            PlaceKind::Switch => at == last,
            PlaceKind::Host => *network == network_of(address),
        });
        for network in &networks {
            // TCP's defaults are made for the Internet: it retransmits after 200 ms at the
            // earliest, and the machine may prefer another congestion control.
            line(&mut script, format_args!("route replace {network}/16 dev {device} rto_min 5ms congctl cubic"));
        }
        for other in plan.places.iter().filter(|other| other.name != place.name) {
            for address in other.addresses().filter(|address| networks.contains(&network_of(*address))) {
                // A bridge has one hardware address, however many addresses it has.
                let hardware = hardware_address(if other.kind == PlaceKind::Switch { other.address } else { address });
                line(&mut script, format_args!("neighbour add {address} lladdr {hardware} dev {device} nud permanent"));
            }
        }
    }
    Some(script)
}

/// The script that shapes the devices of `place`.
pub(crate) fn tc_script(plan: &Plan, place: &Place) -> String {
    let mut script = String::new();
    for Link { lower, upper, lower_device, upper_device, rate, .. } in &plan.links {
        for (end, device) in [(upper, upper_device), (lower, lower_device)] {
            if *end == place.name {
                let (bits, queue) = (rate.bits(), queue(*rate));
                line(
                    &mut script,
                    format_args!("qdisc add dev {device} root tbf rate {bits}bit burst {BURST} limit {queue}"),
                );
            }
        }
    }
    script
}

/// How many bytes a link may queue: 8 to 16 ms of its rate, as switches do.
fn queue(rate: BitRate) -> u64 {
    if rate.bits() >= 1_000_000_000 { 2_000_000 } else { 1_000_000 }
}

fn line(script: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(script, "{text}").expect("writing to memory cannot fail");
}

/// The largest packet that crosses a link in one piece; the receiver takes it apart if it has to.
const GSO: &str = "gso_max_size 65536 gro_max_size 65536";
/// A bucket has to hold the largest packet with its segments' headers. An idle link lets this many
/// bytes through unshaped.
const BURST: u32 = 70_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::FatTree;

    fn plan() -> Plan {
        FatTree { hosts: 2, leaf_ports: 2, uplink: 1, ..FatTree::default() }.plan()
    }

    fn script(name: &str) -> String {
        let plan = plan();
        ip_script(&plan, plan.place(name).unwrap(), |_| Some(PathBuf::from("/proc/1/fd/3"))).unwrap()
    }

    #[test]
    fn a_switch_makes_the_links_below_it_and_configures_its_end_of_the_one_above() {
        let leaf = script("leaf0");
        assert_eq!(leaf.matches("type veth").count(), 2);
        assert!(leaf.contains("link set dev trunk master br0"), "{leaf}");
        assert!(leaf.contains("address add 10.77.2.1/16 dev br0"), "{leaf}");
        assert!(script("spine").contains("peer name trunk mtu 9000 netns /proc/1/fd/3"));
    }

    #[test]
    fn a_host_knows_everybody_and_makes_no_link() {
        let host = script("h1");
        assert!(!host.contains("veth") && host.contains("address 02:00:0a:4d:80:02"), "{host}");
        assert_eq!(host.matches("nud permanent").count(), 3);
    }

    #[test]
    fn a_host_of_two_rails_keeps_their_networks_apart_and_a_switch_knows_both() {
        let plan = FatTree { hosts: 2, leaf_ports: 2, uplink: 1, rails: 2, ..FatTree::default() }.plan();
        let script = |name: &str| ip_script(&plan, plan.place(name).unwrap(), |_| Some(PathBuf::from("/n"))).unwrap();
        let host = script("h1");
        assert!(host.contains("link set dev eth1 address 02:00:0a:4e:80:02"), "{host}");
        assert!(host.contains("address add 10.78.128.2/16 dev eth1\nroute replace 10.78.0.0/16 dev eth1"), "{host}");
        assert!(
            !host.contains("10.78.0.0/16 dev eth0") && !host.contains("10.78.2.1 lladdr 02:00:0a:4e:02:01 dev eth0")
        );
        let leaf = script("leaf0.1");
        assert!(
            leaf.contains("address add 10.78.2.1/16 dev br0") && leaf.contains("route replace 10.77.0.0/16 dev br0")
        );
        assert!(leaf.contains("neighbour add 10.77.0.1 lladdr"), "{leaf}");
    }

    #[test]
    fn a_switch_with_several_links_to_each_host_is_in_all_their_networks_with_one_hardware_address() {
        let plan = FatTree { hosts: 2, leaf_ports: 2, uplink: 1, ports: 2, ..FatTree::default() }.plan();
        let script = |name: &str| ip_script(&plan, plan.place(name).unwrap(), |_| Some(PathBuf::from("/n"))).unwrap();
        let leaf = script("leaf0");
        assert!(leaf.contains("link add name h1 mtu") && leaf.contains("link add name h1.1 mtu"), "{leaf}");
        assert!(leaf.contains("address add 10.77.2.1/16 dev br0\naddress add 10.78.2.1/16 dev br0\n"), "{leaf}");
        assert_eq!(leaf.matches("neighbour add 10.78.128.2 lladdr 02:00:0a:4e:80:02 dev br0").count(), 1, "{leaf}");
        let host = script("h1");
        assert!(host.contains("neighbour add 10.78.2.1 lladdr 02:00:0a:4d:02:01 dev eth1"), "{host}");
        assert!(host.contains("neighbour add 10.78.128.1 lladdr 02:00:0a:4e:80:01 dev eth1"), "{host}");
    }

    #[test]
    fn both_ends_of_every_link_are_shaped() {
        let plan = plan();
        let all: String = plan.places.iter().map(|place| tc_script(&plan, place)).collect();
        assert_eq!(all.lines().count(), 2 * plan.links.len());
        assert_eq!(all.matches("dev trunk root tbf rate 500000000bit").count(), 1);
    }
}
