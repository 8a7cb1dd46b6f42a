//! The aggregation node: one logical node of one job.
//!
//! Map: `join` (groups come into being), `table` (their names), `group` (one of them), `datagram` (LLT), `stream`
//! (SAT), `lease` (the right to stream), `results` (what goes down), `parts` (what is folded), `place`.
//!
//! Invariants: no timer but the heartbeat's; nothing proportional to a group's members but their runs; folds run in child
//! order whatever the order of arrival; every buffer that comes in goes out through `release` or `fold`.

mod config;
mod datagram;
mod group;
mod join;
mod lease;
mod output;
mod parts;
mod place;
mod results;
mod stream;
mod table;

pub use config::{NodeChild, NodeConfig};
pub use output::{Fold, NodeOutput, Note, Part, Payload, Target};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trib_wire::control::job::ChildKind;
use trib_wire::{Body, ChildIndex, Fault, GroupIndex, GroupKey, Header, Kind, Rank, RankList, Reason};

use crate::liveness::{Liveness, Need};
use crate::lock::{Arbiter, Decision};
use crate::{Nanos, Path, Token};
use datagram::Datagrams;
use group::{Duty, Group, GroupInfo, about};
use join::Pending;
use lease::{Phase, Step};
use place::Place;
use stream::Streams;
use table::Table;

/// The far end of a stream connection of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Link {
    /// Up.
    Parent,
    /// Down.
    Child(ChildIndex),
}

/// The state machine of one logical node of one job.
pub struct NodeCore {
    place: Place,
    table: Table,
    pending: BTreeMap<GroupKey, VecDeque<Pending>>,
    pending_count: usize,
    /// Pending groups that hold a place in the quota while the verdict is on its way.
    reserved: usize,
    /// Only at the root of the tree.
    arbiter: Option<Arbiter>,
    parent: Option<Liveness>,
    children: Vec<Option<Liveness>>,
    next_tick: Nanos,
    /// Links given up, for the driver to close.
    dead: Vec<Link>,
    /// Ranks below that are gone: their own connection, or that of a node between.
    lost: BTreeSet<Rank>,
    /// The parent is gone: no group can be made here any more.
    orphaned: Option<Fault>,
}

impl NodeCore {
    /// A node without groups.
    ///
    /// # Panics
    /// If the configuration has more than 64 children or limits out of range: the grant's parser checks both.
    pub fn new(config: NodeConfig) -> NodeCore {
        assert!(config.children.len() <= trib_wire::ids::CHILDREN_MAX, "a node has at most 64 children");
        assert!(config.limits.are_valid(), "limits out of range");
        let arbiter = config.parent.is_none().then(|| Arbiter::new(config.limits.streams));
        let children = vec![None; config.children.len()];
        NodeCore {
            place: Place::new(config),
            table: Table::default(),
            pending: BTreeMap::new(),
            pending_count: 0,
            reserved: 0,
            arbiter,
            parent: None,
            children,
            next_tick: Nanos::NEVER,
            dead: Vec::new(),
            lost: BTreeSet::new(),
            orphaned: None,
        }
    }

    /// The stream connection of a link is open and authenticated.
    pub fn on_link_up(&mut self, now: Nanos, link: Link, _out: &mut impl NodeOutput) {
        if let Some(slot) = self.liveness(link) {
            *slot = Some(Liveness::new(now));
        }
        if self.next_tick == Nanos::NEVER {
            self.next_tick = now + self.place.config.limits.heartbeat;
        }
    }

    /// The stream connection of a link is closed; it will not come back in this epoch. Groups that still need it fail.
    pub fn on_link_down(&mut self, _now: Nanos, link: Link, out: &mut impl NodeOutput) {
        if let Some(slot) = self.liveness(link) {
            *slot = None;
        }
        match link {
            Link::Parent => self.lose_parent(out),
            Link::Child(child) => self.lose_child(child, out),
        }
    }

