//! One group at one node: who takes part, under which names the edges know it, and its three machines.

use core::ops::Range;

use trib_wire::{
    Body, ChildIndex, Fault, Generation, GroupIndex, GroupKey, GroupName, Header, Kind, Rank, RankList, Signature,
};

use super::Link;
use super::datagram::Datagrams;
use super::lease::Lease;
use super::output::{NodeOutput, Payload, Target};
use super::place::Place;
use super::stream::Streams;
use crate::Path;
use crate::window;

/// What a node does for a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Duty {
    /// Above the lowest common node: passes control frames, sees no data.
    Relay,
    /// Folds and passes on.
    Inner,
    /// Lowest common node of the members: here sums become results.
    Root,
}

/// A child that has members of the group below it.
pub(super) struct Member {
    pub(super) child: ChildIndex,
    /// Its members, as ranks of the group.
    pub(super) ranks: RankList,
    /// Lowest of them, as rank of the job: names the child in faults.
    pub(super) first: Rank,
}

/// What does not change during a group's life.
pub(super) struct GroupInfo {
    pub(super) index: GroupIndex,
    pub(super) generation: Generation,
    pub(super) key: GroupKey,
    /// What the program calls it, for people.
    pub(super) name: GroupName,
    pub(super) size: u32,
    /// Name of the group at the parent; `None` at the root of the tree.
    pub(super) up: Option<(GroupIndex, Generation)>,
    pub(super) duty: Duty,
    /// In child order, which is fold order.
    pub(super) members: Vec<Member>,
    /// Children that take part.
    pub(super) all: u64,
    /// Those of them that are nodes and fold.
    pub(super) inner: u64,
    /// All nodes that fold for the group (known at the root of the tree).
    pub(super) nodes: RankList,
}

impl GroupInfo {
    pub(super) fn position(&self, child: ChildIndex) -> Option<usize> {
        self.members.binary_search_by_key(&child, |m| m.child).ok()
    }

    /// The bit of the member at this position.
    pub(super) fn bit(&self, position: usize) -> u64 {
        1 << self.members[position].child.0
    }

    pub(super) fn down(&self, place: &Place, kind: Kind, child: ChildIndex) -> Header {
        Header { group: self.index, generation: self.generation, ..place.down(kind, child) }
    }

    pub(super) fn up(&self, place: &Place, kind: Kind) -> Option<Header> {
        let (group, generation) = self.up?;
        Some(Header { group, generation, ..place.up(kind)? })
    }

    /// Whether a data frame says something that this group and quota allow at all.
    pub(super) fn allows(&self, header: &Header, extent_max: u32) -> bool {
        let s = &header.signature;
        let element = s.dtype.size() as u32;
        let Some(vector) = window::vector_len(s, self.size) else { return false };
        header.extent <= extent_max
            && header.extent.is_multiple_of(element)
            && header.offset.is_multiple_of(u64::from(element))
            && header.offset + u64::from(header.extent) <= vector
            && s.root < self.size
            && s.is_defined()
    }

    /// Whether the payload is exactly what this child has to give.
    pub(super) fn gives(&self, position: usize, header: &Header) -> bool {
        let fragment = fragment(header);
        let given = window::given_by(&header.signature, &self.members[position].ranks, &fragment);
        let len = given.end - given.start;
        u64::from(header.payload_len) == len && (len == 0 || given.start - fragment.start == u64::from(header.window))
    }
}

impl GroupInfo {
    /// Whether the payload of a result is exactly what the ranks below this node get.
    pub(super) fn gets(&self, header: &Header) -> bool {
        let fragment = fragment(header);
        let mut hull: Option<Range<u64>> = None;
        for member in &self.members {
            let gotten = window::gotten_by(&header.signature, &member.ranks, &fragment);
            if gotten == fragment {
                hull = Some(gotten);
                break;
            }
            if !gotten.is_empty() {
                let so_far = hull.unwrap_or(gotten.clone());
                hull = Some(so_far.start.min(gotten.start)..so_far.end.max(gotten.end));
            }
        }
        let hull = hull.unwrap_or(fragment.start..fragment.start);
        let len = hull.end - hull.start;
        u64::from(header.payload_len) == len && (len == 0 || hull.start - fragment.start == u64::from(header.window))
    }
}

