//! The costs of the hosts' own algorithms.
//!
//! Flat algorithms know nothing of hosts: ranks exchange with ranks. If several ranks share a host,
//! those whose partner is elsewhere share its link. Algorithms with leaders sum within each host
//! first, then let one rank of each host do the rest, and then hand the result out.

use std::collections::{BTreeMap, HashMap};

use super::{Candidate, Model, Way};
use crate::graph::Graph;

/// The ranks' hosts, in the order in which the algorithms take the ranks.
pub(super) struct Members<'a> {
    graph: &'a Graph,
    /// The host of each rank.
    ranks: &'a [usize],
    /// Each host once, in the order of its first rank.
    leaders: Vec<usize>,
    /// The largest number of ranks on one host.
    each: usize,
    model: &'a Model,
}

impl<'a> Members<'a> {
    pub(super) fn new(graph: &'a Graph, ranks: &'a [usize], model: &'a Model) -> Self {
        let mut leaders = Vec::new();
        let mut counts: HashMap<usize, usize> = HashMap::new();
        for host in ranks {
            let count = counts.entry(*host).or_default();
            if *count == 0 {
                leaders.push(*host);
            }
            *count += 1;
        }
        let each = counts.values().copied().max().unwrap_or(1);
        Self { graph, ranks, leaders, each, model }
    }

    /// The hosts, each once.
    pub(super) fn hosts(&self) -> &[usize] {
        &self.leaders
    }

    /// The largest number of ranks on one host.
    pub(super) fn each(&self) -> usize {
        self.each
    }

    /// The largest number of a host's ranks whose ring neighbour is on another host.
    pub(super) fn ring_streams(&self) -> usize {
        let count = self.ranks.len();
        let mut leaving: HashMap<usize, usize> = HashMap::new();
        for (at, host) in self.ranks.iter().enumerate() {
            if self.ranks[(at + 1) % count] != *host {
                *leaving.entry(*host).or_default() += 1;
            }
        }
        leaving.values().copied().max().unwrap_or(0)
    }

    /// The hosts' ways to do an allreduce.
    pub(super) fn allreduces(&self) -> Vec<Candidate> {
        if let Some(alone) = self.within_a_host() {
            return alone.into_iter().collect();
        }
        let mut ways =
            vec![self.ring(), self.doubling(self.ranks, Way::Doubling), self.halving(self.ranks, Way::Halving)];
        if self.each > 1 {
            let led =
                [self.doubling(&self.leaders, Way::LeadersDoubling), self.halving(&self.leaders, Way::LeadersHalving)];
            ways.extend(led.map(|way| self.led(way)));
        }
        ways
    }

    /// The hosts' ways to do a reduce.
    pub(super) fn reduces(&self) -> Vec<Candidate> {
        if let Some(alone) = self.within_a_host() {
            return alone.into_iter().collect();
        }
        let mut ways = vec![self.binomial(self.ranks, Way::HostTree), self.halving_to_root(self.ranks, Way::Halving)];
        if self.each > 1 {
            let led = [
                self.binomial(&self.leaders, Way::LeadersTree),
                self.halving_to_root(&self.leaders, Way::LeadersHalving),
            ];
            ways.extend(led.map(|way| self.led(way)));
        }
        ways
    }

    /// The prediction if there is only one host: none for one rank, shared memory for several.
    fn within_a_host(&self) -> Option<Option<Candidate>> {
        let nothing = Candidate { way: Way::Memory, latency: 0.0, byte: 0.0, limit: "a host's memory".to_owned() };
        (self.leaders.len() < 2).then(|| (self.ranks.len() > 1).then(|| self.led(nothing)))
    }

    /// Adds what the ranks of a host do before and after.
    fn led(&self, way: Candidate) -> Candidate {
        let further = self.each as f64 - 1.0;
        Candidate {
            latency: way.latency + 2.0 * f64::from(steps_of(self.each)) * self.model.local_step,
            byte: way.byte + further * self.model.local_byte,
            ..way
        }
    }

    /// A ring in which neighbours follow one another in the list.
    fn ring(&self) -> Candidate {
        let count = self.ranks.len();
        let step = self.step(self.ranks, self.model.ring_share, |at| Some((at + 1) % count));
        let steps = 2.0 * (count - 1) as f64;
        Candidate {
            way: Way::Ring,
            latency: steps * step.seconds,
            byte: step.byte * steps / count as f64,
            limit: step.limit,
        }
    }

    /// Recursive doubling: in step k partners are 2^k apart. If the number of ranks is no power of
    /// two, what the others do is taken as free.
    fn doubling(&self, ranks: &[usize], way: Way) -> Candidate {
        self.pairs(ranks, way, 1.0, |_| 1.0)
    }

    /// Recursive halving, then doubling (Rabenseifner): in step k partners are 2^k apart and move
    /// half of what the step before moved, there and back.
    fn halving(&self, ranks: &[usize], way: Way) -> Candidate {
        self.pairs(ranks, way, 2.0, |step| 2.0 / f64::from(2u32 << step))
    }

