//! A rank that sends again, in a new epoch, what others lack of operations that are over for it.

use trib_messages::policy::Recovery;
use trib_proto::leaf::{GroupId, Note, OpId, Post};
use trib_proto::{Limits, Nanos, Path};
use trib_wire::body::Held;
use trib_wire::header::FLAG_STREAM;
use trib_wire::{
    Body, ChildIndex, Collective, Epoch, Fault, GroupIndex, GroupKey, Header, JobId, Kind, Marks, NodeId, Rank,
    RankList, Reason,
};

use super::parts::{EPOCH, Frame, Leaf, RANKS, create, leaf, limits, signature, vector};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn from_node(kind: Kind, epoch: Epoch) -> Header {
    Header::new(kind, JobId(7), epoch, NodeId(1), ChildIndex(0))
}

/// The node makes the group, in an epoch that begins with piece 0.
fn make(leaf: &mut Leaf, now: Nanos, epoch: Epoch) {
    let key = first_group();
    let body = Body::Ready(key, Marks::default());
    leaf.core.on_frame(now, Path::Stream, &from_node(Kind::Ready, epoch), body, &mut leaf.memory);
}

/// The connection is lost, and the next epoch begins with piece 0 of the group.
fn rejoin(leaf: &mut Leaf) -> Epoch {
    let next = Epoch(EPOCH.0 + 1);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.core.on_link_up(ms(2), next, &mut leaf.memory);
    make(leaf, ms(3), next);
    next
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
    let post =
        Post { id: leaf.core.next_op(), number: None, signature: signature(Collective::Barrier, 0, 0), stretch_of: 0 };
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
    rejoin(&mut leaf);
    assert!(take(&mut leaf, Kind::Leave).is_some());
    assert_eq!(leaf.core.next_deadline(), ms(1_002), "only a heartbeat is due");
}

#[test]
fn who_frees_a_group_that_is_replayed_asks_about_what_is_over_and_not_about_what_it_gave_up() {
    for before_the_epoch in [true, false] {
        let (mut leaf, group, first, _) = posted();
        let post = Post {
            id: leaf.core.next_op(),
            number: None,
            signature: signature(Collective::Barrier, 0, 0),
            stretch_of: 0,
        };
        leaf.core.post(ms(0), group, &post, &mut leaf.memory).expect("the group is there");
        let sent = leaf.memory.sent.last().expect("the second barrier was sent").header;
        let result = Header { kind: Kind::Result, ..sent };
        leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
        assert_eq!(leaf.memory.done[&post.id], Ok(0..0), "only the result of the first is missing");
        let next = Epoch(EPOCH.0 + 1);
        leaf.core.on_link_down(&mut leaf.memory);
        if before_the_epoch {
            leaf.core.free_group(ms(1), group, &mut leaf.memory);
        }
        leaf.core.on_link_up(ms(2), next, &mut leaf.memory);
        make(&mut leaf, ms(3), next);
        let again = leaf.memory.sent.last().expect("others lack the second").header;
        assert_eq!((again.kind, again.seq), (Kind::Contribution, 1));
        if !before_the_epoch {
            leaf.core.free_group(ms(3), group, &mut leaf.memory);
        }
        assert!(leaf.memory.done[&first].is_err());
        assert_eq!(take(&mut leaf, Kind::Leave), None, "the second is not over elsewhere");
        // The result is lost, and that of what was given up is not what is missing.
        for _ in 0..3 {
            let due = leaf.core.next_deadline();
            leaf.core.on_timer(due, &mut leaf.memory);
            assert_eq!(take(&mut leaf, Kind::Probe).map(|probe| probe.seq), Some(1));
            let other = Header { kind: Kind::Result, seq: 0, op_seq: 1, ..again };
            leaf.core.on_frame(due, Path::Datagram, &other, Body::None, &mut leaf.memory);
        }
        let result = Header { kind: Kind::Result, ..again };
        leaf.core.on_frame(ms(900), Path::Datagram, &result, Body::None, &mut leaf.memory);
        assert!(take(&mut leaf, Kind::Leave).is_some(), "it has done with the group");
    }
}

