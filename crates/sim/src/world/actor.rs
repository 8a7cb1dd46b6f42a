//! Actors, which are nodes and ranks as processes: what waits at each of them, when its processor
//! has time, and when its timer is due.

use std::collections::VecDeque;
use std::rc::Rc;

use trib_proto::Nanos;
use trib_wire::Placement;

use super::World;
use crate::environment::{Edge, Event, Look, Word};
use crate::network::Frame;
use crate::node::Node;

/// What waits at an actor.
pub(super) enum Input {
    Datagram(Edge, Rc<Frame>),
    Readable(Edge),
    Written(Edge, Rc<Frame>),
    Word(Edge, Word),
    FirstCall,
    Tell { other: usize, placement: Placement, answers: bool },
    Look(Look),
    Program,
}

/// A node or a rank as a process: it has inputs, a processor that is busy at times, and one timer.
pub(super) struct Actor {
    pub(super) host: usize,
    pub(super) inbox: VecDeque<Input>,
    pub(super) datagrams: usize,
    pub(super) service: Nanos,
    pub(super) busy_until: Nanos,
    pub(super) wake_at: Nanos,
    pub(super) dead: bool,
}

/// A planned fault of one process: it stands still for a while.
pub(super) struct Pause {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
}

impl World {
    /// A word about a link arrives. Where nobody lives, the kernel answers a call.
    pub(super) fn bring(&mut self, edge: Edge, word: Word) {
        let (actor, _) = self.environment.far_end(edge);
        if self.actors[actor].dead && matches!(word, Word::Call(_)) {
            let refuses = self.hosts[self.actors[actor].host].1 || !self.environment.options.recovers;
            if refuses {
                self.environment.say(Edge { up: false, ..edge }, Word::Refuse);
            }
            return;
        }
        self.give(actor, Input::Word(edge, word));
    }

    pub(super) fn arrive(&mut self, edge: Edge, input: Input) {
        let (actor, _) = self.environment.far_end(edge);
        if self.actors[actor].dead {
            return;
        }
        if matches!(input, Input::Datagram(..)) && !self.environment.is_of_this_life(edge) {
            return;
        }
        let room = self.environment.options.datagram_room;
        let actor_state = &mut self.actors[actor];
        if matches!(input, Input::Datagram(..)) {
            if actor_state.datagrams >= room {
                return;
            }
            actor_state.datagrams += 1;
        }
        self.give(actor, input);
    }

    pub(super) fn give(&mut self, actor: usize, input: Input) {
        if !self.actors[actor].dead {
            self.actors[actor].inbox.push_back(input);
            self.work_off(actor);
        }
    }

    /// Lets an actor do what it has time for; asks for another wake-up if something is left.
    pub(super) fn work_off(&mut self, actor: usize) {
        let now = self.environment.now();
        if self.actors[actor].dead {
            return;
        }
        let free_at = self.free_at(actor);
        if free_at > now {
            return self.wake_at(actor, free_at);
        }
        if let Some(input) = self.actors[actor].inbox.pop_front() {
            self.take(actor, input);
            self.tell_refused(actor);
            self.actors[actor].busy_until = now + self.actors[actor].service;
            if !self.actors[actor].inbox.is_empty() {
                return self.wake_at(actor, self.actors[actor].busy_until);
            }
        }
        if self.deadline(actor) <= now {
            self.fire_timer(actor);
            self.tell_refused(actor);
            if self.deadline(actor) <= now {
                let name = self.environment.name(actor);
                let what = format!("the timer of {name} is due again at once");
                self.environment.checkers.fail("liveness", what);
            }
        }
        self.go_on_leaving(actor);
        let deadline = self.deadline(actor);
        if deadline != Nanos::NEVER {
            self.wake_at(actor, deadline.max(self.actors[actor].busy_until));
        }
    }

    /// When the actor's process runs and its processor has time.
    fn free_at(&self, actor: usize) -> Nanos {
        let mut at = self.environment.now().max(self.actors[actor].busy_until);
        let pauses = &self.pauses[self.actors[actor].host];
        while let Some(pause) = pauses.iter().find(|p| p.start <= at && at < p.end) {
            at = pause.end;
        }
        at
    }

    fn wake_at(&mut self, actor: usize, at: Nanos) {
        if at < self.actors[actor].wake_at {
            self.actors[actor].wake_at = at;
            self.environment.clock.at(at, Event::Wake(actor));
        }
    }

    fn deadline(&self, actor: usize) -> Nanos {
        let recovers = self.environment.options.recovers;
        match self.rank_of(actor) {
            None => {
                let core = self.cores[actor].as_ref().map_or(Nanos::NEVER, Node::deadline);
                let host = self.hosts[self.actors[actor].host].0.deadline();
                if recovers { core.min(host) } else { core }
            }
            Some(rank) => {
                let leaf = &self.leaves[rank];
                if recovers { leaf.deadline().min(leaf.calls_at()) } else { leaf.deadline() }
            }
        }
    }

    pub(super) fn rank_of(&self, actor: usize) -> Option<usize> {
        actor.checked_sub(self.cores.len())
    }
}