/// Bytes of the vector that a data frame is about.
pub(super) fn fragment(header: &Header) -> Range<u64> {
    header.offset..header.offset + u64::from(header.extent)
}

/// A streaming operation that a child has announced and that is not folded yet.
#[derive(Clone, Copy)]
pub(super) struct Posted {
    pub(super) op_seq: u64,
    pub(super) signature: Signature,
    pub(super) witness: u32,
}

impl From<&Header> for Posted {
    fn from(header: &Header) -> Posted {
        Posted { op_seq: header.op_seq, signature: header.signature, witness: header.witness }
    }
}

/// One group with its machines.
pub(super) struct Group {
    pub(super) info: GroupInfo,
    /// Made with the first datagram.
    pub(super) datagrams: Option<Box<Datagrams>>,
    /// Made with the first segment.
    pub(super) streams: Option<Box<Streams>>,
    pub(super) lease: Lease,
    /// Newest streaming operation announced by each member, by position.
    posted: Vec<Option<Posted>>,
    /// Children that have left.
    pub(super) left: u64,
    pub(super) failed: bool,
}

impl Group {
    pub(super) fn new(info: GroupInfo) -> Group {
        let posted = vec![None; info.members.len()];
        Group { info, datagrams: None, streams: None, lease: Lease::default(), posted, left: 0, failed: false }
    }

    /// Notes that a member streams an operation; an error if another member runs the same one by
    /// datagram. Such ranks disagree about its length, and neither protocol would ever finish it.
    pub(super) fn announce(&mut self, place: &Place, position: usize, header: &Header) -> Result<(), Fault> {
        let news = self.posted[position].is_none_or(|p| p.op_seq != header.op_seq);
        if !news {
            return Ok(());
        }
        self.posted[position] = Some(Posted::from(header));
        match self.datagrams.as_ref().and_then(|datagrams| datagrams.filling(header.op_seq)) {
            Some(other) => Err(place.mismatch(Posted::from(other), Posted::from(header))),
            None => Ok(()),
        }
    }

    /// The same from the other side: an error if a member streams the operation of a fragment that
    /// has just begun. It need not be the newest that the member has announced, for segments of
    /// several operations may wait here.
    pub(super) fn check_begun(&self, place: &Place, header: &Header) -> Result<(), Fault> {
        let announced = self.posted.iter().flatten().find(|posted| posted.op_seq == header.op_seq).copied();
        let staged = || self.streams.as_ref()?.staged_of(header.op_seq).map(Posted::from);
        match announced.or_else(staged) {
            Some(other) => Err(place.mismatch(Posted::from(header), other)),
            None => Ok(()),
        }
    }

    /// The newest streaming operation that a member has announced.
    pub(super) fn announced(&self) -> Option<Posted> {
        self.posted.iter().flatten().max_by_key(|posted| posted.op_seq).copied()
    }

    /// Tells everybody at the other ends of the group's edges, but not `except`.
    pub(super) fn broadcast_fault(
        &self,
        place: &Place,
        fault: &Fault,
        except: Option<Link>,
        out: &mut impl NodeOutput,
    ) {
        let body = Body::GroupError(*fault);
        let skip = match except {
            Some(Link::Child(child)) => 1u64 << child.0,
            Some(Link::Parent) | None => 0,
        };
        let targets = self.info.all & !self.left & !skip;
        if targets != 0 {
            let header = self.info.down(place, Kind::GroupError, ChildIndex::ALL);
            out.transmit(Target::Children(targets), Path::Stream, &header, Payload::Body(&body));
        }
        if except != Some(Link::Parent)
            && let Some(header) = self.info.up(place, Kind::GroupError)
        {
            out.transmit(Target::Parent, Path::Stream, &header, Payload::Body(&body));
        }
    }

    /// Gives back every buffer.
    pub(super) fn drop_buffers(&mut self, out: &mut impl NodeOutput) {
        if let Some(mut datagrams) = self.datagrams.take() {
            datagrams.drop_buffers(out);
        }
        if let Some(mut streams) = self.streams.take() {
            streams.drop_buffers(out);
        }
    }
}