#[test]
fn a_group_that_fails_while_it_is_replayed_leaves_no_timer_behind() {
    let (mut leaf, group, id, sent) = posted();
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    assert_eq!(leaf.memory.done[&id], Ok(0..0));

    let next = rejoin(&mut leaf);
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
    let (header, body) = answer(&mut leaf, next);
    assert!(matches!(body, Body::Join { fault: Some(fault), .. } if fault == dead()), "{body:?}");
    assert_eq!(Marks::of(&header), Marks { fragments: 1, segments: 0 });
    assert!(leaf.core.may_be_asked(), "nobody knows yet whether the others have heard it");
    refuse(&mut leaf, ms(10), next);
    assert!(leaf.core.may_be_asked(), "they are told now, and that may be lost");
    refuse(&mut leaf, ms(11), next);
    assert!(!leaf.core.may_be_asked());
}

/// The node refuses the first group, of which every member has the first result.
fn refuse(leaf: &mut Leaf, now: Nanos, epoch: Epoch) {
    let header = Header { mark: 1, ..from_node(Kind::Refused, epoch) };
    leaf.core.on_frame(now, Path::Stream, &header, Body::Refused(first_group(), dead()), &mut leaf.memory);
}

#[test]
fn who_hears_that_a_strict_group_is_refused_stays_until_all_have_said_that_they_know() {
    let (mut leaf, group, id, sent) = posted_under(Recovery::Strict);
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    for (start, freed) in [(10, false), (20, true), (30, true)] {
        // The epoch before has ended before all had said so.
        let epoch = Epoch(EPOCH.0 + start as u32);
        leaf.core.on_link_down(&mut leaf.memory);
        leaf.core.on_link_up(ms(start), epoch, &mut leaf.memory);
        if freed {
            answer(&mut leaf, epoch);
        }
        leaf.memory.sent.clear();
        refuse(&mut leaf, ms(start + 1), epoch);
        assert_eq!(leaf.memory.done[&id], Ok(0..0), "another rank has been told of success");
        let said = leaf.memory.sent.pop().expect("it says that it knows");
        let Body::Join { key, fault, standing, .. } = said.body else { panic!("it joins once more") };
        assert_eq!((key, fault, standing.all_left), (first_group(), Some(dead()), false));
        assert_eq!(Marks::of(&said.header), Marks { fragments: 1, segments: 0 });
        leaf.core.free_group(ms(start + 2), group, &mut leaf.memory);
        assert!(leaf.core.may_be_asked() && leaf.memory.sent.is_empty());
    }
    refuse(&mut leaf, ms(33), Epoch(EPOCH.0 + 30));
    assert!(!leaf.core.may_be_asked() && leaf.memory.sent.is_empty(), "all know");
}

#[test]
fn who_has_freed_a_strict_group_that_failed_stays_until_all_have_left_it() {
    let (mut leaf, group, ..) = posted_under(Recovery::Strict);
    fail(&mut leaf, ms(1));
    leaf.core.free_group(ms(2), group, &mut leaf.memory);
    assert!(take(&mut leaf, Kind::Leave).is_some());
    assert!(leaf.core.may_be_asked());
    leaf.core.on_frame(ms(3), Path::Stream, &from_node(Kind::Freed, EPOCH), Body::None, &mut leaf.memory);
    assert!(!leaf.core.may_be_asked());
}

