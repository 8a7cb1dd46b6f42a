//! What is done to the actors of a run, as its options say.

use trib_proto::Nanos;

use super::World;
use crate::environment::Environment;
use crate::fabric::{Home, TreeNode};
use crate::network::{Gate, Partition};
use crate::options::Trouble;
use crate::random::Rng;

/// Plans the faults that the options ask for.
pub(super) fn plan(world: &mut World, rng: &mut Rng) {
    let options = world.environment.options.clone();
    let nodes = world.environment.tree.nodes.len() as u64;
    let ranks = u64::from(options.ranks);
    // The actors below whose first connections lie, and those that have a process of their own.
    let sites = world.cores.len() as u64;
    let lower = |rng: &mut Rng| {
        let at = rng.between(1, nodes + ranks - 1);
        if at < nodes { at as usize } else { (at - nodes + sites) as usize }
    };
    let span = |rng: &mut Rng| {
        let start = Nanos::from_micros(rng.scaled(1, 200_000));
        (start, start + Nanos(rng.scaled(1000, options.fault_max.0.max(1000))))
    };
    for _ in 0..options.outages {
        let (start, end) = span(rng);
        let below = lower(rng);
        let both = rng.chance(600);
        let first = rng.chance(500);
        world.outage(below, first, start, end);
        if both {
            world.outage(below, !first, start, end);
        }
    }
    for _ in 0..options.pauses {
        let (start, end) = span(rng);
        let at = rng.below(nodes + ranks);
        let actor = if at < nodes { at } else { at - nodes + sites };
        world.pause(actor as usize, start, end);
    }
    let mut out = Out::default();
    hurt_nodes(world, &mut out, rng);
    for _ in 0..options.partitions {
        part(world, rng);
    }
    let at = Nanos::from_micros(rng.scaled(100, 100_000));
    match options.trouble {
        Trouble::KillRank(orderly) => {
            let rank = rng.below(ranks) as u32;
            if out.dies(world, rank) {
                world.kill_rank(at, rank, orderly);
            }
        }
        Trouble::StopRank => {
            let rank = rng.below(ranks) as u32;
            let end = at + options.limits.dead_after + Nanos::from_millis(rng.between(2_000, 30_000));
            if out.stops(world, rank) {
                world.stop_rank(rank, at, end);
            }
        }
        Trouble::KillNode => {
            let node = rng.below(nodes) as usize;
            world.crash((node, 0), at, None, true);
        }
        trouble if trouble.is_of_the_way() => {
            let below = lower(rng);
            let most = rng.below(u64::from(options.limits.payload));
            let gate = match trouble {
                Trouble::ShortPath(false) => Gate::UpTo(most),
                Trouble::ShortPath(true) => Gate::Known(most),
                _ => Gate::Shut,
            };
            let first = rng.chance(500);
            world.narrow(below, first, gate);
            if rng.chance(500) {
                world.narrow(below, !first, gate);
            }
        }
        _ => {}
    }
    for _ in 0..options.leads_hurt {
        hurt_lead(world, &mut out, rng);
    }
    world.out = out;
}

/// Cuts the processes in two. Often those that may host the root are on both sides.
fn part(world: &mut World, rng: &mut Rng) {
    let processes = world.pauses.len();
    let share = rng.pick(&[100, 300, 500]);
    let mut first: Vec<bool> = (0..processes).map(|_| rng.chance(share)).collect();
    if rng.chance(500) {
        let sites = &world.environment.sites;
        for candidate in 0..sites.candidates(0) {
            first[sites.process(sites.site(0, candidate))] = candidate % 2 == 0;
        }
    }
    // Nothing comes between the processes of one host.
    for (home, ranks) in hosts(world) {
        let of = |rank: u32| world.environment.sites.processes() + rank as usize;
        let side = first[of(home[0])];
        ranks.iter().for_each(|rank| first[of(*rank)] = side);
    }
    let start = Nanos::from_micros(rng.scaled(200, 60_000));
    let span = (start, start + Nanos::from_micros(rng.scaled(100, 16_000_000)));
    world.part(Partition { first, span, one_way: rng.chance(300) });
}

