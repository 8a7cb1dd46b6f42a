//! What can be counted whatever else the machine does: bytes on links, processor time, context
//! switches and system calls.

pub(crate) mod cpu;
pub(crate) mod loopback;
pub(crate) mod processes;
pub(crate) mod syscalls;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::machine::{TICK_NS, Ticks};
use crate::network::Network;
use cpu::Used;
use loopback::Carried;

/// One reading of everything that a fabric counts.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    links: Vec<crate::network::LinkBytes>,
    loopbacks: BTreeMap<PathBuf, Carried>,
    daemons: Vec<(String, Used)>,
    machine: Ticks,
}

/// What happened between two readings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Observed {
    /// Bytes on the host link that carried most, towards the root.
    pub link_up: f64,
    /// The same from the root.
    pub link_down: f64,
    /// Packets on the host link that carried most, towards the root.
    pub packets_up: f64,
    /// The same from the root.
    pub packets_down: f64,
    /// Bytes on the trunk that carried most, towards the root.
    pub trunk_up: f64,
    /// The same from the root.
    pub trunk_down: f64,
    /// Bytes on the loopback that carried most, of the hosts on which ranks run, where they could
    /// be counted.
    pub loopback: Option<f64>,
    /// Packets on the same loopback.
    pub loopback_packets: Option<f64>,
    /// Processor time of each daemon, nanoseconds.
    pub cpu_ns: Vec<(String, f64)>,
    /// Context switches of all nodes.
    pub node_switches: f64,
    /// System calls of all nodes, where they could be counted.
    pub node_calls: Option<f64>,
    /// Processor time of everything on this machine, nanoseconds. It moves in steps of ten
    /// milliseconds.
    pub machine_ns: f64,
    /// The part of it that the kernel spent on the network outside of any process.
    pub softirq_ns: f64,
    /// Share of the time that the busiest core was at work.
    pub busiest_core: Option<f64>,
    /// System calls of all ranks, where they could be counted.
    pub rank_calls: Option<f64>,
}

impl Reading {
    /// Reads everything that is counted; `ranks` are the processes that measure.
    pub(crate) fn take(network: &dyn Network, ranks: &[u32]) -> Reading {
        let daemons = network.daemons().into_iter().map(|(name, pid)| (name, cpu::used(pid))).collect();
        let loopbacks = loopback::carried(ranks);
        Reading { links: network.counters(), loopbacks, daemons, machine: Ticks::now() }
    }

    /// What happened from `before` to this one.
    pub(crate) fn since(&self, before: &Reading) -> Observed {
        let most = |is_host: bool, up: bool, what: fn(&crate::network::LinkBytes) -> u64| {
            let links = self.links.iter().filter(|link| link.up == up && is_host_link(&link.link) == is_host);
            let carried = links.map(|link| {
                let same = before.links.iter().find(|old| old.link == link.link && old.up == up);
                what(link).saturating_sub(same.map_or(0, what)) as f64
            });
            carried.fold(0.0, f64::max)
        };
        let used = |name: &str, now: &Used| {
            let old = before.daemons.iter().find(|(old, _)| old == name).map_or(Used::default(), |(_, old)| *old);
            (now.cpu_ns.saturating_sub(old.cpu_ns) as f64, now.switches.saturating_sub(old.switches) as f64)
        };
        let loopback = loopback::most(&before.loopbacks, &self.loopbacks);
        Observed {
            loopback: loopback.map(|carried| carried.bytes as f64),
            loopback_packets: loopback.map(|carried| carried.packets as f64),
            link_up: most(true, true, |link| link.bytes),
            link_down: most(true, false, |link| link.bytes),
            packets_up: most(true, true, |link| link.packets),
            packets_down: most(true, false, |link| link.packets),
            trunk_up: most(false, true, |link| link.bytes),
            trunk_down: most(false, false, |link| link.bytes),
            cpu_ns: self.daemons.iter().map(|(name, now)| (name.clone(), used(name, now).0)).collect(),
            node_switches: self.daemons.iter().map(|(name, now)| used(name, now).1).sum(),
            machine_ns: self.machine.sum.busy.saturating_sub(before.machine.sum.busy) as f64 * TICK_NS,
            softirq_ns: self.machine.sum.softirq.saturating_sub(before.machine.sum.softirq) as f64 * TICK_NS,
            busiest_core: self.machine.busiest_since(&before.machine),
            node_calls: None,
            rank_calls: None,
        }
    }
}

/// Whether this is a host's link: those are called h0, h1, ...
fn is_host_link(name: &str) -> bool {
    name.strip_prefix('h').is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::CoreTicks;
    use crate::network::LinkBytes;

    #[test]
    fn the_busiest_link_counts() {
        let link = |link: &str, up, bytes| LinkBytes { link: link.to_owned(), up, bytes, packets: bytes / 100 };
        let before = Reading {
            links: vec![link("h0", true, 100), link("h1", true, 100)],
            loopbacks: BTreeMap::new(),
            daemons: vec![("leaf0".to_owned(), Used { cpu_ns: 5, switches: 1 })],
            machine: Ticks::default(),
        };
        let after = Reading {
            links: vec![link("h0", true, 400), link("h1", true, 900), link("h1", false, 50), link("leaf0", true, 7)],
            loopbacks: BTreeMap::new(),
            daemons: vec![("leaf0".to_owned(), Used { cpu_ns: 25, switches: 4 })],
            machine: Ticks { sum: CoreTicks { busy: 3, ..CoreTicks::default() }, cores: Vec::new() },
        };
        let observed = after.since(&before);
        assert_eq!(
            (observed.link_up, observed.link_down, observed.trunk_up, observed.trunk_down),
            (800.0, 50.0, 7.0, 0.0)
        );
        assert_eq!((observed.packets_up, observed.machine_ns), (8.0, 3e7));
        assert_eq!((observed.cpu_ns, observed.node_switches), (vec![("leaf0".to_owned(), 20.0)], 3.0));
    }
}