#[test]
fn a_node_that_calls_a_group_left_before_this_rank_has_left_it_is_not_believed() {
    let (mut leaf, group, id, sent) = posted_under(Recovery::Strict);
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    let next = rejoin(&mut leaf);
    leaf.core.free_group(ms(3), group, &mut leaf.memory);
    assert_eq!(leaf.core.outstanding(), 1, "whether the barrier is over is for the others to say");
    leaf.memory.node_is_wrong = true;
    leaf.core.on_frame(ms(4), Path::Stream, &from_node(Kind::Freed, next), Body::None, &mut leaf.memory);
    assert_eq!((leaf.core.outstanding(), leaf.memory.notes.last()), (1, Some(&Note::Violation)));
    leaf.memory.node_is_wrong = false;
    let result = Header { epoch: next, ..result };
    leaf.core.on_frame(ms(5), Path::Datagram, &result, Body::None, &mut leaf.memory);
    let mark = Header { mark: 1, ..from_node(Kind::Mark, next) };
    leaf.core.on_frame(ms(6), Path::Stream, &mark, Body::None, &mut leaf.memory);
    assert_eq!(leaf.memory.done[&id], Ok(0..0));
    assert!(take(&mut leaf, Kind::Leave).is_some());
    leaf.core.on_frame(ms(7), Path::Stream, &from_node(Kind::Freed, next), Body::None, &mut leaf.memory);
    assert_eq!(leaf.core.groups_left_behind(), 0);
}