    /// An authenticated frame came over `link`. `data` is the payload of a frame that carries vector data
    /// (`Some` exactly when `header.payload_len > 0` there); it is the core's from now on. `body` is `Body::None` then.
    pub fn on_frame(
        &mut self,
        now: Nanos,
        link: Link,
        path: Path,
        header: &Header,
        body: Body,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) {
        if let Some(Some(liveness)) = self.liveness(link) {
            liveness.heard(now);
        }
        if header.job != self.place.config.job || header.epoch != self.place.config.epoch {
            return self.refuse_frame(link, path, header, data, out);
        }
        match (link, header.kind, body) {
            (_, Kind::Heartbeat, _) => {}
            (Link::Child(child), Kind::Join, Body::Join { key, fault, nodes }) => {
                self.on_join(child, key, fault, &nodes, out);
            }
            (Link::Child(child), Kind::Lost, Body::Lost(ranks)) => self.on_lost(child, &ranks, out),
            (Link::Parent, Kind::Ready, Body::Ready(key)) => self.on_ready(header, &key, out),
            (Link::Parent, Kind::Refused, Body::Refused(key, fault)) => self.on_refused(&key, fault, out),
            (Link::Parent, Kind::Nack, _) => out.note(Note::UnknownGroup),
            (_, _, body) => self.on_group_frame(now, link, path, header, body, data, out),
        }
    }

    /// A `Kind::Result` stream frame is in the socket of `child`.
    pub fn on_written(&mut self, _now: Nanos, child: ChildIndex, header: &Header, out: &mut impl NodeOutput) {
        let Some(index) = self.table.named_by_child(header.group, header.generation) else { return };
        let Some(group) = self.table.get_mut(index) else { return };
        let Some(streams) = group.streams.as_mut() else { return };
        let outcome = streams.on_written(&self.place, &group.info, child, header.seq, out);
        self.settle(index, outcome, out);
        self.try_release(index, out);
    }

    /// The clock has reached `next_deadline`: heartbeats go out, silent links are found dead.
    pub fn on_timer(&mut self, now: Nanos, out: &mut impl NodeOutput) {
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + self.place.config.limits.heartbeat;
        let links = (0..self.children.len()).map(|c| Link::Child(ChildIndex(c as u16))).chain([Link::Parent]);
        for link in links.collect::<Vec<_>>() {
            let limits = self.place.config.limits;
            let Some(Some(liveness)) = self.liveness(link) else { continue };
            match liveness.need(now, &limits) {
                Need::Dead => self.dead.push(link),
                Need::Nothing => {}
                Need::Heartbeat => {
                    liveness.spoke(now);
                    self.beat(link, out);
                }
            }
        }
    }

    /// When `on_timer` wants to be called (only for heartbeats; retransmission timers live in hosts).
    pub fn next_deadline(&self) -> Nanos {
        self.next_tick
    }

    /// Groups alive, pending ones included.
    pub fn groups(&self) -> usize {
        self.table.len() + self.pending_count
    }

    /// Links that the core has given up since the last call, for silence or for flooding; the driver closes them.
    pub fn take_dead_links(&mut self) -> Vec<Link> {
        core::mem::take(&mut self.dead)
    }

    /// Buffers (tokens) that the core holds now: (datagram payloads, stream segments).
    pub fn tokens_held(&self) -> (usize, usize) {
        self.table.iter().fold((0, 0), |(datagrams, segments), group| {
            (
                datagrams + group.datagrams.as_ref().map_or(0, |d| d.tokens_held()),
                segments + group.streams.as_ref().map_or(0, |s| s.tokens_held()),
            )
        })
    }

    /// Stream contexts in use here.
    pub fn streams_held(&self) -> usize {
        self.table.iter().filter(|g| g.info.duty != Duty::Relay && g.lease.holds_context()).count()
    }

    /// Groups whose LLT slots have been used.
    pub fn datagram_groups(&self) -> usize {
        self.table.iter().filter(|g| g.datagrams.is_some()).count()
    }

    fn liveness(&mut self, link: Link) -> Option<&mut Option<Liveness>> {
        match link {
            Link::Parent => Some(&mut self.parent),
            Link::Child(child) => self.children.get_mut(usize::from(child.0)),
        }
    }

    fn beat(&self, link: Link, out: &mut impl NodeOutput) {
        match link {
            Link::Child(child) => {
                let header = self.place.down(Kind::Heartbeat, child);
                out.transmit(Target::Child(child), Path::Stream, &header, Payload::None);
            }
            Link::Parent => {
                if let Some(header) = self.place.up(Kind::Heartbeat) {
                    out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
                }
            }
        }
    }

