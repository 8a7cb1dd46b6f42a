//! What an actor does with what has come to it.

use trib_proto::Path;
use trib_proto::node::Link;
use trib_wire::NodeId;

use super::World;
use super::actor::Input;
use crate::environment::Edge;
use crate::network::Frame;

impl World {
    pub(super) fn fire_timer(&mut self, actor: usize) {
        match self.rank_of(actor) {
            None => {
                if let Some(core) = &mut self.cores[actor] {
                    core.timer(&mut self.environment);
                }
                self.serve(self.actors[actor].host);
            }
            Some(rank) => {
                self.leaves[rank].timer(&mut self.environment);
                self.call(rank);
            }
        }
    }

    /// Tells the cores what their kernels have refused to send, and the processes what their cores
    /// have heard of the placement.
    pub(super) fn tell_refused(&mut self, actor: usize) {
        while let Some((edge, header)) = self.environment.take_refused() {
            // The sender of a frame is the actor that gets what is sent the other way.
            let (sender, link) = self.environment.far_end(Edge { up: !edge.up, ..edge });
            match self.rank_of(sender) {
                None => {
                    if let Some(core) = &mut self.cores[sender] {
                        core.too_long(link, &header, &mut self.environment);
                    }
                }
                Some(rank) => self.leaves[rank].too_long(&header, &mut self.environment),
            }
        }
        match self.rank_of(actor) {
            None => self.hear_core(actor),
            Some(rank) => {
                for placement in self.leaves[rank].take_told() {
                    self.move_rank(rank, &placement);
                }
            }
        }
    }

    pub(super) fn take(&mut self, actor: usize, input: Input) {
        match input {
            Input::Datagram(edge, frame) => {
                self.actors[actor].datagrams -= 1;
                self.take_frame(actor, edge, Path::Datagram, &frame);
            }
            Input::Readable(edge) => {
                if let Some(frame) = self.environment.read(edge).filter(|_| self.environment.is_current(edge)) {
                    self.take_frame(actor, edge, Path::Stream, &frame);
                }
            }
            Input::Written(edge, frame) => {
                let (_, link) = self.environment.far_end(edge);
                let core = self.cores.get_mut(actor).and_then(Option::as_mut);
                if let (Some(core), Link::Child(child)) = (core, link)
                    && self.environment.is_current(edge)
                {
                    core.written(child, &frame.header, &mut self.environment);
                }
            }
            Input::Word(edge, word) => self.take_word(actor, edge, word),
            Input::FirstCall => match self.rank_of(actor) {
                None => self.serve(self.actors[actor].host),
                Some(rank) => self.call(rank),
            },
            Input::Tell { other, placement, answers } => self.take_tell(actor, other, &placement, answers),
            Input::Look(look) => self.look(actor, look),
            Input::Program => {
                if let Some(rank) = self.rank_of(actor) {
                    self.leaves[rank].run(&self.work, &mut self.environment);
                }
            }
        }
    }

    fn take_frame(&mut self, actor: usize, edge: Edge, path: Path, frame: &Frame) {
        self.environment.record(edge, path, &frame.header, "brings");
        let (_, link) = self.environment.far_end(edge);
        match self.rank_of(actor) {
            None => {
                let node = NodeId(self.environment.sites.node(actor) as u16);
                if link == Link::Parent && path == Path::Stream {
                    self.hosts[self.actors[actor].host].0.on_fruit(node);
                }
                if let Some(core) = &mut self.cores[actor] {
                    core.frame(link, path, frame, &mut self.environment);
                }
            }
            Some(rank) => {
                if path == Path::Stream {
                    self.leaves[rank].way().caller.on_fruit();
                }
                self.leaves[rank].frame(path, frame, &mut self.environment);
            }
        }
    }
}
