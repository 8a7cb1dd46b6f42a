//! What a run begins with: a quota that fits the program, ways, processes.

use std::collections::VecDeque;

use trib_proto::Nanos;
use trib_proto::liveness::NODE_PATIENCE;
use trib_proto::placing::{Host, Hosting};
use trib_wire::{Epoch, NodeId};

use super::actor::Actor;
use crate::fabric::Tree;
use crate::network::{Cable, Quality};
use crate::options::{Options, Trouble};
use crate::random::Rng;
use crate::sites::Sites;
use crate::workload::Workload;

/// Makes the quota fit the program, or not, as the options say, and keeps faults shorter than the
/// time after which a process counts as dead.
pub(super) fn fit(options: &mut Options, work: &Workload, rng: &mut Rng) {
    let all = work.groups.len().max(1) as u32;
    let most = if options.full_quota { work.groups_alive_max().max(1) } else { all };
    options.limits.groups = match options.trouble {
        // If the program were far beyond the quota, a node would take so many creations for a
        // flood, which is another fault.
        Trouble::TightQuota => rng.between(u64::from(all).div_ceil(4), u64::from(all)) as u32,
        _ => most,
    };
    options.limits.osts = all.max(most) * options.limits.window;
    let faults = options.outages + options.pauses;
    let room = options.limits.dead_after.min(NODE_PATIENCE).0 / 2 / (faults + 1);
    options.fault_max = Nanos(options.fault_max.0.min(room));
}

pub(super) fn make_cables(tree: &Tree, sites: &Sites, options: &Options, rng: &mut Rng) -> Vec<[Cable; 2]> {
    let actors = sites.len() + tree.leaves.len();
    let mut cable = || {
        let mut quality: Quality = options.quality.clone();
        if rng.chance(options.bad_links) {
            quality.loss = 500;
        }
        Cable::new(quality)
    };
    (0..actors).map(|_| [cable(), cable()]).collect()
}

/// A process as it begins.
pub(super) fn make_host(tree: &Tree, sites: &Sites, process: usize, first: Epoch) -> Host {
    let hosting = |site: usize| {
        let node = sites.node(site);
        let parent = tree.nodes[node].parent.map(|(parent, _)| (NodeId(parent as u16), sites.candidates(parent)));
        Hosting { node: NodeId(node as u16), candidates: sites.candidates(node), me: sites.candidate(site), parent }
    };
    Host::new(first, sites.of_process(process).into_iter().map(hosting))
}

pub(super) fn make_actors(tree: &Tree, sites: &Sites, options: &Options, rng: &mut Rng) -> Vec<Actor> {
    let actors = sites.len() + tree.leaves.len();
    let slow = options.slow.map(|times| (rng.below(actors as u64) as usize, times));
    (0..actors)
        .map(|actor| Actor {
            host: match actor.checked_sub(sites.len()) {
                None => sites.process(actor),
                Some(rank) => sites.processes() + rank,
            },
            inbox: VecDeque::new(),
            datagrams: 0,
            service: match slow {
                Some((who, times)) if who == actor => Nanos(options.service.0 * times),
                _ => options.service,
            },
            busy_until: Nanos(0),
            wake_at: Nanos::NEVER,
            dead: false,
        })
        .collect()
}
