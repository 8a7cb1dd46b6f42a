//! What does not change during a group's life: which children take part, and under which names the
//! edges know the group.

use core::ops::Range;

use trib_wire::{ChildIndex, Generation, GroupIndex, GroupKey, GroupName, Header, Kind, Rank, RankList, Signature};

use super::place::Place;
use crate::window;

/// What a node does for a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Duty {
    /// The node is above the lowest common node: it passes control frames on and sees no data.
    Relay,
    /// The node folds, and passes the aggregate on.
    Inner,
    /// The node is the lowest common node of the members, where aggregates become results.
    Root,
}

/// A child at or below which the group has ranks.
pub(super) struct Member {
    pub(super) child: ChildIndex,
    /// Its ranks of the group, by their numbers in the group.
    pub(super) ranks: RankList,
    /// The lowest of these, by its number in the job. Faults name the child by it.
    pub(super) first: Rank,
}

/// What does not change during a group's life.
pub(super) struct GroupInfo {
    pub(super) index: GroupIndex,
    pub(super) generation: Generation,
    pub(super) key: GroupKey,
    /// The name that the program gave it, for people.
    pub(super) name: GroupName,
    pub(super) size: u32,
    /// The group's name at the parent; `None` at the root of the tree.
    pub(super) up: Option<(GroupIndex, Generation)>,
    pub(super) duty: Duty,
    /// In child order, which is the order of the fold.
    pub(super) members: Vec<Member>,
    /// A bit for each child that takes part.
    pub(super) all: u64,
    /// A bit for each of these that is a node and folds.
    pub(super) inner: u64,
    /// All nodes that fold for the group. They are known at the root of the tree.
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

    /// Whether a data frame says something that this group and its quota can allow.
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

    /// Whether the payload has exactly the bytes that this child has to give.
    pub(super) fn gives(&self, position: usize, header: &Header) -> bool {
        let fragment = fragment(header);
        let given = window::given_by(&header.signature, &self.members[position].ranks, &fragment);
        let len = given.end - given.start;
        u64::from(header.payload_len) == len && (len == 0 || given.start - fragment.start == u64::from(header.window))
    }
}

impl GroupInfo {
    /// Whether the payload of a result has exactly the bytes that the ranks below this node get.
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

/// The bytes of the vector that a data frame is about.
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
