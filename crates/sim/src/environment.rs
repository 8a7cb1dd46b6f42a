//! What the drivers of all cores share: clock, links, checkers, trace.

use std::collections::BTreeMap;
use std::rc::Rc;

use trib_proto::node::Link;
use trib_proto::{Nanos, Path};
use trib_wire::{Body, ChildIndex, Epoch, Generation, Header, Kind, Placement};

use crate::checkers::Checkers;
use crate::clock::Clock;
use crate::fabric::Tree;
use crate::network::{Cable, Channel, Frame, Gate};
use crate::options::Options;
use crate::random::Rng;
use crate::sites::Sites;
use crate::symbol::Value;
use crate::trace::Trace;

/// What happens.
#[derive(Debug)]
pub enum Event {
    /// A datagram arrives at the far end of a link.
    Datagram {
        /// The link.
        edge: Edge,
        /// The frame.
        frame: Rc<Frame>,
    },
    /// A stream frame has arrived at the far end of a link.
    Readable(Edge),
    /// A result is in the socket of a child's link.
    Written {
        /// The link, seen from above.
        edge: Edge,
        /// The frame.
        frame: Rc<Frame>,
    },
    /// A word about a link arrives at its far end.
    Word(Edge, Word),
    /// An actor calls the node above for the first time.
    FirstCall(usize),
    /// A process that hosts the root tells the placement to another one that might.
    Tell {
        /// The root's site in the process that tells.
        from: usize,
        /// The root's site in the process that is told.
        to: usize,
        /// What it is told, or answers.
        placement: Placement,
        /// Whether this is the answer.
        answers: bool,
    },
    /// An actor may have something to do.
    Wake(usize),
    /// A rank's program may go on.
    Program(usize),
    /// A rank is killed; its connection closes or it falls silent.
    KillRank {
        /// The rank.
        rank: u32,
        /// Whether the connection closes.
        orderly: bool,
    },
    /// A process that may host nodes is killed.
    KillProcess {
        /// The process.
        process: usize,
        /// Whether its host lives, and says that nobody is there.
        refuses: bool,
    },
    /// A process that was killed begins anew, and has forgotten everything.
    Restart(usize),
}

/// What the two ends of a link say to each other about the link itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// The lower end calls, with the placement that it knows.
    Call(Placement),
    /// The upper end takes the call.
    Accept,
    /// The lower end is to call again with this placement.
    Moved(Placement),
    /// The upper end does not take the call, or is not there.
    Refuse,
    /// The lower end has heard that its call was taken.
    Confirm,
    /// The stream is closed.
    Down,
}

/// One direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The link.
    pub link: usize,
    /// Whether frames go up.
    pub up: bool,
}

/// How a stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Close {
    /// A process closes it: what it has said to the other end still arrives.
    Orderly,
    /// The process is gone: what is in sockets still arrives.
    Killed,
    /// Nothing arrives any more, except that the stream has ended.
    Reset,
}

/// A connection between an actor and one that is above it in some epoch.
struct Connection {
    lower: usize,
    upper: usize,
    child: ChildIndex,
    epoch: Epoch,
    /// Down, up.
    channels: [Channel; 2],
    closed: bool,
    /// In which life the process at the upper end took the call.
    life: Option<u32>,
}

/// Frames that wait for a connection.
type Early = Vec<(Path, Rc<Frame>)>;

/// Shared by all drivers.
pub struct Environment {
    /// The logical tree.
    pub tree: Tree,
    /// Where its nodes may be.
    pub sites: Sites,
    /// The options of the run.
    pub options: Options,
    /// The first epoch of the job.
    pub first: Epoch,
    /// The clock.
    pub clock: Clock<Event>,
    /// The checkers.
    pub checkers: Checkers,
    /// The trace.
    pub trace: Trace,
    /// Both directions (down, up) of the way above each actor.
    pub cables: Vec<[Cable; 2]>,
    /// All connections that ever were.
    links: Vec<Connection>,
    /// How often the process of each site has begun anew. It has the keys of those connections that
    /// it has taken itself.
    lives: Vec<u32>,
    /// For each actor, its connection to the node above, or the call for one.
    up: Vec<Option<usize>>,
    /// For each site, the confirmed connection of each child.
    down: Vec<BTreeMap<u16, usize>>,
    /// For each site, what its core has said to children that have not called yet.
    early: Vec<BTreeMap<u16, Early>>,
    /// For each actor, what its core has said to the node above before the first call.
    early_up: Vec<Early>,
    /// For each core that ever was, the buffers that wait to be written, and into how many sockets
    /// each waits to be written.
    unwritten: Vec<BTreeMap<u32, u32>>,
    rng: Rng,
    frames: u64,
    /// Datagrams of which the sender's kernel says that they are too long for the link.
    refused: Vec<(Edge, Header)>,
}

