//! How a run comes to its end, and how it is found out that it never will.

use trib_proto::Nanos;

use super::World;
use crate::leaf::Leaf;

impl World {
    /// Whether the run is over: all programs are done, all nodes are empty, and the links have been
    /// silent for a while. It also finds out that a run will never be over.
    pub(super) fn is_over(&mut self) -> bool {
        let now = self.environment.now();
        if self.environment.clock.scheduled() > EVENTS_MAX {
            self.stuck("the run has no end (livelock)");
            return true;
        }
        if self.done_at.is_none() {
            let mut ranks = self.leaves.iter().zip(&self.actors[self.cores.len()..]);
            if ranks.all(|(leaf, actor)| leaf.is_done() || actor.dead) {
                self.done_at = Some(now);
            }
        }
        match self.done_at {
            Some(since) => self.is_silent(now, since),
            None => {
                let asleep = self.leaves.iter().map(Leaf::asleep_until).max();
                let since = self.environment.checkers.last_progress();
                let since = since.max(self.calm_at).max(asleep.unwrap_or(now));
                if now.since(since) > STUCK_AFTER + self.unseen() {
                    self.stuck("nothing has gone forward for a minute");
                }
                false
            }
        }
    }

    /// Whether a rank waits for the word how an operation has ended, though its program has done.
    /// It may come in the next epoch only, from nodes that are not there yet.
    fn is_undecided(&self) -> bool {
        let mut ranks = self.leaves.iter().zip(&self.actors[self.cores.len()..]);
        ranks.any(|(leaf, actor)| !actor.dead && leaf.is_undecided())
    }

    /// How much longer something may take where a process has died that nobody saw die: its nodes
    /// are given up first, and what waits for its rank waits anew in the epoch after that.
    fn unseen(&self) -> Nanos {
        let is_met = self.environment.checkers.has_silent_dead();
        if is_met { self.environment.options.limits.dead_after } else { Nanos(0) }
    }

    fn is_silent(&mut self, now: Nanos, done_at: Nanos) -> bool {
        let empty = self.cores.iter().flatten().all(|core| core.groups() == 0);
        let may_wait = self.environment.checkers.may_fail();
        let gone = may_wait || self.leaves.iter().all(|leaf| leaf.left_behind() == 0);
        if !empty || !gone || self.is_undecided() {
            // A rank may have died unseen.
            let patience = LEAK_AFTER + self.environment.options.limits.dead_after + self.unseen();
            if now.since(done_at.max(self.calm_at)) > patience {
                self.check_nodes_empty();
                for leaf in &self.leaves {
                    leaf.check_empty(&mut self.environment);
                }
            }
            return false;
        }
        let (since, _) = *self.frames_when_empty.get_or_insert((now, self.environment.frames()));
        if now.since(since) <= SILENCE {
            return false;
        }
        self.check_nodes_empty();
        true
    }

    /// Nothing will happen any more. That is right if no rank waits and nothing is left.
    pub(super) fn end_early(&mut self) {
        if self.done_at.is_none() {
            return self.stuck("nothing will ever happen again");
        }
        self.check_nodes_empty();
    }

    fn check_nodes_empty(&mut self) {
        for core in self.cores.iter().flatten() {
            core.check_empty(&mut self.environment);
        }
    }

    fn stuck(&mut self, why: &str) {
        let waiting: Vec<String> = self
            .leaves
            .iter()
            .enumerate()
            .filter(|(_, leaf)| !leaf.is_done())
            .map(|(rank, _)| format!("r{rank}"))
            .collect();
        let name = |site: usize| self.environment.name(site);
        let groups: Vec<String> = self
            .cores
            .iter()
            .enumerate()
            .filter_map(|(site, core)| {
                core.as_ref().map(|c| format!("{}: {} in epoch {}", name(site), c.groups(), c.epoch().0))
            })
            .collect();
        let details = format!("programs that wait: {}; groups at the nodes: {groups:?}", waiting.join(" "));
        self.environment.checkers.stuck(why, &details);
    }
}

/// A run that schedules more events than this will not end.
const EVENTS_MAX: u64 = 4_000_000;
/// A run without progress for this long after the last fault hangs.
const STUCK_AFTER: Nanos = Nanos::from_millis(60_000);
/// Groups that still exist this long after the last program ended have leaked.
const LEAK_AFTER: Nanos = Nanos::from_millis(30_000);
/// How long a run goes on after everything is freed, so that strays arrive.
const SILENCE: Nanos = Nanos::from_millis(600);
