//! A rank that sends again, in a new epoch, what others lack of operations that are over for it.

use trib_messages::policy::Recovery;
use trib_proto::leaf::{GroupId, OpId, Post};
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

/// A rank with a group in which it has just sent the first fragment of a barrier.
fn posted() -> (Leaf, GroupId, OpId, Header) {
    posted_under(Recovery::Retry)
}

fn posted_under(policy: Recovery) -> (Leaf, GroupId, OpId, Header) {
    let mut leaf = leaf(0, limits(1, 0), policy);
    leaf.core.on_link_up(ms(0), EPOCH, &mut leaf.memory);
    let group = create(&mut leaf.core, RankList::world(RANKS), 0, &mut leaf.memory);
    make(&mut leaf, ms(0), EPOCH);
    let post = Post { id: leaf.core.next_op(), number: None, signature: signature(Collective::Barrier, 0, 0) };
    leaf.core.post(ms(0), group, &post, &mut leaf.memory).expect("the group is there");
    let sent = leaf.memory.sent.last().expect("a fragment was sent").header;
    (leaf, group, post.id, sent)
}

fn dead() -> Fault {
    Fault { reason: Reason::MemberDead, node: NodeId(0), rank_a: Rank(1), rank_b: Rank(1), signatures: None }
}

/// The first frame of this kind that was sent since the last call.
fn take(leaf: &mut Leaf, kind: Kind) -> Option<Header> {
    leaf.memory.sent.drain(..).map(|frame| frame.header).find(|header| header.kind == kind)
}

#[test]
fn who_has_freed_a_group_and_still_replays_it_leaves_when_it_fails() {
    let (mut leaf, group, _, sent) = posted();
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    leaf.core.free_group(ms(1), group, &mut leaf.memory);
    let next = Epoch(EPOCH.0 + 1);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.core.on_link_up(ms(2), next, &mut leaf.memory);
    take(&mut leaf, Kind::Join);
    make(&mut leaf, ms(3), next);
    assert_eq!(take(&mut leaf, Kind::Leave), None, "others lack what it sends again");
    leaf.core.on_frame(
        ms(4),
        Path::Stream,
        &from_node(Kind::GroupError, next),
        Body::GroupError(dead()),
        &mut leaf.memory,
    );
    assert!(take(&mut leaf, Kind::Leave).is_some(), "the node waits for it");
    assert_eq!((leaf.core.groups_left_behind(), leaf.core.next_deadline()), (0, ms(1_002)));
}

#[test]
fn what_was_given_up_is_not_asked_after_in_the_next_epoch() {
    let (mut leaf, group, id, _) = posted();
    leaf.core.free_group(ms(1), group, &mut leaf.memory);
    assert!(leaf.memory.done[&id].is_err());
    let next = Epoch(EPOCH.0 + 1);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.core.on_link_up(ms(2), next, &mut leaf.memory);
    make(&mut leaf, ms(3), next);
    assert!(take(&mut leaf, Kind::Leave).is_some());
    assert_eq!(leaf.core.next_deadline(), ms(1_002), "only a heartbeat is due");
}

#[test]
fn a_group_that_fails_while_it_is_replayed_leaves_no_timer_behind() {
    let (mut leaf, group, id, sent) = posted();
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    assert_eq!(leaf.memory.done[&id], Ok(0..0));

    let next = Epoch(EPOCH.0 + 1);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.core.on_link_up(ms(2), next, &mut leaf.memory);
    make(&mut leaf, ms(3), next);
    let again = leaf.memory.sent.last().expect("the fragment was sent again").header;
    assert_eq!((again.kind, again.seq, again.epoch), (Kind::Contribution, 0, next));

    leaf.core.on_frame(
        ms(4),
        Path::Stream,
        &from_node(Kind::GroupError, next),
        Body::GroupError(dead()),
        &mut leaf.memory,
    );
    assert_eq!(leaf.memory.failed, [(group, dead())]);
    let heartbeat = ms(1_002);
    assert_eq!(leaf.core.next_deadline(), heartbeat);
    leaf.core.on_timer(heartbeat, &mut leaf.memory);
    assert_eq!(leaf.core.next_deadline(), ms(2_002));
}

#[test]
fn who_has_freed_a_strict_group_that_failed_answers_with_its_last_word() {
    let (mut leaf, group, id, sent) = posted_under(Recovery::Strict);
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    assert_eq!(take(&mut leaf, Kind::Mark).map(|mark| mark.mark), Some(1), "others wait for it");
    assert_eq!((leaf.memory.done.get(&id), leaf.core.outstanding()), (None, 1), "others may lack it");
    let last = Header { mark: 1, ..from_node(Kind::GroupError, EPOCH) };
    leaf.core.on_frame(ms(2), Path::Stream, &last, Body::GroupError(dead()), &mut leaf.memory);
    assert_eq!(leaf.memory.done[&id], Ok(0..0), "all hold it, so it has succeeded");
    leaf.core.free_group(ms(3), group, &mut leaf.memory);
    let next = Epoch(EPOCH.0 + 1);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.core.on_link_up(ms(4), next, &mut leaf.memory);
    assert!(leaf.core.may_be_asked());
    take(&mut leaf, Kind::Join);
    let key = GroupKey { tag: 0, creation: 0, members: RankList::world(RANKS) };
    leaf.core.on_frame(ms(5), Path::Stream, &from_node(Kind::Ask, next), Body::Ask(key), &mut leaf.memory);
    let answer = leaf.memory.sent.pop().expect("it answers");
    assert!(matches!(answer.body, Body::Join { fault: Some(fault), .. } if fault == dead()), "{:?}", answer.body);
    assert_eq!(Marks::of(&answer.header), Marks { fragments: 1, segments: 0 });
    assert!(leaf.core.may_be_asked(), "nobody knows yet whether the others have heard it");
    let key = GroupKey { tag: 0, creation: 0, members: RankList::world(RANKS) };
    let body = Body::Refused(key, dead());
    leaf.core.on_frame(ms(6), Path::Stream, &from_node(Kind::Refused, next), body, &mut leaf.memory);
    assert!(!leaf.core.may_be_asked());
}

#[test]
fn who_has_freed_a_strict_group_that_failed_stays_until_all_have_left_it() {
    let (mut leaf, group, ..) = posted_under(Recovery::Strict);
    leaf.core.on_frame(
        ms(1),
        Path::Stream,
        &from_node(Kind::GroupError, EPOCH),
        Body::GroupError(dead()),
        &mut leaf.memory,
    );
    leaf.core.free_group(ms(2), group, &mut leaf.memory);
    assert!(take(&mut leaf, Kind::Leave).is_some());
    assert!(leaf.core.may_be_asked());
    leaf.core.on_frame(ms(3), Path::Stream, &from_node(Kind::Freed, EPOCH), Body::None, &mut leaf.memory);
    assert!(!leaf.core.may_be_asked());
}
