//! Groups of an earlier epoch. Each rank joins those that it has again. One that has done with a
//! group has forgotten it and is asked, so that nobody waits for it. In the first epoch nodes are
//! asked that have not joined.

use trib_wire::{Body, ChildIndex, GroupKey, Kind};

use super::loss::lose_the_dead;
use super::pending::Pending;
use crate::Path;
use crate::node::{Link, NodeCore, NodeOutput, Payload, Target};

impl<B> NodeCore<B> {
    /// The parent knows that somebody resumes the group, or waits for it.
    pub(in crate::node) fn on_ask(&mut self, key: &GroupKey, out: &mut impl NodeOutput) {
        match self.pending.get_mut(key) {
            Some(pending) if pending.asked => {}
            Some(pending) => {
                pending.asked = true;
                let targets = pending.all & !pending.joined;
                self.ask(key, targets, out);
            }
            None => {
                let Ok(mut pending) = Pending::new(&self.identity, key.clone()) else { return };
                if !self.may_open(&pending, true) {
                    return self.cut_off(Link::Parent, out);
                }
                lose_the_dead(&self.identity, &self.lost, &mut pending);
                pending.asked = true;
                let targets = pending.all & !pending.joined;
                self.open_pending(pending);
                self.ask(key, targets, out);
                self.advance_pending(key, out);
            }
        }
    }

    /// The first epoch: a group has been in the making for up to a heartbeat. A rank that has not
    /// joined is late, or dead with a node that could not tell. Nodes below hear that others wait,
    /// so that they miss children of their own that never came.
    pub(in crate::node) fn ask_nodes_once(&mut self, out: &mut impl NodeOutput) {
        let unasked = self.pending.values_mut().filter(|pending| !pending.asked);
        let late: Vec<(GroupKey, u64)> = unasked
            .map(|pending| {
                pending.asked = true;
                (pending.key.clone(), pending.inner & !pending.joined)
            })
            .collect();
        late.iter().for_each(|(key, targets)| self.ask(key, *targets, out));
    }

    pub(in crate::node) fn ask(&self, key: &GroupKey, targets: u64, out: &mut impl NodeOutput) {
        if targets != 0 {
            let header = self.identity.down(Kind::Ask, ChildIndex::ALL);
            let body = Body::Ask(key.clone());
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::Body(&body));
        }
    }
}
