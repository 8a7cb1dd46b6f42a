//! How groups come into being: joins gather upward, the verdict travels down, and between the two
//! the quota is asked.

use trib_wire::{Body, ChildIndex, Fault, GroupKey, Header, Kind, Marks, Rank, RankList, Reason, Standing};

use crate::node::group::Group;
use crate::node::info::{Census, Charge, GroupInfo};

use super::loss::lose_the_dead;
use super::pending::{Join, Pending};
use super::stage::Event;
use crate::Path;
use crate::node::{Link, NodeCore, NodeOutput, Note, Payload, Target};
use crate::surprise::cannot_happen;

impl<B> NodeCore<B> {
    pub(in crate::node) fn on_join(
        &mut self,
        child: ChildIndex,
        key: &GroupKey,
        join: Join<'_>,
        out: &mut impl NodeOutput,
    ) {
        let nodes = join.nodes;
        let credible = if self.identity.is_node(child) {
            nodes.is_empty() || nodes.is_valid(u32::from(u16::MAX))
        } else {
            nodes.is_empty()
        };
        let bit = 1u64 << child.0;
        if let Some(fault) = self.orphaned {
            return self.refuse((key, bit), (fault, join.heard), out);
        }
        // A rank that has done with the group waits for nothing, unless it stays for those that
        // ask. A node below waits for the verdict all the same.
        let waits = !join.standing.all_left || self.identity.is_node(child) || self.identity.config.strict;
        if waits && let Some(fault) = self.death_below(child, key) {
            // All others have been told that these ranks are dead, and wait for them no more.
            return self.refuse((key, bit), (fault, join.heard), out);
        }
        // In a later epoch nobody knows who was taken for dead before, and what was over then.
        let may_be_over = join.standing.resumed || self.identity.config.moves > 0;
        if !self.pending.contains_key(key) {
            if join.standing.all_left {
                // The question has been answered.
                return;
            }
            let pending = match self.new_pending(key, child) {
                Ok(pending) => pending,
                Err(fault) => return self.refuse((key, bit), (fault, join.heard), out),
            };
            if !self.may_open(&pending, may_be_over) {
                return self.cut_off(Link::Child(child), out);
            }
            self.open_pending(pending);
        }
        let Some(pending) = self.pending.get(key) else { cannot_happen("a creation is gone while it is worked on") };
        if pending.joined & bit != 0 || pending.all & bit == 0 {
            if !join.standing.all_left {
                out.note(Note::Violation);
            }
            return;
        }
        let nodes = pending.nodes_with(if credible { nodes } else { &EMPTY });
        let more = pending.grows_by(&nodes);
        if more > 0 && self.takes_too_much(more, may_be_over) {
            return self.cut_off(Link::Child(child), out);
        }
        let Some(pending) = self.pending.get_mut(key) else {
            cannot_happen("a creation is gone while it is worked on")
        };
        let fault = join.fault.or((!credible).then(|| self.identity.about(Reason::Protocol, Rank(0))));
        let before = pending.footprint();
        pending.join(child, nodes, Join { fault, ..join });
        self.creations = self.creations + pending.footprint() - before;
        if may_be_over && !pending.asked {
            pending.asked = true;
            let targets = pending.all & !pending.joined;
            self.ask(key, targets, out);
        }
        self.advance_pending(key, out);
        self.advance_waiting(out);
    }

    /// What is to be gathered for a group of which this child is a member.
    fn new_pending(&self, key: &GroupKey, child: ChildIndex) -> Result<Pending, Fault> {
        let mut pending = Pending::new(&self.identity, key.clone())?;
        if pending.all & (1 << child.0) == 0 {
            return Err(self.identity.about(Reason::BadMembers, key.members.nth(0).unwrap_or(Rank(0))));
        }
        lose_the_dead(&self.identity, &self.lost, &mut pending);
        Ok(pending)
    }

    /// Whether the joins of another group may be gathered.
    pub(in crate::node) fn may_open(&self, pending: &Pending, may_be_over: bool) -> bool {
        self.pending.len() <= self.pending_most() && !self.takes_too_much(pending.footprint(), may_be_over)
    }

    /// Whether creations take more than those of correct neighbours do, with so many bytes more.
    /// After a move all groups of the epoch before come again at once. They had the memory for
    /// groups there, so they may take what is left of it here.
    fn takes_too_much(&self, more: u64, may_be_over: bool) -> bool {
        let limits = &self.identity.config.limits;
        let made = self.creations + self.reserved.bytes() + more;
        let is_beyond_all = self.table.alive().bytes() + made > limits.lists() + limits.creations();
        // Those that wait for the verdict count, too: the parent gathers them, and takes no more.
        is_beyond_all || (!may_be_over && made > limits.creations())
    }

    /// Begins to gather the joins of a group.
    pub(in crate::node) fn open_pending(&mut self, pending: Pending) {
        self.creations += pending.footprint();
        self.pending.insert(pending.key.clone(), pending);
    }

