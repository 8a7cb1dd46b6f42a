//! What the drivers of all cores share: clock, links, checkers, trace.

use std::collections::BTreeMap;
use std::rc::Rc;

use trib_proto::node::Link;
use trib_proto::{Nanos, Path};
use trib_wire::{Body, ChildIndex, ChildKind, Epoch, Generation, Header, Kind};

use crate::checkers::Checkers;
use crate::clock::Clock;
use crate::fabric::Tree;
use crate::network::{Channel, Frame, Gate};
use crate::options::Options;
use crate::random::Rng;
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
    /// The stream of a link is open for the actor at its far end.
    LinkUp(Edge),
    /// The stream of a link is closed for the actor at its far end.
    LinkDown(Edge),
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
    /// A node is killed.
    KillNode(usize),
}

/// One direction of the link above an actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The actor at the lower end.
    pub below: usize,
    /// Whether frames go up.
    pub up: bool,
}

/// Shared by all drivers.
pub struct Environment {
    /// The logical tree. Actors are numbered: first its nodes, then the ranks.
    pub tree: Tree,
    /// The options of the run.
    pub options: Options,
    /// Placement epoch of the job.
    pub epoch: Epoch,
    /// The clock.
    pub clock: Clock<Event>,
    /// The checkers.
    pub checkers: Checkers,
    /// The trace.
    pub trace: Trace,
    channels: Vec<[Channel; 2]>,
    /// For each node, the buffers that wait to be written, and into how many sockets each waits to
    /// be written.
    unwritten: Vec<BTreeMap<u32, u32>>,
    rng: Rng,
    frames: u64,
    /// Datagrams of which the sender's kernel says that they are too long for the link.
    refused: Vec<(Edge, Header)>,
}

impl Environment {
    /// An environment. `channels` has both directions (down, up) of each link by the actor below
    /// it; the entry of the root is unused.
    pub fn new(
        tree: Tree,
        (options, epoch): (Options, Epoch),
        channels: Vec<[Channel; 2]>,
        (checkers, trace): (Checkers, Trace),
        rng: Rng,
    ) -> Environment {
        let unwritten = vec![BTreeMap::new(); tree.nodes.len()];
        let (clock, frames, refused) = (Clock::new(), 0, Vec::new());
        Environment { unwritten, tree, options, epoch, clock, checkers, trace, channels, rng, frames, refused }
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
        self.tree.nodes.len() + rank as usize
    }

    /// The actor that is a node's child.
    pub fn child_actor(&self, node: usize, child: ChildIndex) -> Option<usize> {
        let kind = self.tree.nodes[node].children.get(usize::from(child.0))?;
        Some(match kind {
            ChildKind::Rank(rank) => self.actor_of(rank.0),
            ChildKind::Node(id) => usize::from(id.0),
        })
    }

    /// Node and position above an actor; `None` at the root.
    pub fn parent_of(&self, actor: usize) -> Option<(usize, ChildIndex)> {
        let (node, child) = match actor.checked_sub(self.tree.nodes.len()) {
            None => self.tree.nodes[actor].parent?,
            Some(rank) => self.tree.leaves[rank],
        };
        Some((node, ChildIndex(child)))
    }

    /// The actor at the far end, and what that actor calls the link.
    pub fn far_end(&self, edge: Edge) -> (usize, Link) {
        match self.parent_of(edge.below) {
            Some((node, child)) if edge.up => (node, Link::Child(child)),
            _ => (edge.below, Link::Parent),
        }
    }

    /// A name for traces.
    pub fn name(&self, actor: usize) -> String {
        match actor.checked_sub(self.tree.nodes.len()) {
            None => format!("n{actor}"),
            Some(rank) => format!("r{rank}"),
        }
    }

    /// One direction of a link.
    pub fn channel(&mut self, edge: Edge) -> &mut Channel {
        &mut self.channels[edge.below][usize::from(edge.up)]
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

    /// Buffers of a node whose bytes still wait to be written into some socket.
    pub fn unwritten(&self, node: usize) -> impl Iterator<Item = &u32> {
        self.unwritten[node].keys()
    }

    /// Sends a frame.
    pub fn send(&mut self, edge: Edge, path: Path, frame: Rc<Frame>) {
        let header = &frame.header;
        self.check_address(edge, path, header);
        self.frames += 1;
        self.record(edge, path, header, "sends");
        match path {
            Path::Stream => {
                if let Some((node, buffer)) = frame.source {
                    *self.unwritten[node].entry(buffer).or_insert(0) += 1;
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
            let channel = &mut self.channels[edge.below][usize::from(edge.up)];
            let Some(written) = channel.write(now, &mut self.rng) else {
                return;
            };
            self.clock.at(written.arrival, Event::Readable(edge));
            if let Some((node, buffer)) = written.frame.source
                && let Some(count) = self.unwritten[node].get_mut(&buffer)
            {
                *count -= 1;
                if *count == 0 {
                    self.unwritten[node].remove(&buffer);
                }
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

    /// Closes the stream of a link; each end that still exists hears of it.
    pub fn close(&mut self, below: usize, orderly: bool) {
        let now = self.now();
        for up in [false, true] {
            let edge = Edge { below, up };
            let delay = self.channel(edge).quality.delay;
            let last = self.channel(edge).last_arrival();
            self.channel(edge).cut(orderly);
            self.clock.at(last.max(now + delay), Event::LinkDown(edge));
        }
    }

    /// Adds an event to the trace.
    pub fn record(&mut self, edge: Edge, path: Path, header: &Header, verb: &str) {
        let way = u64::from(edge.up) | u64::from(path == Path::Stream) << 1;
        let numbers = [
            (edge.below as u64) << 32 | way << 16 | u64::from(header.kind as u8),
            header.seq,
            header.op_seq << 32 | u64::from(header.payload_len),
        ];
        let now = self.now();
        if self.trace.is_printing() {
            let (upper, lower) = match self.parent_of(edge.below) {
                Some((node, _)) => (self.name(node), self.name(edge.below)),
                None => ("?".into(), self.name(edge.below)),
            };
            let (from, to) = if edge.up { (lower, upper) } else { (upper, lower) };
            let name = match path {
                Path::Datagram => "dgram",
                Path::Stream => "stream",
            };
            self.trace.event(now, numbers, format_args!("{from:>4} -> {to:<4} {verb:<6} {name:<6} {header}"));
        } else {
            self.trace.event(now, numbers, format_args!(""));
        }
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
        let channel = &self.channels[edge.below][usize::from(edge.up)];
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
        let Some((node, child)) = self.parent_of(edge.below) else {
            return;
        };
        let named = header.child == child || (!edge.up && header.child == ChildIndex::ALL);
        if usize::from(header.node.0) != node || !named || header.epoch != self.epoch {
            let what = format!("{header} is sent by {path:?} on the link of {child} at node {node}");
            self.checkers.fail("wire", what);
        }
    }
}