#[test]
fn a_node_that_calls_results_held_by_all_which_this_rank_lacks_is_not_believed() {
    let (mut leaf, group, first, _) = posted_under(Recovery::Strict);
    let post =
        Post { id: leaf.core.next_op(), number: None, signature: signature(Collective::Barrier, 0, 0), stretch_of: 0 };
    leaf.core.post(ms(0), group, &post, &mut leaf.memory).expect("the group is there");
    let second = leaf.memory.sent.last().expect("the second barrier was sent").header;
    // Only the second result comes, and with it the word that all have both.
    let result = Header { kind: Kind::Result, mark: 2, ..second };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    assert_eq!(leaf.core.outstanding(), 2);
    // What is posted in the next epoch, which begins with the first, has a number of its own.
    let next = rejoin(&mut leaf);
    let post =
        Post { id: leaf.core.next_op(), number: None, signature: signature(Collective::Barrier, 0, 0), stretch_of: 0 };
    leaf.core.post(ms(4), group, &post, &mut leaf.memory).expect("the group is there");
    let sent = leaf.memory.sent.iter().filter(|frame| frame.header.epoch == next && frame.path == Path::Datagram);
    assert_eq!(sent.map(|frame| frame.header.seq).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(!leaf.memory.done.contains_key(&first));
}

#[test]
fn a_group_that_was_not_asked_for_yet_is_not_made() {
    let (mut leaf, group, _, sent) = posted();
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    let next = rejoin(&mut leaf);
    // What the first group gives again is under way, so this rank has not left it.
    leaf.core.free_group(ms(3), group, &mut leaf.memory);
    take(&mut leaf, Kind::Leave);
    let second = create(&mut leaf.core, RankList::world(RANKS), 1, &mut leaf.memory);
    let ready = Header { group: GroupIndex(1), ..from_node(Kind::Ready, next) };
    let key = || GroupKey { tag: 1, ..first_group() };
    leaf.memory.node_is_wrong = true;
    let body = Body::Ready(key(), Marks::default());
    leaf.core.on_frame(ms(4), Path::Stream, &ready, body, &mut leaf.memory);
    assert_eq!((leaf.memory.ready.contains(&second), take(&mut leaf, Kind::Join)), (false, None));
    leaf.memory.node_is_wrong = false;
    let result = Header { epoch: next, ..result };
    leaf.core.on_frame(ms(5), Path::Datagram, &result, Body::None, &mut leaf.memory);
    assert!(take(&mut leaf, Kind::Join).is_some(), "the first group is left");
    let body = Body::Ready(key(), Marks::default());
    leaf.core.on_frame(ms(6), Path::Stream, &ready, body, &mut leaf.memory);
    assert!(leaf.memory.ready.contains(&second));
}

#[test]
fn a_node_that_calls_segments_held_by_all_which_this_rank_lacks_is_not_believed() {
    let mut leaf = leaf(0, Limits { stream_threshold: 0, ..limits(1, 0) }, Recovery::Strict);
    leaf.core.on_link_up(ms(0), EPOCH, &mut leaf.memory);
    let group = create(&mut leaf.core, RankList::world(RANKS), 0, &mut leaf.memory);
    make(&mut leaf, ms(0), EPOCH);
    let post = |leaf: &mut Leaf| {
        let post = Post {
            id: leaf.core.next_op(),
            number: None,
            signature: signature(Collective::Allreduce, 16, 0),
            stretch_of: 0,
        };
        leaf.memory.inputs.insert(post.id, vector(0, 16, 1));
        leaf.core.post(ms(0), group, &post, &mut leaf.memory).expect("the group is there");
    };
    post(&mut leaf);
    post(&mut leaf);
    let from_node = |kind, seq, mark| Header { flags: FLAG_STREAM, seq, mark, ..from_node(kind, EPOCH) };
    leaf.core.on_frame(ms(1), Path::Stream, &from_node(Kind::Grant, 1, 0), Body::None, &mut leaf.memory);
    leaf.core.on_frame(ms(2), Path::Stream, &from_node(Kind::Mark, 0, 2), Body::None, &mut leaf.memory);
    let sent = take(&mut leaf, Kind::Contribution).expect("the lease is there");
    leaf.memory.incoming = vector(1, 16, 1);
    let result = Header { kind: Kind::Result, child: ChildIndex::ALL, ..sent };
    leaf.core.on_frame(ms(3), Path::Stream, &result, Body::None, &mut leaf.memory);
    assert_eq!(leaf.core.outstanding(), 2, "nobody who may know has said that all have the first");
}

/// The first group.
fn first_group() -> GroupKey {
    GroupKey { tag: 0, creation: 0, members: RankList::world(RANKS) }
}

/// The node says that the group has failed.
fn fail(leaf: &mut Leaf, now: Nanos) {
    let header = from_node(Kind::GroupError, EPOCH);
    leaf.core.on_frame(now, Path::Stream, &header, Body::GroupError(dead()), &mut leaf.memory);
}

/// The node asks this rank about the first group, and it answers.
fn answer(leaf: &mut Leaf, epoch: Epoch) -> (Header, Body) {
    let body = Body::Ask(first_group());
    leaf.core.on_frame(ms(9), Path::Stream, &from_node(Kind::Ask, epoch), body, &mut leaf.memory);
    let answer = leaf.memory.sent.pop().expect("it answers");
    (answer.header, answer.body)
}

#[test]
fn who_has_freed_a_group_that_failed_tells_those_who_missed_it_why() {
    let (mut leaf, group, ..) = posted();
    let mark = Header { mark: 1, ..from_node(Kind::Mark, EPOCH) };
    leaf.core.on_frame(ms(1), Path::Stream, &mark, Body::None, &mut leaf.memory);
    fail(&mut leaf, ms(1));
    leaf.core.free_group(ms(2), group, &mut leaf.memory);
    assert!(!leaf.core.may_be_asked(), "nobody's results depend on it");
    leaf.memory.sent.clear();
    let next = Epoch(EPOCH.0 + 1);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.core.on_link_up(ms(3), next, &mut leaf.memory);
    assert_eq!(take(&mut leaf, Kind::Join), None, "it has done with the group");
    let (header, body) = answer(&mut leaf, next);
    assert!(matches!(body, Body::Join { fault: Some(fault), .. } if fault == dead()), "{body:?}");
    assert_eq!(Marks::of(&header), Marks::default(), "that is for strict jobs");
}

#[test]
fn a_fault_that_all_members_know_is_forgotten() {
    let (mut leaf, group, ..) = posted();
    fail(&mut leaf, ms(1));
    leaf.core.free_group(ms(2), group, &mut leaf.memory);
    leaf.core.on_frame(ms(3), Path::Stream, &from_node(Kind::Freed, EPOCH), Body::None, &mut leaf.memory);
    let (_, body) = answer(&mut leaf, EPOCH);
    assert!(matches!(body, Body::Join { fault: None, .. }), "{body:?}");
}

/// A rank of a strict job with two barriers under way: the result of the first is here, and the
/// program has freed the group.
fn freed_with_one_undecided() -> (Leaf, OpId, Header) {
    let (mut leaf, group, first, sent) = posted_under(Recovery::Strict);
    let result = Header { kind: Kind::Result, ..sent };
    let post =
        Post { id: leaf.core.next_op(), number: None, signature: signature(Collective::Barrier, 0, 0), stretch_of: 0 };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    assert_eq!(take(&mut leaf, Kind::Mark).map(|mark| mark.mark), Some(1));
    leaf.core.post(ms(1), group, &post, &mut leaf.memory).expect("the group is there");
    let second = take(&mut leaf, Kind::Contribution).expect("it was sent");
    leaf.core.free_group(ms(2), group, &mut leaf.memory);
    assert!(leaf.memory.done[&post.id].is_err() && !leaf.memory.done.contains_key(&first));
    (leaf, first, second)
}

#[test]
fn what_only_a_given_up_contribution_has_said_is_said_again() {
    let (mut leaf, group, _, sent) = posted_under(Recovery::Strict);
    let mut post = || {
        let post = Post {
            id: leaf.core.next_op(),
            number: None,
            signature: signature(Collective::Barrier, 0, 0),
            stretch_of: 0,
        };
        leaf.core.post(ms(0), group, &post, &mut leaf.memory).expect("the group is there");
    };
    // The last of them waits for the window, and says with its contribution what is here.
    (0..3).for_each(|_| post());
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    let said = leaf.memory.sent.last().map(|frame| (frame.header.kind, frame.header.seq, frame.header.mark));
    assert_eq!(said, Some((Kind::Contribution, 3, 1)));
    assert_eq!(take(&mut leaf, Kind::Mark), None, "nothing else need say it");
    leaf.core.free_group(ms(2), group, &mut leaf.memory);
    assert_eq!(take(&mut leaf, Kind::Mark).map(|mark| mark.mark), Some(1), "that contribution may be lost");
}

#[test]
fn who_frees_a_group_asks_on_until_it_hears_what_is_undecided() {
    let (mut leaf, first, second) = freed_with_one_undecided();
    assert_eq!(take(&mut leaf, Kind::Leave), None);
    let due = leaf.core.next_deadline();
    assert!(due < ms(1_000), "that is no heartbeat");
    leaf.core.on_timer(due, &mut leaf.memory);
    let probe = take(&mut leaf, Kind::Probe).expect("it asks");
    assert_eq!((probe.seq, probe.mark), (1, 1), "it does not hold what it has given up");
    let result = Header { kind: Kind::Result, mark: 1, ..second };
    leaf.core.on_frame(due, Path::Datagram, &result, Body::None, &mut leaf.memory);
    assert_eq!(leaf.memory.done[&first], Ok(0..0));
    assert!(take(&mut leaf, Kind::Leave).is_some(), "it has done with the group");
}

#[test]
fn who_has_heard_the_results_of_all_that_it_has_given_up_asks_no_more() {
    let (mut leaf, first, second) = freed_with_one_undecided();
    let result = Header { kind: Kind::Result, mark: 0, ..second };
    leaf.core.on_frame(ms(3), Path::Datagram, &result, Body::None, &mut leaf.memory);
    assert!(!leaf.memory.done.contains_key(&first), "the result says nothing of that");
    assert_eq!(leaf.core.next_deadline(), ms(1_000), "only a heartbeat is due");
    let mark = Header { mark: 1, ..from_node(Kind::Mark, EPOCH) };
    leaf.core.on_frame(ms(4), Path::Stream, &mark, Body::None, &mut leaf.memory);
    assert_eq!(leaf.memory.done[&first], Ok(0..0));
}

#[test]
fn that_the_node_lacks_what_was_given_up_is_no_fault_of_the_way() {
    let (mut leaf, ..) = freed_with_one_undecided();
    for _ in 0..200 {
        let now = leaf.core.next_deadline();
        leaf.core.on_timer(now, &mut leaf.memory);
        leaf.core.on_frame(now, Path::Stream, &from_node(Kind::Heartbeat, EPOCH), Body::None, &mut leaf.memory);
        let held = Body::Held(Held { node: NodeId(1), missing: 1, have: 0, have_base: 1 });
        leaf.core.on_frame(now, Path::Datagram, &from_node(Kind::Held, EPOCH), held, &mut leaf.memory);
    }
    let is_fault = |frame: &Frame| frame.header.kind == Kind::GroupError;
    assert!(leaf.core.next_deadline() > ms(15_000) && !leaf.memory.sent.iter().any(is_fault));
}

/// A rank of a strict job that has sent a barrier, which goes by datagram, and an allreduce of two
/// segments; of the latter nothing if it does not have the lock. Returns their names and frames.
fn posted_on_both_paths(has_the_lock: bool) -> (Leaf, GroupId, [OpId; 2], Vec<Header>) {
    let limits = Limits { stream_threshold: 17, ..limits(1, 0) };
    let mut leaf = leaf(0, limits, Recovery::Strict);
    leaf.core.on_link_up(ms(0), EPOCH, &mut leaf.memory);
    let group = create(&mut leaf.core, RankList::world(RANKS), 0, &mut leaf.memory);
    make(&mut leaf, ms(0), EPOCH);
    let ids = [signature(Collective::Barrier, 0, 0), signature(Collective::Allreduce, 32, 0)].map(|signature| {
        let post = Post { id: leaf.core.next_op(), number: None, signature, stretch_of: 0 };
        leaf.memory.inputs.insert(post.id, vector(0, signature.count, 0));
        leaf.core.post(ms(0), group, &post, &mut leaf.memory).expect("the group is there");
        post.id
    });
    if has_the_lock {
        grant(&mut leaf, EPOCH);
    }
    let sent = leaf.memory.sent.drain(..).map(|frame| frame.header);
    let sent = sent.filter(|header| header.kind == Kind::Contribution).collect();
    (leaf, group, ids, sent)
}

/// The node gives the group the lock for the first time in this epoch.
fn grant(leaf: &mut Leaf, epoch: Epoch) {
    let header = Header { seq: 1, flags: FLAG_STREAM, ..from_node(Kind::Grant, epoch) };
    leaf.core.on_frame(ms(0), Path::Stream, &header, Body::None, &mut leaf.memory);
}

/// Which of the frames sent since the last call say that something ends.
fn ends_said(leaf: &mut Leaf) -> Vec<Kind> {
    let kinds = leaf.memory.sent.drain(..).map(|frame| frame.header.kind);
    kinds.filter(|kind| [Kind::Leave, Kind::GroupError].contains(kind)).collect()
}

#[test]
fn who_gives_up_on_one_path_what_it_has_sent_says_so_though_it_waits_on_the_other() {
    for gives_up_the_barrier in [false, true] {
        let (mut leaf, group, [barrier, streamed], sent) = posted_on_both_paths(true);
        let (held, given_up) = if gives_up_the_barrier { (streamed, barrier) } else { (barrier, streamed) };
        for contribution in sent.iter().filter(|header| header.is_stream() == gives_up_the_barrier) {
            let path = if contribution.is_stream() { Path::Stream } else { Path::Datagram };
            leaf.memory.incoming = vector(0, u64::from(contribution.payload_len), 0);
            let result = Header { kind: Kind::Result, ..*contribution };
            leaf.core.on_frame(ms(1), path, &result, Body::None, &mut leaf.memory);
        }
        leaf.core.free_group(ms(2), group, &mut leaf.memory);
        assert!(leaf.memory.done[&given_up].is_err() && !leaf.memory.done.contains_key(&held));
        assert_eq!(ends_said(&mut leaf), [Kind::GroupError], "another may wait for it on each path");
        leaf.core.on_timer(ms(900), &mut leaf.memory);
        assert_eq!(ends_said(&mut leaf), [], "it is said once");
        // The node dies before the answer comes.
        let next = Epoch(EPOCH.0 + 1);
        leaf.core.on_link_down(&mut leaf.memory);
        leaf.core.on_link_up(ms(901), next, &mut leaf.memory);
        make(&mut leaf, ms(902), next);
        assert_eq!(ends_said(&mut leaf), [Kind::GroupError], "the new root does not know");
        let last = from_node(Kind::GroupError, next);
        leaf.core.on_frame(ms(903), Path::Stream, &last, Body::GroupError(dead()), &mut leaf.memory);
        assert_eq!((leaf.memory.done[&held].is_err(), ends_said(&mut leaf)), (true, vec![Kind::Leave]));
    }
}

#[test]
fn who_gives_up_what_it_has_not_sent_waits_for_what_is_undecided() {
    let (mut leaf, group, [barrier, _], sent) = posted_on_both_paths(false);
    let result = Header { kind: Kind::Result, ..sent[0] };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    leaf.core.free_group(ms(2), group, &mut leaf.memory);
    assert_eq!(ends_said(&mut leaf), [], "nobody can have the result of the other");
    let mark = Header { mark: 1, ..from_node(Kind::Mark, EPOCH) };
    leaf.core.on_frame(ms(3), Path::Stream, &mark, Body::None, &mut leaf.memory);
    assert_eq!(leaf.memory.done[&barrier], Ok(0..0));
    assert_eq!(ends_said(&mut leaf), [Kind::Leave]);
}

/// Which frames about groups were sent since the last call, and what joins say of the program.
fn said(leaf: &mut Leaf) -> Vec<(Kind, Option<bool>)> {
    let of = |frame: Frame| match frame.body {
        Body::Join { standing, .. } => Some((Kind::Join, Some(standing.freed))),
        _ if frame.header.kind == Kind::Leave => Some((Kind::Leave, None)),
        _ => None,
    };
    leaf.memory.sent.drain(..).filter_map(of).collect()
}

#[test]
fn who_frees_a_group_in_a_new_epoch_leaves_it_before_it_asks_for_another() {
    let (mut leaf, group, _, sent) = posted();
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    let next = Epoch(EPOCH.0 + 1);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.memory.sent.clear();
    leaf.core.on_link_up(ms(2), next, &mut leaf.memory);
    assert_eq!(said(&mut leaf), [(Kind::Join, Some(false))]);
    leaf.core.free_group(ms(3), group, &mut leaf.memory);
    create(&mut leaf.core, RankList::world(RANKS), 5, &mut leaf.memory);
    make(&mut leaf, ms(4), next);
    let again = leaf.memory.sent.last().expect("others lack it").header;
    assert_eq!(said(&mut leaf), [], "what the new group is to have is not free yet");
    let result = Header { kind: Kind::Result, ..again };
    leaf.core.on_frame(ms(5), Path::Datagram, &result, Body::None, &mut leaf.memory);
    assert_eq!(said(&mut leaf), [(Kind::Leave, None), (Kind::Join, Some(false))]);
}

#[test]
fn who_has_freed_a_group_before_an_epoch_says_so_and_asks_for_others_at_once() {
    let (mut leaf, group, _, sent) = posted();
    let result = Header { kind: Kind::Result, ..sent };
    leaf.core.on_frame(ms(1), Path::Datagram, &result, Body::None, &mut leaf.memory);
    leaf.core.free_group(ms(1), group, &mut leaf.memory);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.memory.sent.clear();
    leaf.core.on_link_up(ms(2), Epoch(EPOCH.0 + 1), &mut leaf.memory);
    create(&mut leaf.core, RankList::world(RANKS), 5, &mut leaf.memory);
    assert_eq!(said(&mut leaf), [(Kind::Join, Some(true)), (Kind::Join, Some(false))]);
}
