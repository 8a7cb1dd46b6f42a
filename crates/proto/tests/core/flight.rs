//! How much of its vectors a rank has on its link at once, whatever the number of its groups, and
//! for which bytes it may sleep.

use core::ops::Range;
use std::collections::VecDeque;

use trib_proto::leaf::{GroupId, LeafOutput, NewGroup, Note, OpId, Payload, Post, Slice};
use trib_proto::{LeafConfig, LeafCore, Limits, Nanos, Path};
use trib_wire::body::Fault;
use trib_wire::header::{FLAG_IN_TURN, FLAG_STREAM};
use trib_wire::{
    Body, ChildIndex, Collective, DataType, Epoch, Generation, GroupIndex, GroupKey, GroupName, Header, JobId, Kind,
    Marks, NodeId, Placement, Rank, RankList, ReduceOp, Signature, WireFormat,
};

const NOW: Nanos = Nanos(1);
const FLIGHT: u32 = 12;

fn core() -> LeafCore {
    core_with_room(None)
}

/// `room` is how much the rank may keep for a new epoch, in bytes; `None` where there is none.
fn core_with_room(room: Option<u64>) -> LeafCore {
    let limits = Limits {
        groups: 16,
        window: 4,
        osts: 64,
        payload: 64,
        streams: 8,
        segment: 1 << 20,
        staging: 64,
        flight: FLIGHT,
        control_memory: 1 << 20,
        stream_threshold: 0,
        lease_operations: 0,
        heartbeat: Nanos::from_millis(1000),
        dead_after: Nanos::from_millis(60_000),
    };
    let (job, epoch, node) = (JobId(1), Epoch(1), NodeId(2));
    let mut core = LeafCore::new(LeafConfig {
        job,
        epoch,
        rank: Rank(0),
        world_size: 2,
        node,
        child: ChildIndex(0),
        limits,
        recovers: room.is_some(),
        memory: room.unwrap_or(u64::MAX),
        strict: false,
    });
    core.on_link_up(NOW, epoch, &mut Wire::default());
    core
}

/// The frames that the core sends.
#[derive(Default)]
struct Wire(Vec<Header>);

impl Wire {
    fn segments(&mut self) -> Vec<Header> {
        self.0.drain(..).filter(|header| header.kind == Kind::Contribution).collect()
    }
}

impl LeafOutput for Wire {
    fn transmit(&mut self, _: Path, header: &Header, _: Payload<'_>) {
        self.0.push(*header);
    }
    fn deliver(&mut self, _: Slice) {}
    fn complete(&mut self, _: OpId, _: Result<Range<u64>, Fault>) {}
    fn forget(&mut self, _: OpId) {}
    fn move_to(&mut self, _: &Placement) {}
    fn group_ready(&mut self, _: GroupId) {}
    fn group_failed(&mut self, _: GroupId, _: Fault) {}
    fn note(&mut self, _: Note) {}
}

fn from_node(group: u32, kind: Kind) -> Header {
    let head = Header::new(kind, JobId(1), Epoch(1), NodeId(2), ChildIndex(0));
    Header { group: GroupIndex(group), generation: Generation(1), flags: FLAG_STREAM, ..head }
}

/// Makes a group that holds the lock and has posted a long allreduce. Returns what it sent at once.
fn stream(core: &mut LeafCore, wire: &mut Wire, group: u32) -> Vec<Header> {
    ask(core, wire, group);
    grant(core, wire, group);
    wire.segments()
}

/// Makes a group that has posted a long allreduce and asks for the lock.
fn ask(core: &mut LeafCore, wire: &mut Wire, group: u32) {
    let members = RankList::world(2);
    let tag = u64::from(group);
    let id = core.next_group();
    let new = NewGroup { members: members.clone(), tag, name: GroupName::default(), companion: false };
    core.create_group(id, new, wire).unwrap();
    let ready = from_node(group, Kind::Ready);
    core.on_frame(
        NOW,
        Path::Stream,
        &ready,
        Body::Ready(GroupKey { tag, creation: 0, members }, Marks::default()),
        wire,
    );
    let signature = Signature {
        collective: Collective::Allreduce,
        dtype: DataType::F64,
        op: ReduceOp::Sum,
        format: WireFormat::Plain,
        root: 0,
        count: 1 << 20,
    };
    let post = Post { id: core.next_op(), number: None, signature, stretch_of: 0 };
    core.post(NOW, id, &post, wire).unwrap();
}