    /// A frame for a group, generation or epoch that is not ours: counted, and a datagram from below is told.
    fn refuse_frame(
        &mut self,
        link: Link,
        path: Path,
        header: &Header,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) {
        if let Some(token) = data {
            out.release(token);
        }
        out.note(Note::UnknownGroup);
        if let (Link::Child(child), Path::Datagram) = (link, path) {
            let nack = Header {
                group: header.group,
                generation: header.generation,
                seq: header.seq,
                ..self.place.down(Kind::Nack, child)
            };
            out.transmit(Target::Child(child), Path::Datagram, &nack, Payload::Body(&Body::Nack(Reason::Unknown)));
        }
    }

    fn on_group_frame(
        &mut self,
        now: Nanos,
        link: Link,
        path: Path,
        header: &Header,
        body: Body,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) {
        let index = match link {
            Link::Child(_) => self.table.named_by_child(header.group, header.generation),
            Link::Parent => self.table.named_by_parent(header.group, header.generation),
        };
        let Some(group) = index.and_then(|index| self.table.get_mut(index)) else {
            return self.refuse_frame(link, path, header, data, out);
        };
        let index = group.info.index;
        if group.failed && header.kind != Kind::Leave {
            if let Some(token) = data {
                out.release(token);
            }
            return;
        }
        match link {
            Link::Parent => self.on_frame_from_parent(now, index, path, header, body, data, out),
            Link::Child(child) => match group.info.position(child) {
                Some(position) => self.on_frame_from_child(now, index, position, path, header, body, data, out),
                None => self.refuse_frame(link, path, header, data, out),
            },
        }
    }

    fn on_frame_from_child(
        &mut self,
        now: Nanos,
        index: GroupIndex,
        position: usize,
        path: Path,
        header: &Header,
        body: Body,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) {
        let Some(group) = self.table.get_mut(index) else { return };
        let (place, child) = (&self.place, group.info.members[position].child);
        if header.kind == Kind::Leave {
            return self.on_leave(index, child, out);
        }
        if group.left & (1 << child.0) != 0 {
            if let Some(token) = data {
                out.release(token);
            }
            return out.note(Note::Violation);
        }
        let outcome = match (header.kind, path, header.is_stream(), body) {
            (Kind::Contribution, Path::Datagram, false, _) => {
                return self.on_datagram(now, index, position, header, data, out);
            }
            (Kind::Contribution, Path::Stream, true, _) => {
                return self.on_segment(index, position, header, data, out);
            }
            (Kind::Probe, Path::Datagram, false, _) => {
                let info = &group.info;
                if info.duty != Duty::Relay {
                    let datagrams = group.datagrams.get_or_insert_with(|| Box::new(Datagrams::new(place, info)));
                    datagrams.on_probe(place, info, now, position, header, out);
                }
                Ok(())
            }
            (Kind::Intent, Path::Stream, _, _) => {
                return self.on_intent(index, position, header, out);
            }
            (Kind::StopAt, Path::Stream, _, _) => {
                let step = group.lease.on_stop(place, &group.info, child, header.seq, group.left);
                step.map(|step| self.take_step(index, step, header, out))
            }
            (Kind::Released, Path::Stream, _, _) => {
                let outcome = group.lease.on_released(place, &group.info, child);
                self.try_release(index, out);
                outcome
            }
            (Kind::GroupError, Path::Stream, _, Body::GroupError(fault)) => {
                return self.fail_group(index, fault, Link::Child(child), out);
            }
            _ => {
                if let Some(token) = data {
                    out.release(token);
                }
                out.note(Note::Violation);
                Ok(())
            }
        };
        self.settle(index, outcome, out);
    }

