//! How groups come into being: joins gather upward, the verdict travels down, and between the two
//! the quota is asked.

use trib_wire::{Body, ChildIndex, Fault, GroupKey, Header, Kind, Rank, RankList, Reason};

use crate::node::group::Group;
use crate::node::info::{Duty, GroupInfo};
use std::collections::VecDeque;

use super::loss::lose_the_dead;
use super::pending::{Join, Pending};
use super::stage::Event;
use crate::Path;
use crate::node::{Link, NodeCore, NodeOutput, Note, Payload, Target};

impl<B> NodeCore<B> {
    pub(in crate::node) fn on_join(
        &mut self,
        child: ChildIndex,
        key: &GroupKey,
        join: Join<'_>,
        out: &mut impl NodeOutput,
    ) {
        let nodes = join.nodes;
        let credible = if self.place.is_node(child) {
            nodes.is_empty() || nodes.is_valid(u32::from(u16::MAX))
        } else {
            nodes.is_empty()
        };
        let bit = 1u64 << child.0;
        if let Some(fault) = self.orphaned {
            return self.refuse(key, bit, fault, out);
        }
        let waiting = self.pending.get(key).is_some_and(|line| line.iter().any(|p| p.joined & bit == 0));
        if !waiting {
            if self.pending_count > PENDING_FLOOR + PENDING_PER_GROUP * self.place.config.limits.groups as usize {
                out.note(Note::Violation);
                return self.dead.push(Link::Child(child));
            }
            if let Err(fault) = self.open_pending(key, child) {
                return self.refuse(key, bit, fault, out);
            }
        }
        let Some(pending) = self.pending.get_mut(key).and_then(|line| line.iter_mut().find(|p| p.joined & bit == 0))
        else {
            return;
        };
        let fault = join.fault.or((!credible).then(|| self.place.about(Reason::Protocol, Rank(0))));
        pending.join(child, Join { fault, nodes: if credible { nodes } else { &EMPTY }, ..join });
        self.advance_pending(key, out);
    }

    /// Begins to gather the joins of a group.
    pub(in crate::node) fn open_pending(&mut self, key: &GroupKey, child: ChildIndex) -> Result<(), Fault> {
        let mut pending = Pending::new(&self.place, key.clone())?;
        if pending.all & (1 << child.0) == 0 {
            return Err(self.place.about(Reason::BadMembers, key.members.nth(0).unwrap_or(Rank(0))));
        }
        lose_the_dead(&self.place, &self.lost, &mut pending);
        self.pending.entry(key.clone()).or_default().push_back(pending);
        self.pending_count += 1;
        Ok(())
    }

    /// Why the quota has no room for one more group, if it has none. It is asked when all have
    /// joined and not before: by then every member's earlier leaves have come, so a group may take
    /// the place of one that its members have just freed.
    pub(in crate::node) fn over_quota(&self, duty: Duty) -> Option<Reason> {
        let limits = &self.place.config.limits;
        let groups = self.table.len() + self.reserved + 1;
        if groups > limits.groups as usize {
            Some(Reason::GroupQuota)
        } else if duty != Duty::Relay && groups as u64 * u64::from(limits.window) > u64::from(limits.osts) {
            Some(Reason::OstQuota)
        } else {
            None
        }
    }

    pub(in crate::node) fn advance_pending(&mut self, key: &GroupKey, out: &mut impl NodeOutput) {
        let complete = |line: &VecDeque<Pending>| line.iter().find(|p| p.is_complete()).map(|p| p.duty);
        let Some(duty) = self.pending.get(key).and_then(complete) else { return };
        let quota = self.over_quota(duty).map(|reason| self.place.about(reason, key.members.nth(0).unwrap_or(Rank(0))));
        let place = &self.place;
        let Some(pending) = self.pending.get_mut(key).and_then(|line| line.iter_mut().find(|p| p.is_complete())) else {
            return;
        };
        pending.fault = pending.fault.or(quota);
        match place.up(Kind::Join) {
            Some(header) => {
                pending.step(Event::AllJoined, false);
                pending.reserves = pending.fault.is_none();
                self.reserved += usize::from(pending.reserves);
                let nodes = pending.folding_nodes(place);
                let name = pending.name.clone();
                let body = Body::Join { key: key.clone(), fault: pending.fault, nodes, name };
                out.transmit(Target::Parent, Path::Stream, &header, Payload::Body(&body));
            }
            None => match pending.fault {
                Some(fault) => self.end_pending(key, fault, out),
                None => self.make_group(key, None, out),
            },
        }
    }