fn grant(core: &mut LeafCore, wire: &mut Wire, group: u32) {
    let grant = Header { seq: 1, ..from_node(group, Kind::Grant) };
    core.on_frame(NOW, Path::Stream, &grant, Body::None, wire);
}

/// The node's answer to a segment.
fn answer(core: &mut LeafCore, wire: &mut Wire, segment: &Header) {
    let result = Header { kind: Kind::Result, child: ChildIndex::ALL, ..*segment };
    core.on_frame(NOW, Path::Stream, &result, Body::None, wire);
}

#[test]
fn a_single_group_has_the_whole_flight() {
    let (mut core, mut wire) = (core(), Wire::default());
    assert_eq!(stream(&mut core, &mut wire, 0).len(), FLIGHT as usize);
}

#[test]
fn a_stretch_of_a_longer_call_has_segments_of_that_one() {
    let (mut core, mut wire) = (core(), Wire::default());
    let alone = stream(&mut core, &mut wire, 0);
    let signature = alone[0].signature;
    assert_eq!(alone[0].elements * 8, 64 << 10);
    answer_all(&mut core, &mut wire, alone);
    let post = Post { id: core.next_op(), number: None, signature, stretch_of: 3 * signature.count };
    core.post(NOW, GroupId(0), &post, &mut wire).unwrap();
    let stretch = wire.segments();
    assert!(!stretch.is_empty() && stretch.iter().all(|segment| segment.elements * 8 == 192 << 10));
}

#[test]
fn groups_that_stream_share_the_flight_and_each_keeps_some() {
    let (mut core, mut wire) = (core(), Wire::default());
    let sent: Vec<Vec<Header>> = (0..8).map(|group| stream(&mut core, &mut wire, group)).collect();
    let counts: Vec<usize> = sent.iter().map(Vec::len).collect();
    assert_eq!(counts, [12, 6, 4, 3, 3, 2, 2, 2]);
    // The first group sends nothing more until it is down to its share.
    for (at, segment) in sent[0].iter().enumerate() {
        answer(&mut core, &mut wire, segment);
        assert_eq!(wire.segments().len(), usize::from(at >= 10), "after {} results", at + 1);
    }
}

#[test]
fn who_is_alone_again_has_the_whole_flight_again() {
    let (mut core, mut wire) = (core(), Wire::default());
    let first = stream(&mut core, &mut wire, 0);
    let second = stream(&mut core, &mut wire, 1);
    assert_eq!((first.len(), second.len()), (12, 6));
    let lost = Header { child: ChildIndex(0), ..from_node(0, Kind::GroupError) };
    let fault = Fault {
        reason: trib_wire::Reason::MemberDead,
        node: NodeId(2),
        rank_a: Rank(1),
        rank_b: Rank(1),
        signatures: None,
    };
    core.on_frame(NOW, Path::Stream, &lost, Body::GroupError(fault), &mut wire);
    answer(&mut core, &mut wire, &second[0]);
    assert_eq!(wire.segments().len(), 7, "12 in flight, of which 5 were");
}

#[test]
fn a_group_that_stands_still_leaves_the_flight_to_the_others() {
    let (mut core, mut wire) = (core(), Wire::default());
    // A rank of the first group is late, so that none of its results come.
    let late = stream(&mut core, &mut wire, 0);
    let mut sent = VecDeque::from(stream(&mut core, &mut wire, 1));
    assert_eq!((late.len(), sent.len()), (12, 6));
    let mut answered = 0;
    while sent.len() < FLIGHT as usize {
        let segment = sent.pop_front().expect("the second group has segments under way");
        answer(&mut core, &mut wire, &segment);
        sent.extend(wire.segments());
        answered += 1;
    }
    assert_eq!(answered, 4 * FLIGHT + 1, "the first group had its share until it stood still");
    // The late rank comes. Both groups move, and the second one goes back to its share.
    answer(&mut core, &mut wire, &late[0]);
    assert_eq!(wire.segments().len(), 0, "the first group has 11 under way, and its share is 6");
    for _ in 0..6 {
        let segment = sent.pop_front().expect("the second group has segments under way");
        answer(&mut core, &mut wire, &segment);
        assert_eq!(wire.segments().len(), 0, "the second group is above its share");
    }
    let segment = sent.pop_front().expect("the second group has segments under way");
    answer(&mut core, &mut wire, &segment);
    assert_eq!(wire.segments().len(), 1);
}

