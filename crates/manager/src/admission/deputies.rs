//! Which ranks of a job may host its logical nodes: those of a host in any case, and others when no
//! aggregation node does.
//!
//! The nodes of a host are all in the lowest of its ranks that can host any, its lead, and go on to
//! the next ones together when that dies. For other nodes, a deputy is a rank below the logical
//! node, so that the vectors of its hosts go no longer way than they have to. Of several, each host
//! gives one first, and a deputy of fewer nodes comes before others, so that the death of one host
//! leaves the others' nodes alone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use trib_messages::job::Limits;
use trib_messages::memory::Reservation;
use trib_messages::request::JobRequest;
use trib_topology::{Plan, PlanNode};
use trib_wire::ids::{ChildKind, Rank};

/// A rank that may host a logical node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Deputy {
    pub(super) rank: u32,
    /// Its host's name.
    pub(super) host: String,
    /// Where it listens.
    pub(super) stream: SocketAddr,
    /// Whether the topology names its address, from which it connects then.
    pub(super) is_known: bool,
}

/// A rank, where it listens, and whether the topology says so.
type Able = (u32, SocketAddr, bool);

/// By logical node, its deputies: at most `wanted` for each, and as many besides its home where
/// that is a rank. `streams` are the addresses of the aggregation nodes, which are to reach the
/// deputies and to be reached by them.
pub(super) fn choose(plan: &Plan, request: &JobRequest, wanted: usize, streams: &[SocketAddr]) -> Vec<Vec<Deputy>> {
    let host = |rank: u32| request.hosts.get(rank as usize).map_or("", String::as_str);
    let told = |rank: u32, address: Option<IpAddr>| {
        let told = (*request.deputies.get(rank as usize)?)?;
        let stream = address.map_or(told, |address| SocketAddr::new(address, told.port()));
        is_reachable(stream, streams).then_some((rank, stream, address.is_some()))
    };
    let mut load = vec![0usize; request.hosts.len()];
    let mut at_host: BTreeMap<&str, Vec<Able>> = BTreeMap::new();
    let leads: BTreeSet<&str> = plan.nodes.iter().filter_map(|node| Some(host(node.home.rank()?.0))).collect();
    for rank in (0..request.hosts.len() as u32).filter(|rank| leads.contains(host(*rank))) {
        let able = at_host.entry(host(rank)).or_default();
        // Ranks of one host call each other from whatever address they like.
        able.extend(told(rank, None).filter(|_| able.len() <= wanted));
    }
    at_host.values().filter_map(|able| able.first()).for_each(|(lead, ..)| load[*lead as usize] += 1);
    let elsewhere = |node: &PlanNode, load: &mut Vec<usize>| {
        let mut below = Vec::new();
        gather(plan, node, &mut below);
        let mut able: Vec<Able> = below.into_iter().filter_map(|(rank, address)| told(rank, address)).collect();
        able.sort_by_key(|(rank, ..)| (load[*rank as usize], *rank));
        let mut hosts = BTreeSet::new();
        let (first, further): (Vec<Able>, Vec<Able>) =
            able.into_iter().partition(|(rank, ..)| hosts.insert(host(*rank)));
        let chosen: Vec<Able> = first.into_iter().chain(further).take(wanted).collect();
        chosen.iter().for_each(|(rank, ..)| load[*rank as usize] += 1);
        chosen
    };
    let deputy = |(rank, stream, is_known): Able| Deputy { rank, host: host(rank).into(), stream, is_known };
    let of = |node: &PlanNode| {
        let chosen = match node.home.rank() {
            Some(lead) => at_host.get(host(lead.0)).cloned().unwrap_or_default(),
            None => elsewhere(node, &mut load),
        };
        chosen.into_iter().map(deputy).collect()
    };
    plan.nodes.iter().map(of).collect()
}

/// Whether a rank that listens there may host nodes, as far as that can be known before there is a
/// tree.
pub(super) fn is_able(listens: Option<SocketAddr>) -> bool {
    listens.is_some_and(|stream| is_reachable(stream, &[]))
}

/// Leaves those deputies out whose buffers, with these limits, would be more than `most` bytes at
/// one rank. The nodes of hosts come first, because the job has no others for them.
pub(super) fn bound(plan: &Plan, deputies: &mut [Vec<Deputy>], limits: &Limits, most: u64) {
    let mut held = BTreeMap::<u32, u64>::new();
    let mut all: Vec<(&PlanNode, &mut Vec<Deputy>)> = plan.nodes.iter().zip(deputies).collect();
    all.sort_by_key(|(node, _)| node.home.rank().is_none());
    for (node, deputies) in all {
        let bytes = Reservation::of(limits, node.children.len() as u64).bytes(limits);
        deputies.retain(|deputy| {
            let held = held.entry(deputy.rank).or_default();
            let has_room = bytes <= most.saturating_sub(*held);
            if has_room {
                *held += bytes;
            }
            has_room
        });
    }
}

