//! The numbers of a group's pieces are ones that every frame can carry.

use trib_messages::policy::Recovery;
use trib_proto::leaf::{LeafError, Post};
use trib_proto::{Limits, Nanos, Path};
use trib_wire::header::NUMBER_MAX;
use trib_wire::{Body, ChildIndex, Collective, GroupKey, Header, JobId, Kind, Marks, NodeId, RankList};

use crate::parts::{EPOCH, Leaf, RANKS, create, leaf, limits, signature, vector};

#[test]
fn a_group_whose_numbers_are_used_up_takes_no_more_vectors() {
    let limits = Limits { stream_threshold: 0, ..limits(1, 0) };
    let mut leaf = leaf(0, limits, Recovery::Notify);
    let group = create(&mut leaf.core, RankList::world(RANKS), 0, &mut leaf.memory);
    let from_node = |leaf: &mut Leaf, kind, seq, body| {
        let header = Header { seq, ..Header::new(kind, JobId(7), EPOCH, NodeId(1), ChildIndex(0)) };
        leaf.core.on_frame(Nanos(1), Path::Stream, &header, body, &mut leaf.memory);
    };
    let key = GroupKey { tag: 0, creation: 0, members: RankList::world(RANKS) };
    from_node(&mut leaf, Kind::Ready, 0, Body::Ready(key, Marks::default()));
    // The longest vector that there may be, in segments that are as short as can be, has an eighth
    // of all numbers.
    let signature = signature(Collective::Allreduce, (1 << 63) - 1, 0);
    let post = |leaf: &mut Leaf| {
        let post = Post { id: leaf.core.next_op(), number: None, signature, stretch_of: 0 };
        leaf.memory.inputs.insert(post.id, vector(0, 100, 0));
        leaf.core.post(Nanos(1), group, &post, &mut leaf.memory)
    };
    for _ in 0..NUMBER_MAX / ((1 << 63) / u64::from(limits.segment)) {
        assert_eq!(post(&mut leaf), Ok(Path::Stream));
    }
    assert_eq!(post(&mut leaf), Err(LeafError::TooLong));
    // How far the rank has got can still be said.
    from_node(&mut leaf, Kind::Grant, 1, Body::None);
    from_node(&mut leaf, Kind::Revoke, 1, Body::None);
    let mut sent = leaf.memory.sent.iter().map(|frame| frame.header);
    assert!(sent.any(|header| header.kind == Kind::StopAt && header.seq == NUMBER_MAX));
}