#[test]
fn a_rank_without_room_sends_all_that_its_lease_covers() {
    let (mut core, mut wire) = (core_with_room(Some(1)), Wire::default());
    let mut first = VecDeque::from(stream(&mut core, &mut wire, 0));
    let mut second = VecDeque::from(stream(&mut core, &mut wire, 1));
    // The first group's operation is over, and what others may lack of it takes all the room.
    while let Some(segment) = first.pop_front() {
        answer(&mut core, &mut wire, &segment);
        let sent = wire.segments();
        let (own, other): (Vec<_>, Vec<_>) = sent.into_iter().partition(|header| header.group == segment.group);
        first.extend(own);
        second.extend(other);
    }
    ask(&mut core, &mut wire, 2);
    assert!(!wire.0.iter().any(|header| header.kind == Kind::Intent), "a lock is asked for only where there is room");
    let mut answered = 0;
    while let Some(segment) = second.pop_front() {
        answer(&mut core, &mut wire, &segment);
        second.extend(wire.segments());
        answered += 1;
    }
    assert_eq!(answered * SEGMENT, VECTOR);
}

/// The bytes of the vector, and those of one of its segments.
const VECTOR: u64 = 8 << 20;
const SEGMENT: u64 = 64 << 10;

#[test]
fn results_are_due_for_what_was_sent() {
    let (mut core, mut wire) = (core(), Wire::default());
    assert_eq!(core.results_due(), (0, 0));
    let mut sent = VecDeque::from(stream(&mut core, &mut wire, 0));
    let mut left = VECTOR;
    while let Some(segment) = sent.pop_front() {
        assert_eq!(core.results_due(), (left.min(u64::from(FLIGHT) * SEGMENT), left));
        answer(&mut core, &mut wire, &segment);
        sent.extend(wire.segments());
        left -= SEGMENT;
    }
    assert_eq!((core.results_due(), left), ((0, 0), 0));
}

#[test]
fn with_several_groups_the_least_is_due() {
    let (mut core, mut wire) = (core(), Wire::default());
    stream(&mut core, &mut wire, 0);
    stream(&mut core, &mut wire, 1);
    assert_eq!(core.results_due(), (u64::from(FLIGHT) / 2 * SEGMENT, VECTOR));
}

#[test]
fn who_waits_for_a_word_of_the_nodes_sleeps_for_no_results() {
    let (mut core, mut wire) = (core(), Wire::default());
    stream(&mut core, &mut wire, 0);
    // One group is in the making, and one asks for the lock.
    ask(&mut core, &mut wire, 1);
    assert_eq!(core.results_due(), (0, 0));
    grant(&mut core, &mut wire, 1);
    assert_ne!(core.results_due(), (0, 0));
    let id = core.next_group();
    let group = NewGroup { members: RankList::world(2), tag: 9, name: GroupName::default(), companion: false };
    core.create_group(id, group, &mut wire).unwrap();
    assert_eq!(core.results_due(), (0, 0));
    let ready = Body::Ready(GroupKey { tag: 9, creation: 0, members: RankList::world(2) }, Marks::default());
    core.on_frame(NOW, Path::Stream, &from_node(2, Kind::Ready), ready, &mut wire);
    assert_ne!(core.results_due(), (0, 0));
    // One group gives the lock back.
    let revoke = Header { seq: 1, ..from_node(0, Kind::Revoke) };
    core.on_frame(NOW, Path::Stream, &revoke, Body::None, &mut wire);
    assert_eq!(core.results_due(), (0, 0));
}

