//! The state machine of one logical node of one job, with the calls of its driver.

use std::collections::{BTreeMap, BTreeSet};

use trib_wire::{Body, ChildIndex, ChildKind, Fault, GroupKey, Header, Kind, NodeId, Placement, Rank, Reason};

use super::absent::Absent;
use super::at::At;
use super::config::NodeConfig;
use super::frame::Frame;
use super::identity::Identity;
use super::info::{Census, Duty};
use super::link::Link;
use super::membership::{Departed, Pending};
use super::output::{NodeOutput, Note, Payload, Target};
use super::report::GroupReport;
use super::table::Table;
use crate::liveness::{Liveness, Need, Peer, Tick, next_tick};
use crate::lock::Arbiter;
use crate::{Nanos, Path};

/// The state machine of one logical node of one job. `B` is the driver's buffer.
pub struct NodeCore<B> {
    pub(super) identity: Identity,
    pub(super) table: Table<B>,
    pub(super) pending: BTreeMap<GroupKey, Pending>,
    /// The control memory that those of them take that hold no room in the quota, in bytes.
    pub(super) creations: u64,
    /// The pending groups that hold room in the quota while the verdict is on its way.
    pub(super) reserved: Census,
    /// Whether complete creations wait for room in the quota that will be free.
    pub(super) creations_wait: bool,
    /// The arbiter of stream contexts. Only the root of the tree has one.
    pub(super) arbiter: Option<Arbiter>,
    pub(super) parent: Option<Liveness>,
    pub(super) children: Vec<Option<Liveness>>,
    /// How many operations each child, if it is a rank, has done over boards, as it said last.
    pub(super) at_boards: Vec<u64>,
    /// In an epoch that follows another one, the children that have not called yet.
    pub(super) absent: Absent,
    /// A bit for each child that has gone to another placement of the tree.
    pub(super) moved: u64,
    /// Groups that all children have left, and of which some member of the job may not know it.
    pub(super) departed: Departed,
    pub(super) next_tick: Nanos,
    /// When the event that is being handled happened. Nothing below reads another clock.
    pub(super) now: Nanos,
    /// Links that the core has given up, which the driver has to close.
    pub(super) dead: Vec<Link>,
    /// Ranks below that are gone, because their own connection or that of a node between has ended.
    pub(super) lost: BTreeSet<Rank>,
    /// The fault that says that the parent is gone. No group can be made here any more.
    pub(super) orphaned: Option<Fault>,
}

impl<B> NodeCore<B> {
    /// A node without groups.
    ///
    /// # Panics
    /// If the configuration has more than 64 children or limits out of range. The parser of the
    /// grant must have checked both.
    pub fn new(config: NodeConfig) -> NodeCore<B> {
        assert!(config.children.len() <= trib_wire::ids::CHILDREN_MAX, "a node has at most 64 children");
        assert!(config.limits.are_valid(), "limits out of range");
        let arbiter = config.parent.is_none().then(|| Arbiter::new(config.limits.streams));
        let (children, at_boards) = (vec![None; config.children.len()], vec![0; config.children.len()]);
        NodeCore {
            absent: Absent::new((0..config.children.len()).fold(0u64, |bits, at| bits | 1 << at)),
            identity: Identity::new(config),
            table: Table::new(),
            pending: BTreeMap::new(),
            creations: 0,
            reserved: Census::default(),
            creations_wait: false,
            arbiter,
            parent: None,
            children,
            at_boards,
            moved: 0,
            departed: Departed::default(),
            next_tick: Nanos::NEVER,
            now: Nanos(0),
            dead: Vec::new(),
            lost: BTreeSet::new(),
            orphaned: None,
        }
    }

    /// The stream connection of a link is open and authenticated.
    pub fn on_link_up(&mut self, now: Nanos, link: Link, out: &mut impl NodeOutput) {
        let peer = match link {
            Link::Child(child) if !self.identity.is_node(child) => Peer::Only,
            // This core is of one epoch, and cannot know whether those before bore fruit.
            Link::Child(_) | Link::Parent => {
                Peer::node(self.identity.config.recovers.then_some(self.identity.config.moves))
            }
        };
        self.now = now;
        if let Some(slot) = self.liveness(link) {
            *slot = Some(Liveness::new(now, peer));
        }
        if let Link::Child(child) = link {
            self.absent.called(child);
        }
        if self.next_tick == Nanos::NEVER {
            self.next_tick = now + self.identity.config.limits.heartbeat;
        }
        if link == Link::Parent {
            // It tells the parent that this node knows of the connection.
            self.beat(link, out);
        }
    }