/// Kills processes that host nodes, stops them, and cuts ways, for longer than others wait. Those
/// that come later often hit the recovery from those before.
fn hurt_nodes(world: &mut World, out: &mut Out, rng: &mut Rng) {
    let options = world.environment.options.clone();
    let sites = world.environment.sites.clone();
    // Most programs are over within some tens of milliseconds.
    let mut at = Nanos::from_micros(rng.scaled(200, 60_000));
    for _ in 0..options.hurts {
        let site = if rng.chance(600) {
            rng.below(world.environment.tree.nodes.len() as u64)
        } else {
            rng.below(sites.len() as u64)
        };
        let site = site as usize;
        let process = sites.process(site);
        let for_a_while = at + Nanos::from_micros(rng.scaled(100, 8_000_000));
        match (rng.below(10), sites.rank_of_process(process)) {
            (0..5, Some(rank)) if out.dies(world, rank) => world.kill_rank(at, rank, rng.chance(850)),
            (0..8, Some(_)) => world.pause(site, at, at + Nanos::from_millis(rng.scaled(1_000, LATE_MS_MAX))),
            (0..5, None) => {
                out.dead.push(process);
                let stays = out.leave_enough(world) && rng.chance(600);
                if !stays {
                    out.dead.pop();
                }
                let again = (!stays).then_some(for_a_while);
                if at.0.is_multiple_of(3) {
                    world.depart((sites.node(site), sites.candidate(site)), at);
                }
                world.crash((sites.node(site), sites.candidate(site)), at, again, rng.chance(700));
            }
            (5..8, None) => world.pause(site, at, at + Nanos::from_millis(rng.scaled(1_000, 20_000))),
            _ => {
                let actors = world.actors.len() as u64;
                let below = rng.between(1, actors - 1) as usize;
                let end = at + Nanos::from_millis(rng.between(1_000, 8_000));
                let one_way = rng.chance(400);
                let up = rng.chance(500);
                world.outage(below, up, at, end);
                if !one_way {
                    world.outage(below, !up, at, end);
                }
            }
        }
        at = at + Nanos::from_micros(rng.scaled(1, 4_000_000));
    }
}

/// Does something to the process that hosts the node of a host.
fn hurt_lead(world: &mut World, out: &mut Out, rng: &mut Rng) {
    let hosts = hosts(world);
    if hosts.is_empty() {
        return;
    }
    let (home, _) = &hosts[rng.below(hosts.len() as u64) as usize];
    let at = Nanos::from_micros(rng.scaled(200, 60_000));
    let later = at + Nanos::from_micros(rng.scaled(1, 2_000_000));
    let (lead, second) = (home[0], home[1]);
    let actor = world.environment.actor_of(lead);
    match rng.below(6) {
        0 => world.slow_down(lead, rng.scaled(4, 100)),
        1 => world.pause(actor, at, at + Nanos::from_millis(rng.scaled(1_000, LATE_MS_MAX))),
        kind if out.dies(world, lead) => {
            world.kill_rank(at, lead, rng.chance(900));
            match kind {
                2 if out.dies(world, second) => world.kill_rank(later, second, rng.chance(900)),
                3 => {
                    let nodes = world.environment.tree.nodes.len() as u64;
                    let node = rng.below(nodes) as usize;
                    if matches!(world.environment.tree.nodes[node].home, Home::Process(_)) {
                        let again = later + Nanos::from_micros(rng.scaled(100, 8_000_000));
                        world.crash((node, 0), later, Some(again), rng.chance(700));
                    }
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// The hosts: those ranks that may host their nodes, and all ranks.
fn hosts(world: &World) -> Vec<(Vec<u32>, Vec<u32>)> {
    let nodes = &world.environment.tree.nodes;
    let is_top = |home: &Home, parent: Option<(usize, u16)>| parent.is_none_or(|(above, _)| nodes[above].home != *home);
    let host = |node: &TreeNode| match &node.home {
        Home::Ranks(home) if is_top(&node.home, node.parent) => Some((home.clone(), node.ranks.clone())),
        _ => None,
    };
    nodes.iter().filter_map(host).collect()
}

/// The processes without which the job has to go on.
#[derive(Clone, Default)]
pub(super) struct Out {
    /// Those that will be killed for good.
    pub(super) dead: Vec<usize>,
    /// That of the rank which stands still for longer than others wait for it, and then wakes.
    stopped: Option<usize>,
}

impl Out {
    /// Whether the job goes on for all others when a rank dies, too, which is among the dead then.
    fn dies(&mut self, world: &World, rank: u32) -> bool {
        self.dead.push(world.environment.sites.processes() + rank as usize);
        let may = self.leave_enough(world);
        if !may {
            self.dead.pop();
        }
        may
    }

    /// The same of a rank that stands still.
    fn stops(&mut self, world: &World, rank: u32) -> bool {
        self.stopped = Some(world.environment.sites.processes() + rank as usize);
        let may = self.leave_enough(world);
        if !may {
            self.stopped = None;
        }
        may
    }

    /// Whether the job goes on without these processes: for the others while one stands still,
    /// which hosts no node then, and for that one, too, when it has waked.
    pub(super) fn leave_enough(&self, world: &World) -> bool {
        let still: Vec<usize> = self.dead.iter().copied().chain(self.stopped).collect();
        goes_on(world, &still) && goes_on(world, &self.dead)
    }
}

/// Whether every node below which a rank lives has a candidate that is none of these processes.
fn goes_on(world: &World, dead: &[usize]) -> bool {
    let Environment { sites, tree, .. } = &world.environment;
    let is_empty =
        |node: usize| tree.nodes[node].ranks.iter().all(|rank| dead.contains(&(sites.processes() + *rank as usize)));
    let has_candidate =
        |node: usize| (0..sites.candidates(node)).any(|c| !dead.contains(&sites.process(sites.site(node, c))));
    (0..tree.nodes.len()).all(|node| has_candidate(node) || is_empty(node))
}

/// For how long a rank stands still at most that hosts nodes, though others may wait for it much
/// longer.
const LATE_MS_MAX: u64 = 10_000;
