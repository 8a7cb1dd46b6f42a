//! Groups of an earlier epoch. Each rank joins those that it has again. One that has done with a
//! group has forgotten it and is asked, so that nobody waits for it.

use trib_wire::{Body, ChildIndex, GroupKey, Kind};

use super::loss::lose_the_dead;
use super::pending::Pending;
use crate::Path;
use crate::node::{NodeCore, NodeOutput, Payload, Target};

impl<B> NodeCore<B> {
    /// The parent knows that somebody resumes the group.
    pub(in crate::node) fn on_ask(&mut self, key: &GroupKey, out: &mut impl NodeOutput) {
        match self.pending.get_mut(key) {
            Some(pending) if pending.asked => {}
            Some(pending) => {
                pending.asked = true;
                let targets = pending.all & !pending.joined;
                self.ask(key, targets, out);
            }
            None => {
                if let Ok(mut pending) = Pending::new(&self.place, key.clone()) {
                    lose_the_dead(&self.place, &self.lost, &mut pending);
                    pending.asked = true;
                    let targets = pending.all & !pending.joined;
                    self.pending.insert(key.clone(), pending);
                    self.ask(key, targets, out);
                    self.advance_pending(key, out);
                }
            }
        }
    }

    pub(in crate::node) fn ask(&self, key: &GroupKey, targets: u64, out: &mut impl NodeOutput) {
        if targets != 0 {
            let header = self.place.down(Kind::Ask, ChildIndex::ALL);
            let body = Body::Ask(key.clone());
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::Body(&body));
        }
    }
}