    fn on_frame_from_parent(
        &mut self,
        now: Nanos,
        index: GroupIndex,
        path: Path,
        header: &Header,
        body: Body,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) {
        let Some(group) = self.table.get_mut(index) else { return };
        let place = &self.place;
        let outcome = match (header.kind, path, body) {
            (Kind::Result, Path::Datagram, _) if group.datagrams.is_some() && !header.is_stream() => {
                if let Some(datagrams) = group.datagrams.as_mut() {
                    datagrams.on_result(place, &group.info, header, data, out);
                }
                Ok(())
            }
            (Kind::Result, Path::Stream, _) if group.streams.is_some() && header.is_stream() => {
                match group.streams.as_mut() {
                    Some(streams) => streams.on_result(place, &group.info, header, data, out),
                    None => Ok(()),
                }
            }
            (Kind::Held, Path::Datagram, Body::Held(held)) => {
                if let Some(datagrams) = group.datagrams.as_mut() {
                    datagrams.on_held(place, &group.info, now, header, held, out);
                }
                Ok(())
            }
            (Kind::Credit, Path::Stream, _) => {
                if let Some(streams) = group.streams.as_mut() {
                    streams.on_credit(place, &group.info, header.seq, out);
                }
                Ok(())
            }
            (Kind::Grant, Path::Stream, _) if header.seq == group.lease.asked() => {
                self.apply(Decision::Grant(index), out);
                Ok(())
            }
            (Kind::Deny, Path::Stream, Body::Deny { holder, holders }) if header.seq == group.lease.asked() => {
                self.apply(Decision::Deny { group: index, holder, holders }, out);
                Ok(())
            }
            (Kind::Revoke, Path::Stream, _) if header.seq == group.lease.current() => {
                self.apply(Decision::Revoke(index), out);
                Ok(())
            }
            (Kind::LeaseEnd, Path::Stream, _) if group.lease.phase == Phase::Granted => {
                self.end_lease(index, header.seq, out);
                Ok(())
            }
            (Kind::GroupError, Path::Stream, Body::GroupError(fault)) => {
                return self.fail_group(index, fault, Link::Parent, out);
            }
            _ => {
                if let Some(token) = data {
                    out.release(token);
                }
                out.note(Note::Violation);
                Ok(())
            }
        };
        self.settle(index, outcome, out);
    }

    fn on_datagram(
        &mut self,
        now: Nanos,
        index: GroupIndex,
        position: usize,
        header: &Header,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) {
        let Some(group) = self.table.get_mut(index) else { return };
        let (place, info) = (&self.place, &group.info);
        if info.duty == Duty::Relay {
            if let Some(token) = data {
                out.release(token);
            }
            return out.note(Note::Violation);
        }
        let datagrams = group.datagrams.get_or_insert_with(|| Box::new(Datagrams::new(place, info)));
        let outcome = datagrams.on_contribution(place, info, now, position, header, data, out).and_then(|opened| {
            if !opened {
                return Ok(());
            }
            group.check_paths(place)?;
            check_left(place, group)
        });
        self.settle(index, outcome, out);
    }

    fn on_segment(
        &mut self,
        index: GroupIndex,
        position: usize,
        header: &Header,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) {
        let Some(group) = self.table.get_mut(index) else { return };
        let (place, info) = (&self.place, &group.info);
        if info.duty == Duty::Relay || !group.lease.covers(header.seq) {
            if let Some(token) = data {
                out.release(token);
            }
            out.note(Note::Violation);
            let fault = about(place, Reason::Protocol, info.members[position].first);
            return self.settle(index, Err(fault), out);
        }
        let streams = group.streams.get_or_insert_with(|| Box::new(Streams::new(place, info)));
        let outcome = streams
            .on_contribution(place, info, position, header, data, out)
            .and_then(|()| group.announce(place, position, header))
            .and_then(|()| check_left(place, group));
        self.settle(index, outcome, out);
        self.try_release(index, out);
    }

    fn on_intent(&mut self, index: GroupIndex, position: usize, header: &Header, out: &mut impl NodeOutput) {
        let Some(group) = self.table.get_mut(index) else { return };
        let (place, child) = (&self.place, group.info.members[position].child);
        let outcome = group
            .announce(place, position, header)
            .and_then(|()| group.lease.on_intent(place, &group.info, child, header))
            .and_then(|step| check_left(place, group).map(|()| step));
        match outcome {
            Ok(step) => self.take_step(index, step, header, out),
            Err(fault) => self.settle(index, Err(fault), out),
        }
    }