impl Environment {
    /// An environment. `cables` has both directions (down, up) of the way above each actor; the
    /// entry of the root is unused.
    pub fn new(
        (tree, sites): (Tree, Sites),
        (options, first): (Options, Epoch),
        cables: Vec<[Cable; 2]>,
        (checkers, trace): (Checkers, Trace),
        rng: Rng,
    ) -> Environment {
        let (clock, frames, refused, unwritten) = (Clock::new(), 0, Vec::new(), Vec::new());
        let (actors, nodes) = (cables.len(), sites.len());
        let (links, up) = (Vec::new(), vec![None; actors]);
        let (down, early) = (vec![BTreeMap::new(); nodes], vec![BTreeMap::new(); nodes]);
        Environment {
            tree,
            sites,
            options,
            first,
            clock,
            checkers,
            trace,
            cables,
            links,
            lives: vec![0; nodes],
            up,
            down,
            early,
            early_up: vec![Vec::new(); actors],
            unwritten,
            rng,
            frames,
            refused,
        }
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Frames sent so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The actor of a rank.
    pub fn actor_of(&self, rank: u32) -> usize {
        self.sites.len() + rank as usize
    }

    /// Node and position above an actor; `None` at the root.
    pub fn parent_of(&self, actor: usize) -> Option<(usize, ChildIndex)> {
        let (node, child) = match actor.checked_sub(self.sites.len()) {
            None => self.tree.nodes[self.sites.node(actor)].parent?,
            Some(rank) => self.tree.leaves[rank],
        };
        Some((node, ChildIndex(child)))
    }

    /// The actor at the far end, and what that actor calls the link.
    pub fn far_end(&self, edge: Edge) -> (usize, Link) {
        let link = &self.links[edge.link];
        if edge.up { (link.upper, Link::Child(link.child)) } else { (link.lower, Link::Parent) }
    }

    /// A name for traces.
    pub fn name(&self, actor: usize) -> String {
        match actor.checked_sub(self.sites.len()) {
            None => {
                let (node, candidate) = (self.sites.node(actor), self.sites.candidate(actor));
                if candidate == 0 { format!("n{node}") } else { format!("n{node}.{candidate}") }
            }
            Some(rank) => format!("r{rank}"),
        }
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

    /// Whether a site has its connections, to the node above and to all children.
    pub fn is_connected(&self, site: usize) -> bool {
        let node = &self.tree.nodes[self.sites.node(site)];
        let is_up = self.up[site].is_some_and(|link| self.is_current(Edge { link, up: true }));
        (is_up || node.parent.is_none()) && self.down[site].len() == node.children.len()
    }

    /// An actor calls one that is above it.
    pub fn call(&mut self, lower: usize, upper: usize, placement: &Placement) {
        let Some((_, child)) = self.parent_of(lower) else { return };
        let channels = [Channel::over(&self.cables[lower][0]), Channel::over(&self.cables[lower][1])];
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
    fn count_written(&mut self, (core, buffer): (usize, u32)) {
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
        let is_of = |link: &Connection| link.lower == site || (link.upper == site && link.life.is_some());
        let of_site = |link: &Connection| !link.closed && is_of(link);
        let open: Vec<usize> = (0..self.links.len()).filter(|link| of_site(&self.links[*link])).collect();
        for link in open {
            self.close(link, how);
        }
        self.up[site] = None;
        self.down[site].clear();
        self.early[site].clear();
        self.early_up[site].clear();
    }

    /// A number for a new core, under which its buffers are known.
    pub fn new_core(&mut self) -> usize {
        self.unwritten.push(BTreeMap::new());
        self.unwritten.len() - 1
    }

    /// A frame as its receiver will see it; `None` (and a failure) if a receiver would not take it.
    pub fn frame(&mut self, header: &Header, body: Body, data: Option<Rc<Value>>) -> Option<Frame> {
        match Frame::new(*header, body, data) {
            Ok(frame) => Some(frame),
            Err(error) => {
                self.checkers.fail("wire", format!("{header} does not survive the wire: {error}"));
                None
            }
        }
    }

    /// Buffers of a core whose bytes still wait to be written into some socket.
    pub fn unwritten(&self, core: usize) -> impl Iterator<Item = &u32> {
        self.unwritten[core].keys()
    }

    /// Sends a frame to the node above, if there is a connection or a call for one.
    pub fn send_up(&mut self, actor: usize, path: Path, frame: Rc<Frame>) {
        match self.up[actor] {
            Some(link) => self.send(Edge { link, up: true }, path, frame),
            None => self.early_up[actor].push((path, frame)),
        }
    }

    /// Sends a frame to a site's child. One that has not called yet gets it when it has.
    pub fn send_down(&mut self, site: usize, child: ChildIndex, path: Path, frame: Rc<Frame>) {
        match self.down[site].get(&child.0) {
            Some(link) => self.send(Edge { link: *link, up: false }, path, frame),
            None if path == Path::Stream => self.early[site].entry(child.0).or_default().push((path, frame)),
            None => {}
        }
    }

    /// Sends a frame.
    fn send(&mut self, edge: Edge, path: Path, frame: Rc<Frame>) {
        let header = &frame.header;
        self.check_address(edge, path, header);
        self.frames += 1;
        self.record(edge, path, header, "sends");
        match path {
            Path::Stream => {
                if let Some((core, buffer)) = frame.source {
                    *self.unwritten[core].entry(buffer).or_insert(0) += 1;
                }
                self.channel(edge).queue(frame);
                self.write(edge);
            }
            Path::Datagram => self.send_datagram(edge, frame),
        }
    }

    /// Writes what the socket of a link takes.
    pub fn write(&mut self, edge: Edge) {
        let now = self.now();
        loop {
            let channel = &mut self.links[edge.link].channels[usize::from(edge.up)];
            let Some(written) = channel.write(now, &mut self.rng) else {
                return;
            };
            self.clock.at(written.arrival, Event::Readable(edge));
            if let Some(source) = written.frame.source {
                self.count_written(source);
            }
            if !edge.up && written.frame.header.kind == Kind::Result {
                let frame = written.frame;
                self.clock.at(now, Event::Written { edge, frame });
            }
        }
    }

    /// The reader at the far end takes a frame off the stream.
    pub fn read(&mut self, edge: Edge) -> Option<Rc<Frame>> {
        let now = self.now();
        let frame = self.channel(edge).read(now)?;
        self.write(edge);
        Some(frame)
    }

    /// Adds an event to the trace.
    pub fn record(&mut self, edge: Edge, path: Path, header: &Header, verb: &str) {
        let way = u64::from(edge.up) | u64::from(path == Path::Stream) << 1;
        let numbers = [
            (edge.link as u64) << 32 | way << 16 | u64::from(header.kind as u8),
            header.seq,
            header.op_seq << 32 | u64::from(header.payload_len),
        ];
        let now = self.now();
        if self.trace.is_printing() {
            let (from, to) = self.ends(edge);
            let name = match path {
                Path::Datagram => "dgram",
                Path::Stream => "stream",
            };
            self.trace.event(now, numbers, format_args!("{from:>4} -> {to:<4} {verb:<6} {name:<6} {header}"));
        } else {
            self.trace.event(now, numbers, format_args!(""));
        }
    }

    /// Adds a word to the trace.
    pub fn record_word(&mut self, edge: Edge, word: &Word) {
        let now = self.now();
        let numbers = [edge.link as u64, u64::from(edge.up), 0];
        if self.trace.is_printing() {
            let (from, to) = self.ends(edge);
            self.trace.event(now, numbers, format_args!("{from:>4} -> {to:<4} brings word   {word:?}"));
        } else {
            self.trace.event(now, numbers, format_args!(""));
        }
    }

    fn ends(&self, edge: Edge) -> (String, String) {
        let link = &self.links[edge.link];
        let (lower, upper) = (self.name(link.lower), self.name(link.upper));
        if edge.up { (lower, upper) } else { (upper, lower) }
    }

    /// A datagram that the sender's kernel has refused since this was last asked.
    pub fn take_refused(&mut self) -> Option<(Edge, Header)> {
        self.refused.pop()
    }

    fn send_datagram(&mut self, edge: Edge, frame: Rc<Frame>) {
        if frame.header.payload_len > self.options.limits.payload {
            let what = format!("a datagram of {}", frame.header);
            return self.checkers.fail("wire", what);
        }
        let now = self.now();
        let channel = &self.links[edge.link].channels[usize::from(edge.up)];
        if !channel.gate.passes(&frame) {
            if let Gate::Known(_) = channel.gate {
                self.refused.push((edge, frame.header));
            }
            return;
        }
        for arrival in channel.datagram_arrivals(now, &mut self.rng) {
            let frame = Rc::clone(&frame);
            self.clock.at(arrival, Event::Datagram { edge, frame });
        }
        if self.options.ghosts > 0 && self.rng.chance(self.options.ghosts) {
            self.send_ghost(edge, &frame);
        }
    }

    /// Sends a frame of an older epoch or generation late, with other data in it.
    fn send_ghost(&mut self, edge: Edge, frame: &Frame) {
        let mut header = frame.header;
        if header.generation.0 > 0 && self.rng.chance(600) {
            header.generation = Generation(header.generation.0 - 1);
        } else {
            header.epoch = Epoch(header.epoch.0 - 1);
        }
        let data = frame.data.as_ref().map(|value| Rc::new(value.poisoned()));
        if let Ok(ghost) = Frame::new(header, frame.body.clone(), data) {
            let late = self.rng.scaled(1, 2_000_000);
            let at = self.now() + self.channel(edge).quality.delay + Nanos(late);
            let frame = Rc::new(ghost);
            self.clock.at(at, Event::Datagram { edge, frame });
        }
    }

    /// Checks that a frame names the link that it crosses.
    fn check_address(&mut self, edge: Edge, path: Path, header: &Header) {
        let link = &self.links[edge.link];
        let (node, child, epoch) = (self.sites.node(link.upper), link.child, link.epoch);
        let named = header.child == child || (!edge.up && header.child == ChildIndex::ALL);
        if usize::from(header.node.0) != node || !named || header.epoch != epoch {
            let what =
                format!("{header} is sent by {path:?} on the link of {child} at node {node} of epoch {}", epoch.0);
            self.checkers.fail("wire", what);
        }
    }
}