    /// Why the quota has no room for a group that takes so many bytes. A group is charged where it
    /// folds; where it is passed on it takes no slots, and what bounds it is what the nodes below
    /// may fold for. The quota is asked when all have joined and not before: by then every member's
    /// earlier leaves have come, so a group may take the place of one that its members have just
    /// freed.
    ///
    /// Companions are counted by themselves, so that a group and its companion are one in the quota
    /// of groups; but both take slots and memory. Of the charged those do not count that are in
    /// `less`.
    fn over_quota(&self, charge: Charge, bytes: u64, less: &Census) -> Option<Reason> {
        let limits = &self.identity.config.limits;
        if (self.table.alive().bytes() + self.reserved.bytes() + bytes).saturating_sub(less.bytes()) > limits.lists() {
            return Some(Reason::GroupMemory);
        }
        let groups = self.charged(charge) - less.count(charge) + 1;
        if charge.relayed {
            return (groups > limits.relays(self.identity.nodes_below())).then_some(Reason::GroupQuota);
        }
        if groups > limits.groups as usize {
            return Some(Reason::GroupQuota);
        }
        let other = Charge { companion: !charge.companion, ..charge };
        let folding = groups + self.charged(other) - less.count(other);
        (folding as u64 * u64::from(limits.window) > u64::from(limits.osts)).then_some(Reason::OstQuota)
    }

    /// The groups that are charged like this.
    fn charged(&self, charge: Charge) -> usize {
        self.table.alive().count(charge) + self.reserved.count(charge)
    }

    /// Those of them that will be gone whatever programs do. In a new epoch freed groups come
    /// again, beside those that have come for them.
    fn going(&self) -> Census {
        let mut going = Census::default();
        let groups = self.table.iter().filter(|group| group.is_going());
        groups.for_each(|group| going.add(group.info.charge(), group.info.footprint()));
        let coming = self.pending.values().filter(|pending| pending.is_going());
        coming.for_each(|pending| going.add(pending.charge(), pending.footprint()));
        going
    }

    /// Whether a complete creation waits for what becomes of other groups: for room in the quota
    /// that will be free and that groups of an earlier epoch still have. Only the root of the tree
    /// waits for it. It knows all groups, and no other creation waits for one that waits here.
    ///
    /// A node below waits until it has left what those below have freed in this epoch, as a rank
    /// does: so that the root knows of it. That depends on no creation either.
    fn has_to_wait(&self, standing: &Standing) -> bool {
        if self.identity.config.parent.is_some() {
            return self.table.iter().any(Group::goes_unknown);
        }
        let may_come = |pending: &Pending| pending.standing().exists && !pending.is_complete();
        standing.waits && (self.table.iter().any(Group::is_going) || self.pending.values().any(may_come))
    }

    /// Groups may be gone, or known to stay: creations that have waited for room go on.
    pub(in crate::node) fn advance_waiting(&mut self, out: &mut impl NodeOutput) {
        while core::mem::take(&mut self.creations_wait) {
            let before = self.pending.len();
            let complete = self.pending.iter().filter(|(_, pending)| pending.is_complete());
            let keys: Vec<GroupKey> = complete.map(|(key, _)| key.clone()).collect();
            keys.iter().for_each(|key| self.advance_pending(key, out));
            if self.pending.len() == before {
                return;
            }
        }
    }

    /// How many creations may be incomplete here.
    fn pending_most(&self) -> usize {
        let limits = &self.identity.config.limits;
        let groups = (limits.groups as usize).saturating_add(limits.relays(self.identity.nodes_below()));
        // Each may have a companion.
        let groups = groups.saturating_mul(2);
        PENDING_FLOOR.saturating_add(PENDING_PER_GROUP.saturating_mul(groups))
    }

    pub(in crate::node) fn advance_pending(&mut self, key: &GroupKey, out: &mut impl NodeOutput) {
        let complete = self.pending.get(key).filter(|pending| pending.is_complete());
        let Some((charge, mut standing, bytes)) = complete.map(|p| (p.charge(), p.standing(), p.footprint())) else {
            return;
        };
        // A group of an earlier epoch has had its room in the quota there. One that all below have
        // done with takes none, whether it exists or not: it is gone here as soon as it is made.
        let needs_room = !standing.exists && !standing.all_left;
        let is_full = needs_room && self.over_quota(charge, bytes, &Census::default()).is_some();
        standing.waits |= is_full;
        // Which of the groups will be gone takes a look at each of them, and matters only then.
        let quota = if is_full { self.over_quota(charge, bytes, &self.going()) } else { None };
        let has_to_wait = !standing.exists && self.has_to_wait(&standing);
        let quota = quota.map(|reason| self.identity.about(reason, key.members.nth(0).unwrap_or(Rank(0))));
        let identity = &self.identity;
        let Some(pending) = self.pending.get_mut(key) else {
            cannot_happen("a creation is gone while it is worked on")
        };
        pending.fault = pending.fault.or(quota);
        if pending.fault.is_none() && has_to_wait {
            self.creations_wait = true;
            return;
        }
        match identity.up(Kind::Join) {
            Some(header) => {
                let header = pending.heard.said_by(header);
                pending.step(Event::AllJoined, false);
                pending.reserves = pending.fault.is_none() && !standing.all_left;
                let nodes = pending.give_folding_nodes(identity);
                self.creations -= bytes;
                if pending.reserves {
                    self.reserved.add(charge, pending.footprint());
                } else {
                    self.creations += pending.footprint();
                }
                let name = pending.name.clone();
                let body = Body::Join { key: key.clone(), fault: pending.fault, standing, nodes, name };
                out.transmit(Target::Parent, Path::Stream, &header, Payload::Body(&body));
            }
            None => match pending.fault.or_else(|| pending.never_made(identity)) {
                Some(fault) => {
                    // What one rank has told its program counts for all.
                    let mark = pending.heard;
                    self.end_pending(key, (fault, mark), out);
                }
                None => {
                    let start = pending.standing().marks;
                    self.make_group(key, (None, start), out);
                }
            },
        }
    }