    /// The stream connection of a link is closed, and will not come back in this epoch. If the job
    /// goes on in another epoch, a lost node leads there. Without a rank, groups that still need it
    /// fail, and so they do without a node below which no rank lives: it may have died before it
    /// could leave them.
    pub fn on_link_down(&mut self, now: Nanos, link: Link, out: &mut impl NodeOutput) {
        self.now = now;
        if let Some(slot) = self.liveness(link) {
            *slot = None;
        }
        let has_moved = matches!(link, Link::Child(child) if self.moved & (1 << child.0) != 0);
        match (self.node_at(link), link) {
            (_, _) if has_moved => {}
            (Some(node), _) if self.identity.config.recovers && !self.has_deserted(link) => out.suspect(node),
            (_, Link::Parent) => self.lose_parent(out),
            (_, Link::Child(child)) => self.lose_child(child, out),
        }
    }

    /// The job's tree has another placement, to which this node's neighbours are to go. The core is
    /// of no use after that.
    pub fn move_to(&self, placement: &Placement, out: &mut impl NodeOutput) {
        let body = Body::Move(placement.clone());
        let children = (0..self.children.len()).filter(|c| self.children[*c].is_some());
        let targets = children.fold(0u64, |bits, child| bits | 1 << child);
        if targets != 0 {
            let header = self.identity.down(Kind::Move, ChildIndex::ALL);
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::Body(&body));
        }
        if self.parent.is_some()
            && let Some(header) = self.identity.up(Kind::Move)
        {
            out.transmit(Target::Parent, Path::Stream, &header, Payload::Body(&body));
        }
    }

    /// The far end of a link has gone to another placement.
    pub(super) fn on_move(&mut self, link: Link, placement: &Placement, out: &mut impl NodeOutput) {
        if let Link::Child(child) = link {
            self.moved |= 1 << child.0;
        }
        out.move_to(placement);
    }

    /// The node at the far end of a link, if it is one.
    fn node_at(&self, link: Link) -> Option<NodeId> {
        let config = &self.identity.config;
        match link {
            Link::Parent => config.parent.map(|(node, _)| node),
            Link::Child(child) => match config.children.get(usize::from(child.0))?.kind {
                ChildKind::Node(node) => Some(node),
                ChildKind::Rank(_) => None,
            },
        }
    }

    /// Whether all ranks below this node have gone. It may end then, and nobody needs it any more.
    pub fn is_deserted(&self) -> bool {
        (0..self.identity.config.children.len()).all(|child| self.was_lost(ChildIndex(child as u16)))
    }

    /// The same of the node at the far end.
    fn has_deserted(&self, link: Link) -> bool {
        matches!(link, Link::Child(child) if self.was_lost(child))
    }

    /// An authenticated frame came over `link`.
    pub fn on_frame(&mut self, now: Nanos, link: Link, frame: Frame<'_, B>, out: &mut impl NodeOutput<Buffer = B>) {
        self.now = now;
        // What is of another epoch says nothing of the neighbour of this one.
        if frame.header.job != self.identity.config.job || frame.header.epoch != self.identity.config.epoch {
            return self.refuse_frame(link, &frame, out);
        }
        if let Some(Some(liveness)) = self.liveness(link) {
            liveness.heard(now);
        }
        if link == Link::Parent && frame.path == Path::Stream {
            self.identity.signs_from_above += 1;
        }
        self.dispatch(link, frame, out);
    }

    /// The kernel knows that a datagram with this header is too long for the way over `link`.
    pub fn on_too_long(&mut self, now: Nanos, link: Link, header: &Header, out: &mut impl NodeOutput) {
        self.now = now;
        let index = match link {
            Link::Child(_) => self.table.named_by_child(header.group, header.generation),
            Link::Parent => self.table.named_by_parent(header.group, header.generation),
        };
        if let Some(index) = index {
            let fault = self.identity.between(Reason::DatagramTooLong, link);
            self.fail(index, fault, None, out);
        }
    }

    /// A stream frame of `Kind::Result` has been written to the socket of `child`.
    pub fn on_written(
        &mut self,
        now: Nanos,
        child: ChildIndex,
        header: &Header,
        out: &mut impl NodeOutput<Buffer = B>,
    ) {
        self.now = now;
        let Some(index) = self.table.named_by_child(header.group, header.generation) else { return };
        let group = self.table.live(index);
        // A group that has failed has dropped them.
        let Some(streams) = group.streams.as_mut() else { return };
        let mut at = At { identity: &self.identity, info: &group.info, now, out: &mut *out };
        let outcome = streams.on_written(&mut at, child, header.seq);
        self.settle(index, outcome, out);
        self.try_release(index, out);
    }

    /// The clock has reached `next_deadline`: heartbeats are sent, and links that stay silent are
    /// given up.
    pub fn on_timer(&mut self, now: Nanos, out: &mut impl NodeOutput) {
        self.now = now;
        if now < self.next_tick {
            return;
        }
        let tick = Tick { due: self.next_tick, now };
        let mut in_doubt = false;
        if self.identity.config.moves == 0 && self.identity.config.recovers {
            self.ask_nodes_once(out);
        }
        let is_missed = self.identity.config.moves > 0 || !self.pending.is_empty();
        let absent = self.absent.tick(tick, is_missed, &self.identity.config.limits);
        for child in (0..64).filter(|child| absent & (1 << child) != 0).map(ChildIndex) {
            self.lose_child(child, out);
        }
        let links = (0..self.children.len()).map(|c| Link::Child(ChildIndex(c as u16))).chain([Link::Parent]);
        for link in links {
            let limits = self.identity.config.limits;
            let Some(Some(liveness)) = self.liveness(link) else { continue };
            let need = liveness.need(tick, &limits);
            in_doubt |= liveness.is_in_doubt();
            match need {
                Need::Dead => self.on_silence(link, out),
                Need::Nothing => {}
                Need::Heartbeat => {
                    liveness.spoke(now);
                    self.beat(link, out);
                }
            }
        }
        self.next_tick = next_tick(now, in_doubt, &self.identity.config.limits);
    }

    /// The far end of a link has left all questions without an answer. A node that was only stopped
    /// is to hear, when it wakes, that its neighbours have gone elsewhere, or it would take them
    /// for dead: so the link stays open until this core says Move over it.
    fn on_silence(&mut self, link: Link, out: &mut impl NodeOutput) {
        out.note(Note::LinkSilent);
        match self.node_at(link).filter(|_| self.identity.config.recovers) {
            Some(node) => out.suspect(node),
            None => self.dead.push(link),
        }
    }

    /// The far end of a link asks for far more than a correct one does.
    pub(super) fn cut_off(&mut self, link: Link, out: &mut impl NodeOutput) {
        out.note(Note::Violation);
        if !self.dead.contains(&link) {
            self.dead.push(link);
        }
    }

    /// The process of a child is known to be gone. If the child has called, its connection says
    /// more; if it has not, nobody need wait until it could have.
    pub fn on_gone(&mut self, now: Nanos, child: ChildIndex, out: &mut impl NodeOutput) {
        self.now = now;
        if self.absent.is_missing(child) {
            self.absent.called(child);
            self.lose_child(child, out);
        }
    }

    /// When `on_timer` wants to be called. This is only for heartbeats, because ranks have the
    /// retransmission timers.
    pub fn next_deadline(&self) -> Nanos {
        self.next_tick
    }

    /// How many operations the ranks below have done over boards, where this node sees none of
    /// them. It is as old as their last heartbeats, and begins anew with each epoch.
    pub fn at_boards(&self) -> u64 {
        self.at_boards.iter().fold(0, |all, own| all.wrapping_add(*own))
    }

    /// The number of groups alive, pending ones included.
    pub fn groups(&self) -> usize {
        self.table.alive().all() + self.pending.len()
    }

    /// The links that the core has given up since the last call, because they were silent or sent
    /// far too much. The driver closes them.
    pub fn take_dead_links(&mut self) -> Vec<Link> {
        core::mem::take(&mut self.dead)
    }

    /// The number of buffers that the core holds now: datagram payloads, and stream segments.
    pub fn buffers_held(&self) -> (usize, usize) {
        self.table.iter().fold((0, 0), |(datagrams, segments), group| {
            (
                datagrams + group.datagrams.as_ref().map_or(0, |d| d.buffers_held()),
                segments + group.streams.as_ref().map_or(0, |s| s.buffers_held()),
            )
        })
    }

    /// The number of stream contexts in use here.
    pub fn streams_held(&self) -> usize {
        self.table.iter().filter(|g| g.info.duty != Duty::Relay && g.lease.holds_context()).count()
    }

    /// The groups that fold here, by their indices.
    pub fn group_reports(&self) -> impl Iterator<Item = GroupReport> {
        self.table.iter().filter(|group| group.info.duty != Duty::Relay).map(GroupReport::of)
    }

    /// The number of groups whose LLT slots have been used.
    pub fn datagram_groups(&self) -> usize {
        self.table.iter().filter(|g| g.datagrams.is_some()).count()
    }

    fn liveness(&mut self, link: Link) -> Option<&mut Option<Liveness>> {
        match link {
            Link::Parent => Some(&mut self.parent),
            Link::Child(child) => self.children.get_mut(usize::from(child.0)),
        }
    }

    pub(super) fn answer_heartbeat(&mut self, link: Link, out: &mut impl NodeOutput) {
        let (now, limits) = (self.now, self.identity.config.limits);
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
                let header = self.identity.down(Kind::Heartbeat, child);
                out.transmit(Target::Child(child), Path::Stream, &header, Payload::None);
            }
            Link::Parent => {
                if let Some(header) = self.identity.up(Kind::Heartbeat) {
                    out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
                }
            }
        }
    }
}
