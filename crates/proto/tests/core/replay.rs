//! A rank that sends again, in a new epoch, what others lack of operations that are over for it.

use trib_proto::leaf::Post;
use trib_proto::{Nanos, Path};
use trib_wire::{
    Body, ChildIndex, Collective, Epoch, Fault, GroupKey, Header, JobId, Kind, Marks, NodeId, Rank, RankList, Reason,
};

use super::parts::{EPOCH, Leaf, RANKS, create, leaf, limits, signature};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn from_node(kind: Kind, epoch: Epoch) -> Header {
    Header::new(kind, JobId(7), epoch, NodeId(1), ChildIndex(0))
}

/// The node makes the group, in an epoch that begins with piece 0.
fn make(leaf: &mut Leaf, now: Nanos, epoch: Epoch) {
    let key = GroupKey { tag: 0, creation: 0, members: RankList::world(RANKS) };
    let body = Body::Ready(key, Marks::default());
    leaf.core.on_frame(now, Path::Stream, &from_node(Kind::Ready, epoch), body, &mut leaf.memory);
}

#[test]
fn a_group_that_fails_while_it_is_replayed_leaves_no_timer_behind() {
    let mut leaf = leaf(0, limits(1, 0), true);
    leaf.core.on_link_up(ms(0), EPOCH, &mut leaf.memory);
    let group = create(&mut leaf.core, RankList::world(RANKS), 0, &mut leaf.memory);
    make(&mut leaf, ms(0), EPOCH);
    let post = Post { id: leaf.core.next_op(), number: None, signature: signature(Collective::Barrier, 0, 0) };
    leaf.core.post(ms(0), group, &post, &mut leaf.memory).expect("the group is there");
    let sent = leaf.memory.sent.last().expect("a fragment was sent").header;
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    assert_eq!(leaf.memory.done[&post.id], Ok(0..0));

    let next = Epoch(EPOCH.0 + 1);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.core.on_link_up(ms(2), next, &mut leaf.memory);
    make(&mut leaf, ms(3), next);
    let again = leaf.memory.sent.last().expect("the fragment was sent again").header;
    assert_eq!((again.kind, again.seq, again.epoch), (Kind::Contribution, 0, next));

    let fault =
        Fault { reason: Reason::MemberDead, node: NodeId(0), rank_a: Rank(1), rank_b: Rank(1), signatures: None };
    let error = from_node(Kind::GroupError, next);
    leaf.core.on_frame(ms(4), Path::Stream, &error, Body::GroupError(fault), &mut leaf.memory);
    assert_eq!(leaf.memory.failed, [(group, fault)]);
    let heartbeat = ms(1_002);
    assert_eq!(leaf.core.next_deadline(), heartbeat);
    leaf.core.on_timer(heartbeat, &mut leaf.memory);
    assert_eq!(leaf.core.next_deadline(), ms(2_002));
}
