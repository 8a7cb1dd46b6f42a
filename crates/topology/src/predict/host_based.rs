//! What the hosts' own algorithms cost.

use std::collections::BTreeMap;

use super::{Candidate, Model, Way};
use crate::graph::Graph;

/// Neighbours are hosts that follow one another in the list.
pub(super) fn ring(graph: &Graph, hosts: &[usize], model: &Model) -> Candidate {
    let count = hosts.len();
    let (byte, limit) = step(graph, hosts, model, |at| Some((at + 1) % count));
    let steps = 2.0 * (count - 1) as f64;
    Candidate { way: Way::Ring, latency: steps * model.step_latency, byte: byte * steps / count as f64, limit }
}

/// In step k partners are 2^k apart; where hosts are no power of two the rest is taken as free.
pub(super) fn doubling(graph: &Graph, hosts: &[usize], model: &Model) -> Candidate {
    let count = hosts.len();
    let steps = usize::BITS - (count - 1).leading_zeros();
    let (mut byte, mut limit) = (0.0, (0.0, String::new()));
    for distance in (0..steps).map(|k| 1usize << k) {
        let cost = step(graph, hosts, model, |at| Some(at ^ distance).filter(|partner| *partner < count));
        byte += cost.0;
        if cost.0 > limit.0 {
            limit = cost;
        }
    }
    Candidate { way: Way::Doubling, latency: f64::from(steps) * model.step_latency, byte, limit: limit.1 }
}

// Seconds per byte that every host sends to its partner at the same time, and what takes longest.
fn step(graph: &Graph, hosts: &[usize], model: &Model, partner: impl Fn(usize) -> Option<usize>) -> (f64, String) {
    let seconds = |streams: u32, rate: u64| 8.0 * f64::from(streams) / (rate as f64 * model.host_efficiency);
    let mut slowest = (model.host_byte, "a host's processor".to_owned());
    let mut leaving: BTreeMap<usize, u32> = BTreeMap::new();
    for (at, host) in hosts.iter().enumerate() {
        let byte = seconds(1, total_rate(graph, *host, |_| true));
        if byte > slowest.0 {
            slowest = (byte, format!("the links of host {}", graph.vertices()[*host].name));
        }
        let Some(partner) = partner(at) else { continue };
        let here = switches(graph, *host);
        if !switches(graph, hosts[partner]).any(|switch| switches(graph, *host).any(|known| known == switch)) {
            // Of several rails the stream takes one; which makes no difference where their switches are alike.
            if let Some(switch) = here.min() {
                *leaving.entry(switch).or_default() += 1;
            }
        }
    }
    for (switch, streams) in leaving {
        let byte = seconds(streams, total_rate(graph, switch, |other| !graph.is_host(other)));
        if byte > slowest.0 {
            let name = &graph.vertices()[switch].name;
            slowest = (byte, format!("the links between {name} and other switches, {streams} vectors"));
        }
    }
    slowest
}

fn switches(graph: &Graph, host: usize) -> impl Iterator<Item = usize> {
    graph.links_at(host).iter().map(move |link| graph.links()[*link].other(host))
}

fn total_rate(graph: &Graph, vertex: usize, counts: impl Fn(usize) -> bool) -> u64 {
    let links = graph.links_at(vertex).iter().map(|link| &graph.links()[*link]);
    links.filter(|link| counts(link.other(vertex))).map(|link| link.rate.bits_per_second()).sum()
}