    pub(in crate::node) fn on_ready(
        &mut self,
        header: &Header,
        (key, start): (&GroupKey, Marks),
        out: &mut impl NodeOutput,
    ) {
        if header.group.0 as usize >= self.identity.config.limits.indices() {
            return out.note(Note::Violation);
        }
        self.make_group(key, (Some(header), start), out);
    }

    pub(in crate::node) fn on_refused(&mut self, key: &GroupKey, verdict: (Fault, Marks), out: &mut impl NodeOutput) {
        self.end_pending(key, verdict, out);
    }

    /// Takes the creation of this key, if this verdict can apply to it.
    fn take_pending(&mut self, key: &GroupKey, verdict: Event) -> Option<Pending> {
        let is_root = self.identity.config.parent.is_none();
        if !self.pending.get_mut(key)?.step(verdict, is_root) {
            return None;
        }
        let pending = self.pending.remove(key)?;
        if pending.reserves {
            self.reserved.take_off(pending.charge(), pending.footprint());
        } else {
            self.creations -= pending.footprint();
        }
        Some(pending)
    }

    pub(in crate::node) fn make_group(
        &mut self,
        key: &GroupKey,
        (ready, start): (Option<&Header>, Marks),
        out: &mut impl NodeOutput,
    ) {
        let Some(pending) = self.take_pending(key, Event::Ready) else { return out.note(Note::Violation) };
        let (index, generation) = self.table.next_name();
        let nodes = if self.arbiter.is_some() { pending.folding_nodes(&self.identity) } else { RankList::default() };
        let ((left, silent), freed, companion) = (pending.absent(), pending.freed(), pending.standing().companion);
        let info = GroupInfo {
            start,
            index,
            generation,
            size: key.members.len(),
            key: pending.key,
            name: pending.name,
            up: ready.map(|h| (h.group, h.generation)),
            duty: pending.duty,
            companion,
            members: pending.members,
            all: pending.all,
            inner: pending.inner,
            nodes,
        };
        let header = info.down(&self.identity, Kind::Ready, ChildIndex::ALL);
        let body = Body::Ready(info.key.clone(), start);
        let targets = pending.all & !silent;
        let mut group = Group::new(info);
        (group.left, group.silent, group.freed) = (left, silent, freed);
        self.table.insert(group);
        out.note(Note::GroupMade);
        if targets != 0 {
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::Body(&body));
        }
        if let Some(fault) = pending.fault {
            self.fail(index, fault, None, out);
        }
        self.try_free(index, out);
    }

    fn end_pending(&mut self, key: &GroupKey, verdict: (Fault, Marks), out: &mut impl NodeOutput) {
        let Some(pending) = self.take_pending(key, Event::Refused) else { return out.note(Note::Violation) };
        // Under `strict` those that have done with it stay until the others know how it ended.
        let silent = if self.identity.config.strict { pending.dead } else { pending.absent().1 };
        self.refuse((key, pending.all & !silent), verdict, out);
    }

    /// Tells children that the group will not be, or not go on, and below which numbers every
    /// member has its results.
    pub(in crate::node) fn refuse(
        &self,
        (key, targets): (&GroupKey, u64),
        (fault, mark): (Fault, Marks),
        out: &mut impl NodeOutput,
    ) {
        out.note(Note::GroupRefused);
        if targets != 0 {
            let header = mark.said_by(self.identity.down(Kind::Refused, ChildIndex::ALL));
            let body = Body::Refused(key.clone(), fault);
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::Body(&body));
        }
    }
}

/// A child that starts this many more creations than there may be groups is out of order. Its
/// connection is closed, which its peers see as its death. If it were refused quietly, they would
/// wait for ever.
const PENDING_PER_GROUP: usize = 4;

const PENDING_FLOOR: usize = 256;

static EMPTY: RankList = RankList::EMPTY;
