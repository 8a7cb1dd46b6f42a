//! Whether the ranks that hosted a node before are still there. Where one is a child of the node
//! and its process is gone, nobody need wait for it to call.

use trib_proto::Nanos;
use trib_wire::{ChildIndex, ChildKind, NodeId, Rank};

use super::World;
use crate::environment::{Event, Look};
use crate::fabric::Home;

impl World {
    /// A node has come to a site: its process looks for those that hosted it before.
    pub(super) fn watch(&mut self, site: usize) {
        let node = self.environment.sites.node(site);
        let view = self.hosts[self.environment.sites.process(site)].0.view();
        let (Home::Ranks(home), tree) = (&self.environment.tree.nodes[node].home, &self.environment.tree) else {
            return;
        };
        let (moves, count) = (usize::from(view.placement().moves_of(NodeId(node as u16))), home.len());
        let before = (1..=moves.min(count - 1)).map(|back| home[(moves - back) % count]);
        let look = |rank: u32| {
            let child = tree.nodes[node].children.iter().position(|child| *child == ChildKind::Rank(Rank(rank)))?;
            Some(Look { epoch: view.epoch(), child: ChildIndex(child as u16), rank, before: 0, refusals: 0 })
        };
        for look in before.filter_map(look).collect::<Vec<_>>() {
            self.look_later(site, look);
        }
    }

    fn look_later(&mut self, site: usize, look: Look) {
        if let Some(pause) = PAUSES_MS.get(look.before) {
            let at = self.environment.now() + Nanos::from_millis(*pause);
            self.environment.clock.at(at, Event::Look { site, look });
        }
    }

    /// A process that hosts a node looks for another one.
    pub(super) fn look(&mut self, site: usize, look: Look) {
        let is_gone = self.refuses(look.rank);
        let Some(core) = self.cores[site].as_mut().filter(|core| core.epoch() == look.epoch) else { return };
        let refusals = if is_gone { look.refusals + 1 } else { 0 };
        if refusals < REFUSALS {
            return self.look_later(site, Look { before: look.before + 1, refusals, ..look });
        }
        let view = self.hosts[self.environment.sites.process(site)].0.view();
        self.environment.checkers.rank_seen_gone(look.rank, view.placement());
        core.child_gone(look.child, &mut self.environment);
    }

    /// Whether the process of a rank is gone and its host says so.
    fn refuses(&self, rank: u32) -> bool {
        let sites = &self.environment.sites;
        let process = sites.processes() + rank as usize;
        let mut actors = sites.of_process(process).into_iter().chain([self.environment.actor_of(rank)]);
        self.hosts[process].1 && actors.all(|actor| self.actors[actor].dead)
    }
}

/// The pauses before each look.
const PAUSES_MS: [u64; 8] = [50, 150, 300, 500, 1_000, 2_000, 3_000, 3_000];
/// So many refusals in a row are the end of a process.
const REFUSALS: u32 = 3;