    /// Passes a completed gathering on, or decides it at the root of the tree.
    fn take_step(&mut self, index: GroupIndex, step: Step, about: &Header, out: &mut impl NodeOutput) {
        let Some(group) = self.table.get_mut(index) else { return };
        let (place, info, lease) = (&self.place, &group.info, &mut group.lease);
        let mut decisions = Vec::new();
        match (step, self.arbiter.as_mut()) {
            (Step::Nothing, _) => {}
            (Step::Ask { .. }, None) => lease.ask_up(place, info, about, out),
            (Step::Ask { at_once }, Some(arbiter)) => {
                arbiter.request(index, info.nodes.clone(), info.members[0].first, at_once, &mut decisions);
            }
            (Step::Stop { .. }, None) => {
                lease.send_stop_up(place, info, out);
                if let Some(streams) = group.streams.as_mut() {
                    streams.fall_silent();
                }
            }
            (Step::Stop { at }, Some(_)) => self.end_lease(index, at, out),
            (Step::Released, None) => lease.send_released_up(place, info, out),
            (Step::Released, Some(arbiter)) => arbiter.released(index, &mut decisions),
        }
        for decision in decisions {
            self.apply(decision, out);
        }
    }

    /// Carries out what the arbiter decided, here or further up.
    fn apply(&mut self, decision: Decision, out: &mut impl NodeOutput) {
        let index = match decision {
            Decision::Grant(group) | Decision::Revoke(group) | Decision::Deny { group, .. } => group,
        };
        let Some(group) = self.table.get_mut(index) else { return };
        let (place, info) = (&self.place, &group.info);
        match decision {
            Decision::Grant(_) => {
                out.note(Note::LeaseGranted);
                group.lease.grant(place, info, out);
            }
            Decision::Revoke(_) => {
                out.note(Note::LeaseRevoked);
                group.lease.revoke(place, info, out);
            }
            Decision::Deny { holder, holders, .. } => {
                out.note(Note::LeaseDenied);
                let header = Header { seq: group.lease.asked(), ..info.down(place, Kind::Deny, ChildIndex::ALL) };
                let body = Body::Deny { holder, holders };
                out.transmit(Target::Children(info.all), Path::Stream, &header, Payload::Body(&body));
                group.lease.deny();
            }
        }
    }

    /// The lease ends at this segment: what was sent beyond it will come again under the next one.
    fn end_lease(&mut self, index: GroupIndex, at: u64, out: &mut impl NodeOutput) {
        let Some(group) = self.table.get_mut(index) else { return };
        group.lease.end(&self.place, &group.info, at, out);
        if let Some(streams) = group.streams.as_mut() {
            streams.roll_back(&self.place, &group.info, at, out);
        }
        self.try_release(index, out);
    }

    /// Gives the stream context back if the lease has ended and everything has drained.
    fn try_release(&mut self, index: GroupIndex, out: &mut impl NodeOutput) {
        let Some(group) = self.table.get_mut(index) else { return };
        let streams = group.streams.as_ref();
        let step = group.lease.try_release(&group.info, group.left, |end| match streams {
            Some(streams) => streams.drained(end),
            None => end == 0 || group.info.duty == Duty::Relay,
        });
        if step == Step::Released {
            let about = self.place.down(Kind::Released, ChildIndex::ALL);
            self.take_step(index, step, &about, out);
        }
    }

    fn settle(&mut self, index: GroupIndex, outcome: Result<(), Fault>, out: &mut impl NodeOutput) {
        if let Err(fault) = outcome {
            self.fail(index, fault, None, out);
        }
    }

    fn fail_group(&mut self, index: GroupIndex, fault: Fault, from: Link, out: &mut impl NodeOutput) {
        self.fail(index, fault, Some(from), out);
    }

    /// Tells all ends of the group and gives back all it holds; the name lives until everybody has left.
    fn fail(&mut self, index: GroupIndex, fault: Fault, from: Option<Link>, out: &mut impl NodeOutput) {
        let Some(group) = self.table.get_mut(index) else { return };
        if core::mem::replace(&mut group.failed, true) {
            return;
        }
        out.note(Note::GroupFailed);
        group.broadcast_fault(&self.place, &fault, from, out);
        group.drop_buffers(out);
        group.lease = lease::Lease::default();
        self.forget_lock(index, out);
    }

