//! How frames go over links.

use std::collections::BTreeMap;
use std::rc::Rc;

use trib_proto::Nanos;
use trib_proto::Path;
use trib_wire::{Body, ChildIndex, Epoch, Generation, Header, Kind};

use super::Environment;
use super::event::{Edge, Event};
use crate::network::{Frame, Gate};
use crate::symbol::Value;

impl Environment {
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
    pub(super) fn send(&mut self, edge: Edge, path: Path, frame: Rc<Frame>) {
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

    /// Sends a frame of an older epoch or generation late, with other data in it. A way that is out
    /// carries none: a rank that nothing reaches would hear signs of life.
    fn send_ghost(&mut self, edge: Edge, frame: &Frame) {
        let now = self.now();
        if self.channel(edge).is_out(now) {
            return;
        }
        let mut header = frame.header;
        if header.generation.0 > 0 && self.rng.chance(600) {
            header.generation = Generation(header.generation.0 - 1);
        } else {
            header.epoch = Epoch(header.epoch.0 - 1);
        }
        let data = frame.data.as_ref().map(|value| Rc::new(value.poisoned()));
        if let Ok(ghost) = Frame::new(header, frame.body.clone(), data) {
            let late = self.rng.scaled(1, 2_000_000);
            let at = now + self.channel(edge).quality.delay + Nanos(late);
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
