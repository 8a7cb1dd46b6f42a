//! Connections between actors and those above them: how they come into being, epoch by epoch, and
//! how they end.

use trib_proto::node::Link;
use trib_wire::{ChildIndex, Epoch, Placement};

use super::Environment;
use super::event::{Close, Edge, Event, Word};
use crate::network::Channel;

/// A connection between an actor and one that is above it in some epoch.
pub(super) struct Connection {
    pub(super) lower: usize,
    pub(super) upper: usize,
    pub(super) child: ChildIndex,
    pub(super) epoch: Epoch,
    /// Down, up.
    pub(super) channels: [Channel; 2],
    pub(super) closed: bool,
    /// In which life the process at the upper end took the call.
    pub(super) life: Option<u32>,
}

impl Environment {
    /// The actor at the far end, and what that actor calls the link.
    pub fn far_end(&self, edge: Edge) -> (usize, Link) {
        let link = &self.links[edge.link];
        if edge.up { (link.upper, Link::Child(link.child)) } else { (link.lower, Link::Parent) }
    }

    /// One direction of a link.
    pub fn channel(&mut self, edge: Edge) -> &mut Channel {
        &mut self.links[edge.link].channels[usize::from(edge.up)]
    }

    /// The epoch of a link.
    pub fn epoch_of(&self, link: usize) -> Epoch {
        self.links[link].epoch
    }

    /// The connection of an actor to the node above, or its call for one.
    pub fn above(&self, actor: usize) -> Option<usize> {
        self.up[actor]
    }

    /// The connection of a site's child.
    pub fn below(&self, site: usize, child: ChildIndex) -> Option<usize> {
        self.down[site].get(&child.0).copied()
    }

    /// Whether the actor at the far end still has the link, or still calls.
    pub fn is_current(&self, edge: Edge) -> bool {
        let link = &self.links[edge.link];
        let there = if edge.up { self.down[link.upper].get(&link.child.0).copied() } else { self.up[link.lower] };
        there == Some(edge.link)
    }

    /// Whether a site has a connection of some child.
    pub fn has_children(&self, site: usize) -> bool {
        !self.down[site].is_empty()
    }

    /// Whether a site has its connections, to the node above and to all children.
    pub fn is_connected(&self, site: usize) -> bool {
        let node = &self.tree.nodes[self.sites.node(site)];
        let is_up = self.up[site].is_some_and(|link| self.is_current(Edge { link, up: true }));
        (is_up || node.parent.is_none()) && self.down[site].len() == node.children.len()
    }

    /// An actor calls one that is above it.
    pub fn call(&mut self, lower: usize, upper: usize, placement: &Placement) {
        let Some((_, child)) = self.parent_of(lower) else { return };
        let [down, up] = &self.cables[lower];
        let mut channels = [Channel::over(down, up), Channel::over(up, down)];
        let (below, above) = (self.sites.process_of_actor(lower), self.sites.process_of_actor(upper));
        for partition in &self.partitions {
            for (up, from, to) in [(false, above, below), (true, below, above)] {
                if partition.parts(from, to) {
                    channels[usize::from(up)].cut_off(partition.span);
                    channels[usize::from(!up)].leave_unacknowledged(partition.span);
                }
            }
        }
        let epoch = placement.epoch(self.first);
        self.up[lower] = Some(self.links.len());
        self.links.push(Connection { lower, upper, child, epoch, channels, closed: false, life: None });
        let edge = Edge { link: self.links.len() - 1, up: true };
        self.say(edge, Word::Call(placement.clone()));
        for (path, frame) in std::mem::take(&mut self.early_up[lower]) {
            self.send(edge, path, frame);
        }
    }

    /// Says a word to the far end of a link.
    pub fn say(&mut self, edge: Edge, word: Word) {
        let now = self.now();
        let at = self.channel(edge).word_arrival(now);
        self.clock.at(at, Event::Word(edge, word));
    }

    /// The process of a site begins anew.
    pub fn begin_life(&mut self, site: usize) {
        self.lives[site] += 1;
    }

    /// The upper end takes the call.
    pub fn accept(&mut self, link: usize) {
        self.links[link].life = Some(self.lives[self.links[link].upper]);
        self.say(Edge { link, up: false }, Word::Accept);
    }

