//! What a node's groups do and what they wait for, for people who ask why nothing goes on.

use trib_messages::explanation::{ChildPart, ContextsPart, FoldsPart, GroupPart, LatePart, LeaseState, NodePart};
use trib_messages::recovery::Replayed;
use trib_wire::{ChildIndex, GroupIndex, Rank, Signature};

use super::NodeCore;
use super::group::Group;
use super::info::Duty;
use super::lease::Phase;
use super::report::Folded;
use crate::Nanos;

impl<B> NodeCore<B> {
    /// This node now, with the first `most` of its groups that fold here. Groups that wait for
    /// something come before those that do not. With a `tag` the groups are those that were made
    /// with it, also those that are only passed on here. What only the driver knows (connections,
    /// bytes) is zero.
    pub fn explain(&self, now: Nanos, most: usize, tag: Option<u64>) -> NodePart {
        let config = &self.identity.config;
        let child = |child: &super::NodeChild| ChildPart {
            kind: child.kind,
            ranks: child.ranks.clone(),
            connected: false,
            bytes_in: 0,
            bytes_out: 0,
            queued_bytes: 0,
            apart: false,
            protection: None,
        };
        let age_ms = |since: Nanos| now.since(since).0 / 1_000_000;
        let tag_of = |index: GroupIndex| self.table.get(index).map_or(0, |group| group.info.key.tag);
        let contexts = self.arbiter.as_ref().map(|arbiter| ContextsPart {
            capacity: config.limits.streams,
            held: arbiter.held().map(|(group, _)| group.0).collect(),
            line: arbiter.line().map(|(group, _)| group.0).collect(),
            held_ms: arbiter.held().map(|(_, since)| age_ms(since)).collect(),
            line_ms: arbiter.line().map(|(_, since)| age_ms(since)).collect(),
            held_tags: arbiter.held().map(|(group, _)| tag_of(group)).collect(),
            line_tags: arbiter.line().map(|(group, _)| tag_of(group)).collect(),
        });
        let is_asked = |group: &&Group<B>| match tag {
            None => group.info.duty != Duty::Relay,
            Some(tag) => group.info.key.tag == tag,
        };
        let (busy, idle): (Vec<&Group<B>>, Vec<&Group<B>>) =
            self.table.iter().filter(is_asked).partition(|group| group.is_busy());
        let (datagrams, segments) = self.buffers_held();
        NodePart {
            node: config.node,
            parent: config.parent.map(|(parent, _)| parent),
            children: config.children.iter().map(child).collect(),
            groups_alive: self.groups() as u64,
            buffers_held: (datagrams + segments) as u64,
            payload_bytes_folded: 0,
            moves: Vec::new(),
            first_fold_ms: None,
            replayed: Replayed::default(),
            contexts,
            groups: busy.into_iter().chain(idle).take(most).map(|group| group.explain(now)).collect(),
        }
    }
}

impl<B> Group<B> {
    /// Whether some members have come to an operation that is not over here, or the group holds a
    /// context.
    fn is_busy(&self) -> bool {
        self.lease.holds_context()
            || self.lease.waiting() != 0
            || self.info.members.iter().any(|m| self.missing(m.child).is_some())
    }

    fn explain(&self, now: Nanos) -> GroupPart {
        let late = |member: &super::info::Member| {
            let Missing { operation, signature, streamed, since, alone } = self.missing(member.child)?;
            let (child, all) = (member.child, (member.first, member.ranks.len()));
            let (rank, ranks) = alone.map_or(all, |rank| (rank, 1));
            let what = signature.words();
            let waited_ms = since.map(|since| now.since(since).0 / 1_000_000);
            Some(LatePart { child, rank, ranks, operation, streamed, what, waited_ms })
        };
        GroupPart {
            index: self.info.index.0,
            tag: self.info.key.tag,
            name: self.info.name.as_str().into(),
            members: self.info.key.members.clone(),
            lease: self.lease_state(),
            relayed: self.info.duty == Duty::Relay,
            board: self.board.is_some(),
            datagrams: self.datagrams.as_ref().map_or_else(FoldsPart::default, |datagrams| datagrams.folded().part()),
            streams: self.streams.as_ref().map_or_else(FoldsPart::default, |streams| streams.folded().part()),
            late: self.info.members.iter().filter_map(late).collect(),
        }
    }

    fn lease_state(&self) -> LeaseState {
        match self.lease.phase {
            Phase::Granted | Phase::Stopping => LeaseState::Streams,
            Phase::Ending => LeaseState::Ending,
            Phase::Idle if self.lease.waiting() == 0 => LeaseState::None,
            Phase::Idle if self.lease.waiting() == self.info.all => LeaseState::Waiting,
            Phase::Idle => LeaseState::Gathering,
        }
    }

    /// The operation to which others have contributed and this child has not.
    fn missing(&self, child: ChildIndex) -> Option<Missing> {
        if let Some(datagrams) = &self.datagrams
            && let Some(head) = datagrams.waits_for(child)
        {
            let (operation, signature) = (head.op_seq, head.signature);
            let since = datagrams.waits_since(child);
            return Some(Missing { operation, signature, streamed: false, since, alone: None });
        }
        let position = self.info.position(child)?;
        if let Some(streams) = &self.streams
            && let Some(head) = streams.waits_for(position)
        {
            let (operation, signature) = (head.op_seq, head.signature);
            let since = streams.waits_since(position);
            return Some(Missing { operation, signature, streamed: true, since, alone: None });
        }
        if let Some(board) = &self.board
            && let Some(word) = board.waits_for(&self.info, child)
        {
            let mut late = word.late_below(&self.info, &self.info.members[position]);
            let alone = late.next().filter(|_| late.next().is_none());
            let (operation, signature, since) = (word.operation, word.signature, Some(word.since));
            return Some(Missing { operation, signature, streamed: false, since, alone });
        }
        let asks = self.lease.waiting();
        let others_ask = self.lease.phase == Phase::Idle && asks != 0 && asks & (1 << child.0) == 0;
        let posted = self.announced().filter(|_| others_ask)?;
        let (operation, signature) = (posted.op_seq, posted.signature);
        Some(Missing { operation, signature, streamed: true, since: None, alone: None })
    }
}

/// An operation to which others have contributed and one child has not.
struct Missing {
    operation: u64,
    signature: Signature,
    streamed: bool,
    since: Option<Nanos>,
    /// The late rank at or below the child, if it is known that there is only one.
    alone: Option<Rank>,
}

impl Folded {
    fn part(&self) -> FoldsPart {
        FoldsPart { count: self.count, bytes: self.bytes, gathering_us: self.gathering.0 / 1_000 }
    }
}
