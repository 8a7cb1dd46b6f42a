//! What can be done to the actors of a run: they are killed, stopped and cut off.

use trib_proto::Nanos;

use super::World;
use super::actor::Pause;
use crate::environment::Event;
use crate::network::{Gate, Partition};

impl World {
    /// Kills a rank at a time.
    pub fn kill_rank(&mut self, at: Nanos, rank: u32, orderly: bool) {
        self.calm_at = self.calm_at.max(at);
        let event = Event::KillRank { rank, orderly };
        self.environment.clock.at(at, event);
    }

    /// Stops the process of an actor from one time to another.
    pub fn pause(&mut self, actor: usize, start: Nanos, end: Nanos) {
        self.calm_at = self.calm_at.max(end);
        let host = self.actors[actor].host;
        self.pauses[host].push(Pause { start, end });
    }

    /// Lets the process of a rank need so many times as long for everything as others, and that of
    /// each node that it may host. One that is slow already becomes no slower than the slower of
    /// the two: a process that never comes to its ticks in time takes nobody for dead.
    pub fn slow_down(&mut self, rank: u32, times: u64) {
        let host = self.actors[self.environment.actor_of(rank)].host;
        let service = Nanos(self.environment.options.service.0 * times);
        for actor in self.actors.iter_mut().filter(|actor| actor.host == host) {
            actor.service = actor.service.max(service);
        }
    }

    /// Stops the process of a node for longer than others wait for it.
    pub fn stop_node(&mut self, node: usize, start: Nanos, end: Nanos) {
        if !self.environment.options.recovers {
            self.lose_nodes(self.actors[node].host);
        }
        self.pause(node, start, end);
    }

    /// Kills the process of a candidate of a node. It begins anew at another time, perhaps, unless
    /// it is a rank.
    pub fn crash(&mut self, (node, candidate): (usize, usize), at: Nanos, again: Option<Nanos>, refuses: bool) {
        let process = self.environment.sites.process(self.environment.sites.site(node, candidate));
        self.calm_at = self.calm_at.max(again.unwrap_or(at));
        self.environment.clock.at(at, Event::KillProcess { process, refuses });
        if let Some(again) = again {
            self.environment.clock.at(again, Event::Restart(process));
        }
    }

    /// The process of a candidate of a node leaves the job in an orderly way.
    pub fn depart(&mut self, (node, candidate): (usize, usize), at: Nanos) {
        let process = self.environment.sites.process(self.environment.sites.site(node, candidate));
        self.calm_at = self.calm_at.max(at);
        self.environment.clock.at(at, Event::Depart(process));
    }

    /// Lets nothing through the way above an actor from one time to another, in one direction.
    pub fn outage(&mut self, below: usize, up: bool, start: Nanos, end: Nanos) {
        self.calm_at = self.calm_at.max(end);
        self.environment.cables[below][usize::from(up)].outages.push((start, end));
    }

    /// Lets nothing through between two parts of the processes, or nothing one way.
    pub fn part(&mut self, partition: Partition) {
        self.calm_at = self.calm_at.max(partition.span.1);
        self.environment.partitions.push(partition);
    }

    /// Stops a rank for longer than others wait for it.
    pub fn stop_rank(&mut self, rank: u32, start: Nanos, end: Nanos) {
        self.environment.checkers.rank_stopped(rank);
        self.pause(self.environment.actor_of(rank), start, end);
    }

    /// Lets only some datagrams through the link above an actor, in one direction.
    pub fn narrow(&mut self, below: usize, up: bool, gate: Gate) {
        let Some((node, child)) = self.environment.parent_of(below) else { return };
        let ranks = self.environment.tree.children_of(node)[usize::from(child.0)].ranks.clone();
        let ends = (ranks.iter().min(), ranks.iter().max());
        if let (Some(first), Some(last)) = ends {
            self.environment.checkers.narrowed(node, (first.0, last.0));
        }
        self.environment.cables[below][usize::from(up)].gate = gate;
    }
}
