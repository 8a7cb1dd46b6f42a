//! What does not change during a group's life: which children take part, and under which names the
//! edges know the group.

use core::ops::Range;

use trib_wire::{
    ChildIndex, Generation, GroupIndex, GroupKey, GroupName, Header, Kind, Marks, Rank, RankList, Signature, Way,
};

use super::identity::Identity;
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

/// As what a group is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Charge {
    /// The node only passes it on. It takes an entry in the node's table, and nothing else; one for
    /// which the node folds takes slots and contexts.
    pub(super) relayed: bool,
    /// It is made for another group.
    pub(super) companion: bool,
}

/// Groups, counted by what they are charged as, and the bytes of control memory that they take.
#[derive(Clone, Copy, Default)]
pub(super) struct Census {
    groups: [[usize; 2]; 2],
    bytes: u64,
}

impl Census {
    /// The number of groups that are charged like this.
    pub(super) fn count(&self, charge: Charge) -> usize {
        self.groups[usize::from(charge.relayed)][usize::from(charge.companion)]
    }

    /// The bytes that all of them take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// One more group.
    pub(super) fn add(&mut self, charge: Charge, bytes: u64) {
        *self.of(charge) += 1;
        self.bytes += bytes;
    }

    /// One group less, which was added with the same.
    pub(super) fn take_off(&mut self, charge: Charge, bytes: u64) {
        *self.of(charge) -= 1;
        self.bytes -= bytes;
    }

    /// The number of all groups.
    pub(super) fn all(&self) -> usize {
        self.groups.iter().flatten().sum()
    }

    fn of(&mut self, charge: Charge) -> &mut usize {
        &mut self.groups[usize::from(charge.relayed)][usize::from(charge.companion)]
    }
}

/// A child at or below which the group has ranks.
pub(super) struct Member {
    pub(super) child: ChildIndex,
    /// Its ranks of the group, by their numbers in the group.
    pub(super) ranks: RankList,
    /// The lowest of these, by its number in the job. Faults name the child by it.
    pub(super) first: Rank,
}

/// The control memory that a group or a creation with these members takes, in bytes: what is the
/// same for all, what each child adds, and the lists of ranks and of nodes.
pub(super) fn footprint(key: &GroupKey, members: &[Member], nodes: &RankList) -> u64 {
    let lists = members.iter().map(|member| list_bytes(&member.ranks)).sum::<u64>();
    GROUP_BYTES + MEMBER_BYTES * members.len() as u64 + 2 * list_bytes(&key.members) + lists + list_bytes(nodes)
}

/// What a list takes.
pub(super) fn list_bytes(list: &RankList) -> u64 {
    size_of_val(list.runs()) as u64
}

/// What a group takes without its children, and what each child adds. The tests hold these against
/// the sizes of the machines.
pub(super) const GROUP_BYTES: u64 = 768;
pub(super) const MEMBER_BYTES: u64 = 384;

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
    /// It is made for another group, which the quota of groups counts.
    pub(super) companion: bool,
    /// In child order, which is the order of the fold.
    pub(super) members: Vec<Member>,
    /// A bit for each child that takes part.
    pub(super) all: u64,
    /// A bit for each of these that is a node and folds.
    pub(super) inner: u64,
    /// The pieces with which the group begins in this epoch.
    pub(super) start: Marks,
    /// All nodes that fold for the group. They are known at the root of the tree.
    pub(super) nodes: RankList,
}

impl GroupInfo {
    pub(super) fn charge(&self) -> Charge {
        Charge { relayed: self.duty == Duty::Relay, companion: self.companion }
    }

    /// The control memory that it takes, in bytes.
    pub(super) fn footprint(&self) -> u64 {
        footprint(&self.key, &self.members, &self.nodes)
    }

    pub(super) fn position(&self, child: ChildIndex) -> Option<usize> {
        self.members.binary_search_by_key(&child, |m| m.child).ok()
    }

    /// The bit of the member at this position.
    pub(super) fn bit(&self, position: usize) -> u64 {
        1 << self.members[position].child.0
    }

    pub(super) fn down(&self, identity: &Identity, kind: Kind, child: ChildIndex) -> Header {
        Header { group: self.index, generation: self.generation, ..identity.down(kind, child) }
    }

    pub(super) fn up(&self, identity: &Identity, kind: Kind) -> Option<Header> {
        let (group, generation) = self.up?;
        Some(Header { group, generation, ..identity.up(kind)? })
    }

    /// What a contribution carries, if that is exactly what this child has to give, in a piece that
    /// this group and its quota, of `most` bytes, can allow.
    pub(super) fn given(&self, position: usize, header: &Header, most: u32) -> Option<Range<u64>> {
        let (signature, piece) = (&header.signature, header.piece());
        let layout = signature.layout();
        let allowed = layout.most(&piece) <= u64::from(most)
            && piece.end <= window::vector_elements(signature, self.size)?
            && signature.root < self.size
            && signature.is_defined();
        if !allowed {
            return None;
        }
        let way = if self.inner & self.bit(position) != 0 { Way::BetweenNodes } else { Way::FromRank };
        let given = window::given_by(signature, &self.members[position].ranks, &piece);
        header.carries(&given, layout.bytes(&given, way)).then_some(given)
    }

    /// What a result carries, if that is exactly what the ranks below this node get of a piece that
    /// is known.
    pub(super) fn gotten(&self, header: &Header) -> Option<Range<u64>> {
        let piece = header.piece();
        let mut hull: Option<Range<u64>> = None;
        for member in &self.members {
            let gotten = window::gotten_by(&header.signature, &member.ranks, &piece);
            if gotten == piece {
                hull = Some(gotten);
                break;
            }
            if !gotten.is_empty() {
                let so_far = hull.unwrap_or(gotten.clone());
                hull = Some(so_far.start.min(gotten.start)..so_far.end.max(gotten.end));
            }
        }
        let hull = hull.unwrap_or(piece.start..piece.start);
        header.carries(&hull, header.signature.layout().bytes(&hull, Way::Down)).then_some(hull)
    }

    /// The way of what this node folds.
    pub(super) fn way_of_folds(&self) -> Way {
        if self.duty == Duty::Root { Way::Down } else { Way::BetweenNodes }
    }
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

#[cfg(test)]
mod tests {
    use trib_messages::memory::{RECORD_BYTES, RECORD_BYTES_PER_CHILD};

    use super::*;
    use crate::node::group::Group;
    use crate::node::llt;
    use crate::node::membership::Pending;
    use crate::node::sat::Streams;

    /// As large as a driver's buffer.
    type Buffer = [u64; 4];

    #[test]
    fn what_is_charged_covers_what_is_kept() {
        let group = size_of::<Group<Buffer>>() + size_of::<Streams<Buffer>>();
        assert!(group as u64 <= GROUP_BYTES, "{group}");
        assert!(size_of::<Pending>() as u64 <= GROUP_BYTES);
        let (record, part) = llt::record_bytes::<Buffer>();
        assert!(2 * record as u64 <= RECORD_BYTES && part as u64 <= RECORD_BYTES_PER_CHILD, "{record} and {part}");
    }
}