    /// The first half of that, and a gather to the root, in which the whole vector goes over the
    /// root's link.
    fn halving_to_root(&self, ranks: &[usize], way: Way) -> Candidate {
        let there = self.pairs(ranks, way, 2.0, |step| 1.0 / f64::from(2u32 << step));
        let root = ranks[0];
        let gather = 8.0 * (1.0 - 1.0 / ranks.len() as f64) / (self.rate(root) * self.model.ring_share);
        Candidate { byte: there.byte + gather, ..there }
    }

    /// Steps in which partners are 2^k apart and move `share(k)` of the vector. Each step's latency
    /// counts `times` times.
    fn pairs(&self, ranks: &[usize], way: Way, times: f64, share: impl Fn(u32) -> f64) -> Candidate {
        let count = ranks.len();
        let mut whole = Candidate { way, latency: 0.0, byte: 0.0, limit: String::new() };
        let mut slowest = 0.0;
        for k in 0..steps_of(count) {
            let partner = |at: usize| Some(at ^ (1 << k)).filter(|partner| *partner < count);
            let step = self.step(ranks, self.model.exchange_share, partner);
            whole.latency += times * step.seconds;
            whole.byte += step.byte * share(k);
            if step.byte * share(k) > slowest {
                (slowest, whole.limit) = (step.byte * share(k), step.limit);
            }
        }
        whole
    }

    /// A tree of ranks: in step k every second rank that is left gives its whole vector to the one
    /// 2^k before it.
    fn binomial(&self, ranks: &[usize], way: Way) -> Candidate {
        let mut whole = Candidate { way, latency: 0.0, byte: 0.0, limit: String::new() };
        for k in 0..steps_of(ranks.len()) {
            let distance = 1 << k;
            let parent = |at: usize| (at % (2 * distance) == distance).then(|| at - distance);
            let step = self.step(ranks, self.model.ring_share, parent);
            whole = Candidate {
                latency: whole.latency + step.seconds,
                byte: whole.byte + step.byte,
                limit: step.limit,
                ..whole
            };
        }
        whole
    }

    /// A step in which every rank that has a partner sends to it.
    fn step(&self, ranks: &[usize], share: f64, partner: impl Fn(usize) -> Option<usize>) -> Step {
        let seconds = |streams: u32, rate: f64| 8.0 * f64::from(streams) / (rate * share);
        let (graph, model) = (self.graph, self.model);
        let mut crosses = false;
        let mut slowest = (model.host_byte, "a host's processor".to_owned());
        let (mut from_host, mut from_switch): (BTreeMap<usize, u32>, BTreeMap<usize, u32>) = Default::default();
        for (at, host) in ranks.iter().enumerate() {
            let Some(other) = partner(at).map(|partner| ranks[partner]).filter(|other| other != host) else {
                continue;
            };
            crosses = true;
            *from_host.entry(*host).or_default() += 1;
            if !switches(graph, other).any(|switch| switches(graph, *host).any(|known| known == switch)) {
                // If there are several rails, the stream takes one. It does not matter which, as
                // long as their switches are alike.
                if let Some(switch) = switches(graph, *host).min() {
                    *from_switch.entry(switch).or_default() += 1;
                }
            }
        }
        for (host, streams) in from_host {
            let byte = seconds(streams, self.rate(host));
            if byte > slowest.0 {
                let name = &graph.vertices()[host].name;
                let vectors = if streams > 1 { format!(", {streams} vectors") } else { String::new() };
                slowest = (byte, format!("the links of host {name}{vectors}"));
            }
        }
        for (switch, streams) in from_switch {
            let byte = seconds(streams, total_rate(graph, switch, |other| !graph.is_host(other)));
            if byte > slowest.0 {
                let name = &graph.vertices()[switch].name;
                slowest = (byte, format!("the links between {name} and other switches, {streams} vectors"));
            }
        }
        let step = if crosses { model.step } else { model.local_step };
        Step { seconds: step, byte: slowest.0, limit: slowest.1 }
    }

    /// The rate of all links of a host together, in bits per second.
    pub(super) fn rate(&self, host: usize) -> f64 {
        total_rate(self.graph, host, |_| true)
    }
}

struct Step {
    /// Seconds for a short message.
    seconds: f64,
    /// Seconds for each byte.
    byte: f64,
    limit: String,
}

/// How many steps it takes until a number of ranks that doubles in each step reaches `count`.
pub(super) fn steps_of(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

fn switches(graph: &Graph, host: usize) -> impl Iterator<Item = usize> {
    graph.links_at(host).iter().map(move |link| graph.links()[*link].other(host))
}

fn total_rate(graph: &Graph, vertex: usize, counts: impl Fn(usize) -> bool) -> f64 {
    let links = graph.links_at(vertex).iter().map(|link| &graph.links()[*link]);
    links.filter(|link| counts(link.other(vertex))).map(|link| link.rate.bits_per_second()).sum::<u64>() as f64
}