#[test]
fn a_lease_that_no_operation_uses_may_be_revoked() {
    let (mut core, mut wire) = (core(), Wire::default());
    assert!(!core.may_be_revoked());
    let mut sent = VecDeque::from(stream(&mut core, &mut wire, 0));
    while let Some(segment) = sent.pop_front() {
        assert!(!core.may_be_revoked(), "results come, so somebody looks at the stream");
        answer(&mut core, &mut wire, &segment);
        sent.extend(wire.segments());
    }
    assert!(core.may_be_revoked());
    ask(&mut core, &mut wire, 1);
    assert!(!core.may_be_revoked(), "a grant comes, so somebody looks at the stream");
    grant(&mut core, &mut wire, 1);
    let lost = from_node(1, Kind::GroupError);
    let reason = trib_wire::Reason::MemberDead;
    let fault = Fault { reason, node: NodeId(2), rank_a: Rank(1), rank_b: Rank(1), signatures: None };
    core.on_frame(NOW, Path::Stream, &lost, Body::GroupError(fault), &mut wire);
    assert!(core.may_be_revoked());
    let revoke = Header { seq: 1, ..from_node(0, Kind::Revoke) };
    core.on_frame(NOW, Path::Stream, &revoke, Body::None, &mut wire);
    assert!(!core.may_be_revoked());
}

#[test]
fn the_word_how_far_a_rank_has_got_stays_behind_its_segments() {
    let (mut core, mut wire) = (core(), Wire::default());
    stream(&mut core, &mut wire, 0);
    let revoke = Header { seq: 1, ..from_node(0, Kind::Revoke) };
    core.on_frame(NOW, Path::Stream, &revoke, Body::None, &mut wire);
    let stops: Vec<Header> = wire.0.drain(..).filter(|header| header.kind == Kind::StopAt).collect();
    assert_eq!(stops.iter().map(|stop| stop.flags & FLAG_IN_TURN).collect::<Vec<_>>(), [FLAG_IN_TURN]);
}

#[test]
fn only_frames_of_its_epoch_keep_a_rank_from_missing_its_node() {
    for (epoch, is_missed) in [(Epoch(1), false), (Epoch(0), true)] {
        let (mut core, mut wire) = (core_with_room(Some(1 << 20)), Wire::default());
        core.on_link_up(NOW, Epoch(1), &mut wire);
        let end = NOW + Nanos::from_millis(120_000);
        while !core.is_detached() && core.next_deadline() < end {
            let now = core.next_deadline();
            let beat = Header::new(Kind::Heartbeat, JobId(1), epoch, NodeId(2), ChildIndex(0));
            core.on_frame(now, Path::Stream, &beat, Body::None, &mut wire);
            core.on_timer(now, &mut wire);
        }
        assert_eq!(core.is_detached(), is_missed, "frames of epoch {}", epoch.0);
    }
}

#[test]
fn of_what_was_given_up_nothing_is_sent_when_there_is_room_again() {
    let (mut core, mut wire) = (core_with_room(Some(1 << 30)), Wire::default());
    core.on_link_up(NOW, Epoch(1), &mut wire);
    let first = stream(&mut core, &mut wire, 0);
    let first = answer_all(&mut core, &mut wire, first);
    let (group, post) =
        (GroupId(0), Post { id: core.next_op(), number: None, signature: first[0].signature, stretch_of: 0 });
    core.post(NOW, group, &post, &mut wire).unwrap();
    // In another epoch the first operation is given again, and the second one is given up.
    let next = |header: Header| Header { epoch: Epoch(2), ..header };
    core.on_link_down(&mut wire);
    core.on_link_up(NOW, Epoch(2), &mut wire);
    let key = GroupKey { tag: 0, creation: 0, members: RankList::world(2) };
    let ready = next(from_node(0, Kind::Ready));
    core.on_frame(NOW, Path::Stream, &ready, Body::Ready(key, Marks::default()), &mut wire);
    wire.segments();
    let grant = next(Header { seq: 1, ..from_node(0, Kind::Grant) });
    core.on_frame(NOW, Path::Stream, &grant, Body::None, &mut wire);
    core.free_group(NOW, group, &mut wire);
    let replayed = wire.segments();
    let replayed = answer_all(&mut core, &mut wire, replayed);
    let numbers = |segments: &[Header]| segments.iter().map(|segment| segment.seq).collect::<Vec<_>>();
    assert_eq!(numbers(&replayed), numbers(&first));
}

/// The node answers these segments, and those that the rank sends then. Returns all of them.
fn answer_all(core: &mut LeafCore, wire: &mut Wire, mut segments: Vec<Header>) -> Vec<Header> {
    let mut answered = 0;
    while let Some(segment) = segments.get(answered).copied() {
        answer(core, wire, &segment);
        segments.append(&mut wire.segments());
        answered += 1;
    }
    segments
}
