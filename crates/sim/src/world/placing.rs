//! How actors come to each other, epoch by epoch: drives `trib_proto::placing` as daemons and
//! clients do.

use trib_proto::node::Link;
use trib_proto::placing::{Answer, Errand};
use trib_wire::{ChildIndex, NodeId, Placement};

use super::World;
use crate::environment::{Close, Edge, Event, Word};
use crate::node::{Asked, Node};

impl World {
    /// The process of a site hosts its node from now on.
    pub(super) fn begin(&mut self, site: usize) {
        let view = self.hosts[self.environment.sites.process(site)].0.view().clone();
        let node = self.environment.sites.node(site);
        self.environment.checkers.node_begins(node, view.placement());
        self.cores[site] = Some(Node::new(site, &view, &mut self.environment));
        self.watch(site);
    }

    /// The process of a site hosts its node no more.
    pub(super) fn drop_core(&mut self, site: usize, how: Close) {
        self.end_core(site);
        self.environment.close_all(site, how);
    }

    pub(super) fn end_core(&mut self, site: usize) {
        if let Some(core) = self.cores[site].take() {
            self.environment.checkers.node_ends(self.environment.sites.node(site), core.placement());
        }
    }

    /// A process is in a new epoch: the nodes that it hosts say so to their neighbours and are
    /// gone.
    pub(super) fn move_process(&mut self, process: usize) {
        let placement = self.hosts[process].0.view().placement().clone();
        let now = self.environment.now();
        let what = format!("       process {process} goes to {placement:?}");
        self.environment.trace.event(now, [process as u64, 77, 0], format_args!("{what}"));
        for site in self.environment.sites.of_process(process) {
            if let Some(core) = &mut self.cores[site] {
                core.move_to(&placement, &mut self.environment);
                self.environment.tell_unconfirmed(site, &placement);
            }
            self.drop_core(site, Close::Orderly);
        }
    }

    /// Does what a process has to do for the nodes that it hosts.
    pub(super) fn serve(&mut self, process: usize) {
        let now = self.environment.now();
        let (moved, errands) = self.hosts[process].0.on_timer(now);
        if moved {
            self.move_process(process);
        }
        let sites = self.environment.sites.clone();
        let placement = self.hosts[process].0.view().placement().clone();
        for errand in errands {
            match errand {
                Errand::Call { node, above, candidate, .. } => {
                    let Some(lower) = self.site_in(process, node) else { continue };
                    self.environment.call(lower, sites.site(usize::from(above.0), candidate), &placement);
                }
                Errand::Tell { node, candidate, .. } => {
                    let Some(from) = self.site_in(process, node) else { continue };
                    let to = sites.site(usize::from(node.0), candidate);
                    let at = now + self.environment.options.quality.delay;
                    let placement = placement.clone();
                    if self.environment.reaches(from, to) {
                        self.environment.clock.at(at, Event::Tell { from, to, placement, answers: false });
                    }
                }
            }
        }
    }

    /// A rank calls, if it is time.
    pub(super) fn call(&mut self, rank: usize) {
        let now = self.environment.now();
        let actor = self.environment.actor_of(rank as u32);
        let way = self.leaves[rank].way();
        let node = usize::from(way.caller.node().0);
        let Some(candidate) = way.caller.on_timer(now, &mut way.view) else { return };
        let placement = way.view.placement().clone();
        if let Some(before) = self.environment.above(actor) {
            self.environment.close(before, Close::Orderly);
        }
        let upper = self.environment.sites.site(node, candidate);
        self.environment.call(actor, upper, &placement);
    }

    /// A rank is told of a placement.
    pub(super) fn move_rank(&mut self, rank: usize, placement: &Placement) {
        let now = self.environment.now();
        let way = self.leaves[rank].way();
        if !way.view.told(placement) {
            return;
        }
        way.caller.on_moved(now);
        self.leave(rank);
        self.call(rank);
    }

    /// The rank has no connection any more, and makes no call.
    fn leave(&mut self, rank: usize) {
        let actor = self.environment.actor_of(rank as u32);
        if let Some(link) = self.environment.above(actor) {
            self.environment.close(link, Close::Orderly);
            self.environment.forget(Edge { link, up: false });
        }
        if !self.leaves[rank].is_detached() {
            self.leaves[rank].link_down(&mut self.environment);
        }
    }

    /// What the core of a site has asked of its process.
    pub(super) fn hear_core(&mut self, site: usize) {
        let Some(core) = &mut self.cores[site] else { return };
        let (asked, epoch, process) = (core.take_asked(), core.epoch(), self.actors[site].host);
        for asked in asked {
            let what = match &asked {
                Asked::Suspect(node) => format!("suspects {node}"),
                Asked::MoveTo(placement) => format!("hears of {placement:?}"),
            };
            let (now, name) = (self.environment.now(), self.environment.name(site));
            self.environment.trace.event(now, [site as u64, 78, 0], format_args!("  {name:<6} {what}"));
            let moved = match asked {
                Asked::Suspect(node) => self.hosts[process].0.suspect(node, epoch),
                Asked::MoveTo(placement) => self.hosts[process].0.told(&placement),
            };
            if moved {
                self.move_process(process);
            }
        }
    }

