//! How ranks leave the job that have done. A rank whose process hosts nodes waits for a moment
//! until nobody is left below them. Those that are needed longer go on elsewhere.

use trib_proto::Nanos;

use super::World;
use crate::environment::{Close, Event};

/// How far a rank is on its way out.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Leaving {
    /// Since when its program has been at its end.
    done_at: Option<Nanos>,
    /// Whether it has left.
    left: bool,
}

impl World {
    /// An actor has done something, after which its rank may leave, or the process of one that has
    /// left may end.
    pub(super) fn go_on_leaving(&mut self, actor: usize) {
        if !self.environment.options.leaves {
            return;
        }
        match self.rank_of(actor) {
            Some(rank) if !self.leaving[rank].left => self.leave_if_done(rank),
            Some(_) => {}
            None => {
                let process = self.actors[actor].host;
                let rank = self.environment.sites.rank_of_process(process);
                if rank.is_some_and(|rank| self.leaving[rank as usize].left) {
                    self.see_out(process);
                }
            }
        }
    }

    fn leave_if_done(&mut self, rank: usize) {
        let (now, actor) = (self.environment.now(), self.environment.actor_of(rank as u32));
        if !self.leaves[rank].is_done() {
            return;
        }
        let done_at = match self.leaving[rank].done_at {
            Some(done_at) => done_at,
            None => {
                self.leaving[rank].done_at = Some(now);
                self.environment.clock.at(now + self.stay(), Event::Program(actor));
                now
            }
        };
        let is_asked = self.leaves[rank].may_be_asked() && now.since(done_at) < self.stay();
        let is_needed = self.leaves[rank].left_behind() > 0;
        if is_asked || is_needed || !self.is_free_to_leave(rank) {
            return;
        }
        self.leaving[rank].left = true;
        self.actors[actor].dead = true;
        self.environment.checkers.rank_left(rank as u32);
        if let Some(link) = self.environment.above(actor) {
            self.environment.close(link, Close::Orderly);
        }
        let process = self.actors[actor].host;
        self.environment.clock.at(now + LINGER, Event::Depart(process));
        self.see_out(process);
    }

    /// Whether every node that others need has a process without this rank's. The nodes of a host
    /// cannot go on without one, and nothing in the protocol says to a rank that it is the last.
    /// One that stands still is no such process: before it wakes, others take those below for dead.
    fn is_free_to_leave(&self, rank: usize) -> bool {
        let processes = self.environment.sites.processes();
        let is_out = |other: usize| {
            let actor = self.environment.actor_of(other as u32);
            other == rank || self.actors[actor].dead
        };
        let mut out = self.out.clone();
        out.dead.extend((0..self.leaves.len()).filter(|other| is_out(*other)).map(|other| processes + other));
        out.leave_enough(self)
    }

    /// For how long a rank stays at most for others that may ask how a group has ended.
    fn stay(&self) -> Nanos {
        self.environment.options.limits.dead_after + Nanos::from_millis(10_000)
    }

    /// Ends the nodes in a process that leaves below which no rank is left, and the process, if
    /// there was no other.
    fn see_out(&mut self, process: usize) {
        let mut hosts_any = false;
        for site in self.environment.sites.of_process(process) {
            let Some(core) = &self.cores[site] else { continue };
            if core.is_deserted() && !self.environment.has_children(site) {
                let node = self.environment.sites.node(site);
                self.environment.checkers.node_deserted(node);
                self.hosts[process].0.remove(trib_wire::NodeId(node as u16));
                self.drop_core(site, Close::Orderly);
            } else {
                hosts_any = true;
            }
        }
        if !hosts_any {
            self.depart_now(process);
        }
    }
}

/// How long a rank waits for others when it leaves.
const LINGER: Nanos = Nanos::from_millis(1_000);