    fn forget_lock(&mut self, index: GroupIndex, out: &mut impl NodeOutput) {
        let Some(arbiter) = self.arbiter.as_mut() else { return };
        let mut decisions = Vec::new();
        arbiter.forget(index, &mut decisions);
        for decision in decisions {
            self.apply(decision, out);
        }
    }

    fn on_leave(&mut self, index: GroupIndex, child: ChildIndex, out: &mut impl NodeOutput) {
        let Some(group) = self.table.get_mut(index) else { return };
        group.left |= 1 << child.0;
        let outcome = check_left(&self.place, group);
        let step = group.lease.check_stops(&group.info, group.left);
        self.settle(index, outcome, out);
        let about = self.place.down(Kind::StopAt, ChildIndex::ALL);
        self.take_step(index, step, &about, out);
        self.try_release(index, out);
        self.try_free(index, out);
    }

    fn try_free(&mut self, index: GroupIndex, out: &mut impl NodeOutput) {
        let Some(group) = self.table.get_mut(index) else { return };
        if group.left != group.info.all {
            return;
        }
        if let Some(header) = group.info.up(&self.place, Kind::Leave) {
            out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
        }
        if let Some(mut group) = self.table.remove(index) {
            group.drop_buffers(out);
        }
        out.note(Note::GroupFreed);
        self.forget_lock(index, out);
    }

    fn on_join(
        &mut self,
        child: ChildIndex,
        key: GroupKey,
        fault: Option<Fault>,
        nodes: &RankList,
        out: &mut impl NodeOutput,
    ) {
        let credible = if self.place.is_node(child) {
            nodes.is_empty() || nodes.is_valid(u32::from(u16::MAX))
        } else {
            nodes.is_empty()
        };
        let bit = 1u64 << child.0;
        if let Some(fault) = self.orphaned {
            return self.refuse(&key, bit, fault, out);
        }
        let waiting = self.pending.get(&key).is_some_and(|line| line.iter().any(|p| p.joined & bit == 0));
        if !waiting {
            if self.pending_count > PENDING_FLOOR + PENDING_PER_GROUP * self.place.config.limits.groups as usize {
                out.note(Note::Violation);
                return self.dead.push(Link::Child(child));
            }
            if let Err(fault) = self.open_pending(&key, child) {
                return self.refuse(&key, bit, fault, out);
            }
        }
        let Some(pending) = self.pending.get_mut(&key).and_then(|line| line.iter_mut().find(|p| p.joined & bit == 0))
        else {
            return;
        };
        let fault = fault.or((!credible).then(|| about(&self.place, Reason::Protocol, Rank(0))));
        pending.join(child, fault, if credible { nodes } else { &EMPTY });
        self.advance_pending(&key, out);
    }

    /// Starts to gather a group.
    fn open_pending(&mut self, key: &GroupKey, child: ChildIndex) -> Result<(), Fault> {
        let mut pending = Pending::new(&self.place, key.clone())?;
        if pending.all & (1 << child.0) == 0 {
            return Err(about(&self.place, Reason::BadMembers, key.members.nth(0).unwrap_or(Rank(0))));
        }
        lose_the_dead(&self.place, &self.lost, &mut pending);
        self.pending.entry(key.clone()).or_default().push_back(pending);
        self.pending_count += 1;
        Ok(())
    }