    pub(super) fn take_word(&mut self, actor: usize, edge: Edge, word: Word) {
        self.environment.record_word(edge, &word);
        let (_, end) = self.environment.far_end(edge);
        match (word, end) {
            (Word::Call(placement), Link::Child(child)) => self.take_call(actor, (edge.link, child), &placement),
            (Word::Confirm, Link::Child(child)) => self.take_confirm(actor, (edge.link, child)),
            (Word::Down, Link::Child(child)) => self.take_down(actor, edge, Link::Child(child)),
            (_, Link::Parent) if self.environment.above(actor) != Some(edge.link) => {}
            (Word::Accept, Link::Parent) => self.take_accept(actor, edge.link),
            (Word::Moved(placement), Link::Parent) => match self.rank_of(actor) {
                Some(rank) => self.move_rank(rank, &placement),
                None => {
                    let process = self.actors[actor].host;
                    if self.hosts[process].0.told(&placement) {
                        self.move_process(process);
                    }
                }
            },
            (Word::Refuse | Word::Down, Link::Parent) => self.take_down(actor, edge, Link::Parent),
            _ => {}
        }
    }

    fn take_call(&mut self, site: usize, (link, child): (usize, ChildIndex), placement: &Placement) {
        let (now, process) = (self.environment.now(), self.actors[site].host);
        let node = NodeId(self.environment.sites.node(site) as u16);
        let heard = self.hosts[process].0.on_call(now, node, child, placement);
        if heard.moved {
            self.move_process(process);
        }
        if heard.begins {
            self.begin(site);
            self.serve(process);
        }
        let down = Edge { link, up: false };
        match heard.answer {
            Answer::Accept => self.environment.accept(link),
            Answer::Moved => {
                let placement = self.hosts[process].0.view().placement().clone();
                self.environment.say(down, Word::Moved(placement));
            }
            Answer::Refuse => self.environment.say(down, Word::Refuse),
        }
    }

    fn take_accept(&mut self, actor: usize, link: usize) {
        self.environment.open_below(link);
        match self.rank_of(actor) {
            Some(rank) => {
                self.leaves[rank].way().caller.on_accepted();
                let epoch = self.environment.epoch_of(link);
                self.leaves[rank].link_up(epoch, &mut self.environment);
            }
            None => {
                let node = NodeId(self.environment.sites.node(actor) as u16);
                self.hosts[self.actors[actor].host].0.on_accepted(node);
                if let Some(core) = &mut self.cores[actor] {
                    core.link_up(Link::Parent, &mut self.environment);
                }
            }
        }
    }

    fn take_confirm(&mut self, site: usize, (link, child): (usize, ChildIndex)) {
        let upward = Edge { link, up: true };
        let epoch = self.environment.epoch_of(link);
        let Some(core) = self.cores[site].as_mut().filter(|core| core.epoch() == epoch) else { return };
        if self.environment.is_of_this_life(upward) {
            let node = NodeId(self.environment.sites.node(site) as u16);
            self.hosts[self.actors[site].host].0.on_confirmed(node, epoch, child);
            self.environment.open_above(link);
            core.link_up(Link::Child(child), &mut self.environment);
        }
    }

    /// A link is closed, or a call was refused.
    fn take_down(&mut self, actor: usize, edge: Edge, end: Link) {
        let (now, recovers) = (self.environment.now(), self.environment.options.recovers);
        if !self.environment.is_current(edge) {
            return;
        }
        let epoch = self.environment.epoch_of(edge.link);
        // The end that hears of it closes its own side too.
        self.environment.forget(edge);
        if let Some(rank) = self.rank_of(actor) {
            let way = self.leaves[rank].way();
            if recovers {
                way.caller.on_lost(now, &mut way.view);
            }
            if !self.leaves[rank].is_detached() {
                self.leaves[rank].link_down(&mut self.environment);
            }
            if recovers {
                self.call(rank);
            }
            return;
        }
        let process = self.actors[actor].host;
        let node = NodeId(self.environment.sites.node(actor) as u16);
        if recovers && end == Link::Parent && self.hosts[process].0.on_parent_lost(now, node, epoch) {
            return self.move_process(process);
        }
        if let Some(core) = &mut self.cores[actor] {
            core.link_down(end, &mut self.environment);
        }
    }

    pub(super) fn take_tell(&mut self, site: usize, other: usize, placement: &Placement, answers: bool) {
        let process = self.actors[site].host;
        if self.hosts[process].0.told(placement) {
            self.move_process(process);
        }
        let own = self.hosts[process].0.view().placement().clone();
        if !answers {
            let at = self.environment.now() + self.environment.options.quality.delay;
            if self.environment.reaches(site, other) {
                self.environment.clock.at(at, Event::Tell { from: other, to: site, placement: own, answers: true });
            }
        } else if own == *placement {
            let now = self.environment.now();
            let (node, candidate) = (self.environment.sites.node(other), self.environment.sites.candidate(other));
            self.hosts[process].0.on_has_heard(now, NodeId(node as u16), candidate);
        }
    }

    /// The site of a node in a process.
    fn site_in(&self, process: usize, node: NodeId) -> Option<usize> {
        let sites = &self.environment.sites;
        sites.of_process(process).into_iter().find(|site| sites.node(*site) == usize::from(node.0))
    }
}