    pub(in crate::node) fn on_ready(&mut self, header: &Header, key: &GroupKey, out: &mut impl NodeOutput) {
        if header.group.0 >= 2 * self.place.config.limits.groups.max(1) {
            return out.note(Note::Violation);
        }
        self.make_group(key, Some(header), out);
    }

    pub(in crate::node) fn on_refused(&mut self, key: &GroupKey, fault: Fault, out: &mut impl NodeOutput) {
        self.end_pending(key, fault, out);
    }

    /// Takes the oldest creation of this key to which this verdict can apply, if there is one.
    fn take_pending(&mut self, key: &GroupKey, verdict: Event) -> Option<Pending> {
        let is_root = self.place.config.parent.is_none();
        let line = self.pending.get_mut(key)?;
        if !line.front_mut()?.step(verdict, is_root) {
            return None;
        }
        let pending = line.pop_front()?;
        if line.is_empty() {
            self.pending.remove(key);
        }
        self.pending_count -= 1;
        self.reserved -= usize::from(pending.reserves);
        Some(pending)
    }

    pub(in crate::node) fn make_group(&mut self, key: &GroupKey, ready: Option<&Header>, out: &mut impl NodeOutput) {
        let Some(pending) = self.take_pending(key, Event::Ready) else { return out.note(Note::Violation) };
        let (index, generation) = self.table.next_name();
        let nodes = if self.arbiter.is_some() { pending.folding_nodes(&self.place) } else { RankList::default() };
        let info = GroupInfo {
            index,
            generation,
            size: key.members.len(),
            key: pending.key,
            name: pending.name,
            up: ready.map(|h| (h.group, h.generation)),
            duty: pending.duty,
            members: pending.members,
            all: pending.all,
            inner: pending.inner,
            nodes,
        };
        let header = info.down(&self.place, Kind::Ready, ChildIndex::ALL);
        let body = Body::Ready(info.key.clone());
        let targets = pending.all & !pending.dead;
        let mut group = Group::new(info);
        group.left = pending.dead;
        self.table.insert(group);
        out.note(Note::GroupMade);
        if targets != 0 {
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::Body(&body));
        }
        if let Some(fault) = pending.fault {
            self.fail(index, fault, None, out);
            self.try_free(index, out);
        }
    }

    pub(in crate::node) fn end_pending(&mut self, key: &GroupKey, fault: Fault, out: &mut impl NodeOutput) {
        let Some(pending) = self.take_pending(key, Event::Refused) else { return out.note(Note::Violation) };
        self.refuse(key, pending.all & !pending.dead, fault, out);
    }

    pub(in crate::node) fn refuse(&self, key: &GroupKey, targets: u64, fault: Fault, out: &mut impl NodeOutput) {
        out.note(Note::GroupRefused);
        if targets != 0 {
            let header = self.place.down(Kind::Refused, ChildIndex::ALL);
            let body = Body::Refused(key.clone(), fault);
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::Body(&body));
        }
    }
}

/// A child that starts this many more creations than the job may have groups is out of order. Its
/// connection is closed, which its peers see as its death. If it were refused quietly, they would
/// wait for ever.
const PENDING_PER_GROUP: usize = 4;

const PENDING_FLOOR: usize = 256;

static EMPTY: RankList = RankList::EMPTY;