/// The first ranks below a node, with the address that the topology gives them on that lane. More
/// than [`LOOKED_AT`] are not needed to find some.
fn gather(plan: &Plan, node: &PlanNode, below: &mut Vec<(u32, Option<IpAddr>)>) {
    for child in &node.children {
        if below.len() >= LOOKED_AT {
            return;
        }
        match child.kind {
            ChildKind::Rank(Rank(rank)) => below.push((rank, child.address)),
            ChildKind::Node(id) => {
                if let Some(lower) = plan.nodes.get(usize::from(id.0)) {
                    gather(plan, lower, below);
                }
            }
        }
    }
}

/// Whether processes at these addresses may reach a rank's, and are reached by it. What a rank says
/// is not to be believed further: an address of the loopback is another one at each host.
fn is_reachable(stream: SocketAddr, nodes: &[SocketAddr]) -> bool {
    let ip = stream.ip();
    let is_alike = |node: &SocketAddr| node.is_ipv6() == ip.is_ipv6() && node.ip().is_loopback() == ip.is_loopback();
    stream.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && nodes.iter().all(is_alike)
}

/// How many ranks below a node are looked at.
const LOOKED_AT: usize = 4096;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use trib_messages::request::QuotaAsk;
    use trib_topology::trees::Loads;
    use trib_topology::{Program, Topology};

    use super::*;

    fn request(hosts: &[&str], deputies: &[Option<&str>]) -> JobRequest {
        JobRequest {
            hosts: hosts.iter().copied().map(String::from).collect(),
            pids: Vec::new(),
            deputies: deputies.iter().map(|address| address.map(|address| address.parse().unwrap())).collect(),
            domains: Vec::new(),
            ask: QuotaAsk::default(),
            name: String::new(),
            user: String::new(),
            wait_ms: None,
            patience_ms: None,
        }
    }

    fn plan(hosts: &[&str]) -> Plan {
        let mut text = "[fabric]\nname = \"t\"\n[[node]]\nname = \"root\"\n".to_owned();
        for leaf in ["a", "b"] {
            text += &format!("[[node]]\nname = \"{leaf}\"\nparent = \"root\"\n");
        }
        for (letter, leaf, number) in (1..=6).flat_map(|number| [("x", "a", number), ("y", "b", number)]) {
            text += &format!("[[host]]\nname = \"{letter}{number}\"\nleaf = \"{leaf}\"\n");
        }
        let topology = Topology::parse(&text, Path::new("test.toml")).unwrap();
        let hosts: Vec<String> = hosts.iter().copied().map(String::from).collect();
        trib_topology::plan(&topology, &Program::flat(&hosts), &Loads::default()).unwrap()
    }

    fn ranks(deputies: &[Vec<Deputy>]) -> Vec<Vec<u32>> {
        deputies.iter().map(|deputies| deputies.iter().map(|deputy| deputy.rank).collect()).collect()
    }

    const NODES: [&str; 1] = ["10.0.0.1:4000"];

    fn nodes() -> Vec<SocketAddr> {
        NODES.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn deputies_are_on_different_hosts_and_share_the_nodes() {
        let hosts = ["x1", "x1", "x2", "y1", "y2"];
        let all: Vec<Option<&str>> = vec![Some("10.0.1.1:99"); 5];
        let plan = plan(&hosts);
        let chosen = choose(&plan, &request(&hosts, &all), 2, &nodes());
        let by_name: Vec<(&str, Vec<u32>)> =
            plan.nodes.iter().map(|node| node.name.as_str()).zip(ranks(&chosen)).collect();
        assert_eq!(by_name, [("root", vec![0, 2]), ("a", vec![1, 2]), ("b", vec![3, 4])]);
        let one = choose(&plan, &request(&hosts, &all), 4, &nodes());
        assert_eq!(ranks(&one)[1], [1, 2, 0], "hosts first, then what is left");
        assert!(choose(&plan, &request(&hosts, &[]), 2, &nodes()).iter().all(Vec::is_empty));
    }

    #[test]
    fn addresses_that_nodes_cannot_reach_are_left_out() {
        let hosts = ["x1", "x2", "x3", "x4", "x5", "x6"];
        let told = ["127.0.0.1:9", "0.0.0.0:9", "[fe80::1]:9", "224.0.0.1:9", "10.0.0.2:0", "10.0.0.2:9"].map(Some);
        let plan = plan(&hosts);
        assert_eq!(ranks(&choose(&plan, &request(&hosts, &told), 4, &nodes())), [vec![5]]);
        let loopback = ["127.0.0.1:4000".parse().unwrap()];
        assert_eq!(ranks(&choose(&plan, &request(&hosts, &told), 4, &loopback)), [vec![0]]);
    }
}
