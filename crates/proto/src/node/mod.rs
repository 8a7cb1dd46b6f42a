//! The aggregation node: one logical node of one job.
//!
//! Map: `creation` and `join` (groups come into being), `ending` and `loss` (and go), `table` (their names), `group` (one of
//! them), `datagram` (LLT), `stream`
//! (SAT), `lease` and `locking` (the right to stream), `results` (what goes down), `parts` (what is folded), `place`, `report`
//! (what a group has folded, for who watches over the node), `explain` (whom it waits for).
//!
//! Invariants: no timer but the heartbeat's; nothing proportional to a group's members but their runs; folds run in child
//! order whatever the order of arrival; every buffer that comes in goes out through `release` or `fold`.

mod config;
mod creation;
mod datagram;
mod ending;
mod explain;
mod group;
mod join;
mod lease;
mod locking;
mod loss;
mod output;
mod parts;
mod place;
mod report;
mod results;
mod stream;
mod table;

pub use config::{NodeChild, NodeConfig};
pub use output::{Fold, NodeOutput, Note, Part, Payload, Stage, Target};
pub use report::{Folded, GroupReport};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trib_wire::{Body, ChildIndex, Fault, GroupIndex, GroupKey, Header, Kind, Rank, Reason};

use crate::liveness::{Liveness, Need, Peer};
use crate::lock::{Arbiter, Decision};
use crate::{Nanos, Path, Token};
use datagram::Datagrams;
use ending::check_left;
use group::{Duty, about};
use join::Pending;
use lease::Phase;
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
    /// The clock at the last event.
    now: Nanos,
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
            now: Nanos(0),
            dead: Vec::new(),
            lost: BTreeSet::new(),
            orphaned: None,
        }
    }

    /// The stream connection of a link is open and authenticated.
    pub fn on_link_up(&mut self, now: Nanos, link: Link, _out: &mut impl NodeOutput) {
        let peer = match link {
            Link::Child(child) if !self.place.is_node(child) => Peer::Rank,
            Link::Child(_) | Link::Parent => Peer::Node,
        };
        if let Some(slot) = self.liveness(link) {
            *slot = Some(Liveness::new(now, peer));
        }
        if self.next_tick == Nanos::NEVER {
            self.next_tick = now + self.place.config.limits.heartbeat;
        }
    }

    /// The stream connection of a link is closed; it will not come back in this epoch. Groups that still need it fail.
    pub fn on_link_down(&mut self, now: Nanos, link: Link, out: &mut impl NodeOutput) {
        self.now = now;
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
        self.now = now;
        if let Some(Some(liveness)) = self.liveness(link) {
            liveness.heard();
        }
        if header.job != self.place.config.job || header.epoch != self.place.config.epoch {
            return self.refuse_frame(link, path, header, data, out);
        }
        match (link, header.kind, body) {
            (_, Kind::Heartbeat, _) => self.answer_heartbeat(now, link, out),
            (Link::Child(child), Kind::Join, Body::Join { key, fault, nodes, name }) => {
                self.on_join(child, key, fault, &nodes, name, out);
            }
            (Link::Child(child), Kind::Lost, Body::Lost(ranks)) => self.on_lost(child, &ranks, out),
            (Link::Parent, Kind::Ready, Body::Ready(key)) => self.on_ready(header, &key, out),
            (Link::Parent, Kind::Refused, Body::Refused(key, fault)) => self.on_refused(&key, fault, out),
            (Link::Parent, Kind::Nack, _) => out.note(Note::UnknownGroup),
            (_, _, body) => self.on_group_frame(now, link, path, header, body, data, out),
        }
    }

    /// A `Kind::Result` stream frame is in the socket of `child`.
    pub fn on_written(&mut self, now: Nanos, child: ChildIndex, header: &Header, out: &mut impl NodeOutput) {
        self.now = now;
        let Some(index) = self.table.named_by_child(header.group, header.generation) else { return };
        let Some(group) = self.table.get_mut(index) else { return };
        let Some(streams) = group.streams.as_mut() else { return };
        let outcome = streams.on_written(&self.place, &group.info, now, child, header.seq, out);
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
        for link in links {
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

    /// The groups that fold here, by their indices.
    pub fn group_reports(&self) -> impl Iterator<Item = GroupReport> {
        self.table.iter().filter(|group| group.info.duty != Duty::Relay).map(GroupReport::of)
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

    fn answer_heartbeat(&mut self, now: Nanos, link: Link, out: &mut impl NodeOutput) {
        let limits = self.place.config.limits;
        if let Some(Some(liveness)) = self.liveness(link)
            && liveness.owes_answer(now, &limits)
        {
            liveness.spoke(now);
            self.beat(link, out);
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
                return self.on_segment(now, index, position, header, data, out);
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
                    datagrams.on_result(place, &group.info, now, header, data, out);
                }
                Ok(())
            }
            (Kind::Result, Path::Stream, _) if group.streams.is_some() && header.is_stream() => {
                match group.streams.as_mut() {
                    Some(streams) => streams.on_result(place, &group.info, now, header, data, out),
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
        now: Nanos,
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
            .on_contribution(place, info, now, position, header, data, out)
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
}
