//! How processes end and begin anew.

use trib_proto::Nanos;

use super::World;
use super::setting::make_host;
use crate::environment::{Close, Edge, Event};

impl World {
    /// A dead process begins anew. It may have been killed twice, and have begun anew already.
    pub(super) fn restart(&mut self, process: usize) {
        let sites = self.environment.sites.of_process(process);
        let is_rank = self.environment.sites.rank_of_process(process).is_some();
        if is_rank || !sites.iter().all(|site| self.actors[*site].dead) {
            return;
        }
        let (tree, first) = (&self.environment.tree, self.environment.first);
        self.hosts[process] = (make_host(tree, &self.environment.sites, process, first), true);
        for site in sites {
            self.actors[site].dead = false;
            self.environment.begin_life(site);
        }
    }

    /// A rank dies, and with it all nodes that its process hosts.
    pub(super) fn kill_now(&mut self, rank: u32, orderly: bool) {
        let actor = self.environment.actor_of(rank);
        if self.actors[actor].dead {
            return;
        }
        let link = self.environment.above(actor);
        let is_confirmed = link.is_some_and(|link| self.environment.is_current(Edge { link, up: true }));
        if !is_confirmed && !self.leaves[rank as usize].way().view.has_moved() {
            // A rank that dies before it has joined is not the protocol's matter.
            let later = self.environment.now() + Nanos::from_millis(1);
            return self.environment.clock.at(later, Event::KillRank { rank, orderly });
        }
        self.actors[actor].dead = true;
        self.environment.checkers.rank_killed(rank);
        if let Some(link) = link {
            if orderly {
                self.environment.close(link, Close::Killed);
            } else {
                self.environment.channel(Edge { link, up: true }).cut(false);
            }
        }
        if !orderly {
            self.environment.checkers.rank_silent();
        }
        self.end_process(self.actors[actor].host, orderly, orderly.then_some(Close::Killed));
    }

    /// A process that hosts nodes dies, and with it all that they know.
    pub(super) fn kill_process(&mut self, process: usize, refuses: bool) {
        if let Some(rank) = self.environment.sites.rank_of_process(process) {
            return self.kill_now(rank, refuses);
        }
        if !self.environment.options.recovers {
            let is_whole = |site: usize| self.environment.is_connected(site);
            if !self.environment.sites.of_process(process).into_iter().all(is_whole) {
                // A job that has not come together is not the protocol's matter.
                let later = self.environment.now() + Nanos::from_millis(1);
                return self.environment.clock.at(later, Event::KillProcess { process, refuses });
            }
            self.lose_nodes(process);
        }
        self.end_process(process, refuses, Some(Close::Killed));
    }

    /// Nothing is left of a process. Its links end so, or nobody hears that they do.
    fn end_process(&mut self, process: usize, refuses: bool, how: Option<Close>) {
        self.hosts[process].1 = refuses;
        for site in self.environment.sites.of_process(process) {
            self.environment.checkers.home_lost();
            self.actors[site].dead = true;
            self.actors[site].inbox.clear();
            self.actors[site].datagrams = 0;
            self.end_core(site);
            match how {
                Some(how) => self.environment.close_all(site, how),
                None => self.environment.silence_all(site),
            }
        }
    }

    /// A process tells its neighbours that it leaves, and is gone.
    pub(super) fn depart_now(&mut self, process: usize) {
        if self.hosts[process].0.leave() {
            self.move_process(process);
        }
        match self.environment.sites.rank_of_process(process) {
            Some(_) => self.end_process(process, true, Some(Close::Killed)),
            None => self.kill_process(process, true),
        }
    }

    /// The job does not go on without the nodes of this process.
    pub(super) fn lose_nodes(&mut self, process: usize) {
        for site in self.environment.sites.of_process(process) {
            self.environment.checkers.node_killed(self.environment.sites.node(site));
        }
    }
}