    /// Whether the process at the far end has the keys of the link.
    pub fn is_of_this_life(&self, edge: Edge) -> bool {
        let link = &self.links[edge.link];
        !edge.up || link.life == Some(self.lives[link.upper])
    }

    /// The lower end of a link may write.
    pub fn open_below(&mut self, link: usize) {
        let edge = Edge { link, up: true };
        self.say(edge, Word::Confirm);
        self.channel(edge).open();
        self.write(edge);
    }

    /// The upper end of a link may write.
    pub fn open_above(&mut self, link: usize) {
        let (upper, child) = (self.links[link].upper, self.links[link].child);
        self.down[upper].insert(child.0, link);
        self.channel(Edge { link, up: false }).open();
        for (path, frame) in self.early[upper].remove(&child.0).unwrap_or_default() {
            self.send(Edge { link, up: false }, path, frame);
        }
    }

    /// The actor at the far end of `edge` has the link no more.
    pub fn forget(&mut self, edge: Edge) {
        if self.is_current(edge) {
            let link = &self.links[edge.link];
            if edge.up {
                self.down[link.upper].remove(&link.child.0);
            } else {
                self.up[link.lower] = None;
            }
        }
        for up in [false, true] {
            self.drop_queued(Edge { up, ..edge });
            self.channel(Edge { up, ..edge }).cut(true);
        }
    }

    /// What is queued will not be written: its buffers need not wait for it.
    fn drop_queued(&mut self, edge: Edge) {
        let queued: Vec<(usize, u32)> = self.channel(edge).queued().filter_map(|frame| frame.source).collect();
        for source in queued {
            self.count_written(source);
        }
    }

    /// The bytes of a buffer need not wait for one of the sockets any more.
    pub(super) fn count_written(&mut self, (core, buffer): (usize, u32)) {
        let Some(count) = self.unwritten[core].get_mut(&buffer) else { return };
        *count -= 1;
        if *count == 0 {
            self.unwritten[core].remove(&buffer);
        }
    }

    /// Closes the stream of a link; each end that still has it hears of it.
    pub fn close(&mut self, link: usize, how: Close) {
        if std::mem::replace(&mut self.links[link].closed, true) {
            return;
        }
        let now = self.now();
        for up in [false, true] {
            let edge = Edge { link, up };
            self.drop_queued(edge);
            if how == Close::Orderly {
                for arrival in self.channel(edge).flush_control(now) {
                    self.clock.at(arrival, Event::Readable(edge));
                }
            }
            self.channel(edge).cut(how != Close::Reset);
            self.say(edge, Word::Down);
        }
    }

    /// Tells a placement to those whose calls a site has taken and that have not confirmed. Its
    /// core does not know of them.
    pub fn tell_unconfirmed(&mut self, site: usize, placement: &Placement) {
        let is_open = |link: &Connection| link.upper == site && link.life.is_some() && !link.closed;
        for link in (0..self.links.len()).filter(|link| is_open(&self.links[*link])).collect::<Vec<_>>() {
            if !self.is_current(Edge { link, up: true }) {
                self.say(Edge { link, up: false }, Word::Moved(placement.clone()));
            }
        }
    }

    /// Closes all links of a site, which hears of none of them any more. Calls that it has not
    /// taken are not its links.
    pub fn close_all(&mut self, site: usize, how: Close) {
        for link in self.open_links(site) {
            self.close(link, how);
        }
        self.forget_all(site);
    }

    /// Nothing comes from a site any more, and nobody hears that its links have ended.
    pub fn silence_all(&mut self, site: usize) {
        for link in self.open_links(site) {
            let edge = Edge { link, up: self.links[link].lower == site };
            self.drop_queued(edge);
            self.channel(edge).cut(false);
        }
        self.forget_all(site);
    }

    fn open_links(&self, site: usize) -> Vec<usize> {
        let is_of = |link: &Connection| link.lower == site || (link.upper == site && link.life.is_some());
        let of_site = |link: &Connection| !link.closed && is_of(link);
        (0..self.links.len()).filter(|link| of_site(&self.links[*link])).collect()
    }

    fn forget_all(&mut self, site: usize) {
        self.up[site] = None;
        self.down[site].clear();
        self.early[site].clear();
        self.early_up[site].clear();
    }
}