    /// What the quota says to one more group. Asked when all have joined, not before: by then every member's earlier
    /// leaves have come, so a group may take the place of one that its members have just freed.
    fn over_quota(&self, duty: Duty) -> Option<Reason> {
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

    fn advance_pending(&mut self, key: &GroupKey, out: &mut impl NodeOutput) {
        let Some(line) = self.pending.get_mut(key) else { return };
        let Some(pending) = line.iter_mut().find(|p| !p.forwarded) else { return };
        if !pending.is_complete() {
            return;
        }
        let duty = pending.duty;
        let quota =
            self.over_quota(duty).map(|reason| about(&self.place, reason, key.members.nth(0).unwrap_or(Rank(0))));
        let Some(pending) = self.pending.get_mut(key).and_then(|line| line.iter_mut().find(|p| !p.forwarded)) else {
            return;
        };
        pending.fault = pending.fault.or(quota);
        match self.place.up(Kind::Join) {
            Some(header) => {
                pending.forwarded = true;
                pending.reserves = pending.fault.is_none();
                self.reserved += usize::from(pending.reserves);
                let nodes = pending.folding_nodes(&self.place);
                let body = Body::Join { key: key.clone(), fault: pending.fault, nodes };
                out.transmit(Target::Parent, Path::Stream, &header, Payload::Body(&body));
            }
            None => match pending.fault {
                Some(fault) => self.end_pending(key, fault, out),
                None => self.make_group(key, None, out),
            },
        }
    }

    fn on_ready(&mut self, header: &Header, key: &GroupKey, out: &mut impl NodeOutput) {
        if header.group.0 >= 2 * self.place.config.limits.groups.max(1) {
            return out.note(Note::Violation);
        }
        self.make_group(key, Some(header), out);
    }

    fn on_refused(&mut self, key: &GroupKey, fault: Fault, out: &mut impl NodeOutput) {
        self.end_pending(key, fault, out);
    }

    fn take_pending(&mut self, key: &GroupKey) -> Option<Pending> {
        let line = self.pending.get_mut(key)?;
        let pending = line.pop_front();
        if line.is_empty() {
            self.pending.remove(key);
        }
        self.pending_count -= usize::from(pending.is_some());
        self.reserved -= usize::from(pending.as_ref().is_some_and(|p| p.reserves));
        pending
    }

    fn make_group(&mut self, key: &GroupKey, ready: Option<&Header>, out: &mut impl NodeOutput) {
        let Some(pending) = self.take_pending(key) else { return out.note(Note::Violation) };
        let (index, generation) = self.table.next_name();
        let nodes = if self.arbiter.is_some() { pending.folding_nodes(&self.place) } else { RankList::default() };
        let info = GroupInfo {
            index,
            generation,
            size: key.members.len(),
            key: pending.key,
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

    fn end_pending(&mut self, key: &GroupKey, fault: Fault, out: &mut impl NodeOutput) {
        let Some(pending) = self.take_pending(key) else { return out.note(Note::Violation) };
        self.refuse(key, pending.all & !pending.dead, fault, out);
    }

    fn refuse(&self, key: &GroupKey, targets: u64, fault: Fault, out: &mut impl NodeOutput) {
        out.note(Note::GroupRefused);
        if targets != 0 {
            let header = self.place.down(Kind::Refused, ChildIndex::ALL);
            let body = Body::Refused(key.clone(), fault);
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::Body(&body));
        }
    }

    fn death_of(&self, child: ChildIndex) -> Fault {
        match self.place.config.children[usize::from(child.0)].kind {
            ChildKind::Rank(rank) => about(&self.place, Reason::MemberDead, rank),
            ChildKind::Node(node) => {
                let first = self.place.config.children[usize::from(child.0)].ranks.nth(0).unwrap_or(Rank(0));
                Fault { node, ..about(&self.place, Reason::NodeDead, first) }
            }
        }
    }

    fn lose_child(&mut self, child: ChildIndex, out: &mut impl NodeOutput) {
        let bit = 1u64 << child.0;
        let fault = self.death_of(child);
        for index in self.table.indices() {
            let Some(group) = self.table.get_mut(index) else { continue };
            if group.info.all & bit == 0 || group.left & bit != 0 {
                continue;
            }
            group.left |= bit;
            self.fail(index, fault, Some(Link::Child(child)), out);
            self.try_free(index, out);
        }
        // What it had joined cannot come into being; what it has not joined waits for it only if nobody below it lives.
        for pending in self.pending.values_mut().flatten().filter(|p| p.all & bit != 0) {
            pending.lose(child, fault);
        }
        let ranks = self.place.config.children[usize::from(child.0)].ranks.clone();
        self.lose_ranks(&ranks, out);
    }

    /// A node below has lost ranks.
    fn on_lost(&mut self, child: ChildIndex, ranks: &RankList, out: &mut impl NodeOutput) {
        let below = &self.place.config.children[usize::from(child.0)].ranks;
        let credible = ranks.is_valid(self.place.config.world_size) && ranks.iter().all(|rank| below.contains(rank));
        if !credible || !self.place.is_node(child) {
            return out.note(Note::Violation);
        }
        self.lose_ranks(ranks, out);
    }

    /// Creations that wait for one of these ranks will wait no longer, here and further up.
    fn lose_ranks(&mut self, ranks: &RankList, out: &mut impl NodeOutput) {
        self.lost.extend(ranks.iter());
        for pending in self.pending.values_mut().flatten() {
            lose_the_dead(&self.place, &self.lost, pending);
        }
        let keys: Vec<GroupKey> = self.pending.keys().cloned().collect();
        for key in keys {
            let complete = |line: &VecDeque<Pending>| line.iter().filter(|p| !p.forwarded && p.is_complete()).count();
            for _ in 0..self.pending.get(&key).map_or(0, complete) {
                self.advance_pending(&key, out);
            }
        }
        // Behind the joins that this has completed: after it nobody above expects any from these ranks.
        if let Some(header) = self.place.up(Kind::Lost)
            && self.orphaned.is_none()
        {
            out.transmit(Target::Parent, Path::Stream, &header, Payload::Body(&Body::Lost(ranks.clone())));
        }
    }

    fn death_of_parent(&self) -> Fault {
        let first = self.place.config.children.first().and_then(|c| c.ranks.nth(0)).unwrap_or(Rank(0));
        let fault = about(&self.place, Reason::NodeDead, first);
        Fault { node: self.place.config.parent.map_or(fault.node, |(parent, _)| parent), ..fault }
    }

    fn lose_parent(&mut self, out: &mut impl NodeOutput) {
        let fault = self.death_of_parent();
        for index in self.table.indices() {
            self.fail(index, fault, Some(Link::Parent), out);
        }
        // Only who has joined is told now; the others are when they do.
        self.orphaned = Some(fault);
        (self.pending_count, self.reserved) = (0, 0);
        for (key, line) in core::mem::take(&mut self.pending) {
            for pending in line {
                self.refuse(&key, pending.joined & !pending.dead, fault, out);
            }
        }
    }
}

/// A child that starts so many more creations than the job may have groups has lost its mind: its connection is closed,
/// which its peers see as its death. Refusing it quietly would leave them waiting.
const PENDING_PER_GROUP: usize = 4;
const PENDING_FLOOR: usize = 256;

static EMPTY: RankList = RankList::EMPTY;

/// Members that are dead fail a creation; a child below which every member is dead will not join. One that has joined
/// waits for the verdict all the same.
fn lose_the_dead(place: &Place, lost: &BTreeSet<Rank>, pending: &mut Pending) {
    for position in 0..pending.members.len() {
        let member = &pending.members[position];
        let ranks = || member.ranks.iter().filter_map(|r| pending.key.members.nth(r.0));
        let Some(dead) = ranks().find(|rank| lost.contains(rank)) else { continue };
        let fault = about(place, Reason::MemberDead, dead);
        let joined = pending.joined & (1 << member.child.0) != 0;
        if !joined && ranks().all(|rank| lost.contains(&rank)) {
            pending.lose(member.child, fault);
        } else {
            pending.fault = pending.fault.or(Some(fault));
        }
    }
}

/// Who left while others still use the group will never contribute: say so instead of waiting.
fn check_left(place: &Place, group: &Group) -> Result<(), Fault> {
    if group.left == 0 || group.failed {
        return Ok(());
    }
    for (position, member) in group.info.members.iter().enumerate() {
        if group.left & (1 << member.child.0) == 0 {
            continue;
        }
        let waits = group
            .datagrams
            .as_ref()
            .and_then(|d| d.waits_for(member.child))
            .or_else(|| group.streams.as_ref().and_then(|s| s.waits_for(position)))
            .map(|header| Rank(header.witness))
            .or_else(|| waiting_for_the_lock(group));
        if let Some(waiting) = waits {
            return Err(Fault { rank_b: waiting, ..about(place, Reason::MemberLeft, member.first) });
        }
    }
    Ok(())
}

/// A rank that waits for the lock of a group, if there is one.
fn waiting_for_the_lock(group: &Group) -> Option<Rank> {
    let waiting = group.lease.waiting();
    group.info.members.iter().find(|m| waiting & (1 << m.child.0) != 0).map(|m| m.first)
}
