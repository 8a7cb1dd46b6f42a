//! One test for each arrow of the accumulator's table, and what the node does there.

use trib_wire::{Body, GroupIndex, GroupName, RankList, Standing};

use super::*;
use crate::node::harness::{BOTH, Bench, LIMITS, Log, Sent, bytes, config, data, key};
use crate::node::{Link, NodeCore};

fn contribute(bench: &mut Bench, streams: &mut Streams<Vec<u8>>, position: usize, seq: u64) {
    let header = bench.piece(Kind::Contribution, position, seq);
    let frame = data(Path::Stream, &header, position as u8 + 1);
    streams.on_contribution(&mut bench.at(), position, frame).expect("no fault");
}

/// Streams at a node to which both children have sent so many segments.
fn with_segments(bench: &mut Bench, segments: u64) -> Streams<Vec<u8>> {
    let mut streams = Streams::new(bench.identity(), &bench.info);
    for seq in 0..segments {
        contribute(bench, &mut streams, 0, seq);
        contribute(bench, &mut streams, 1, seq);
    }
    streams
}

/// So many segments that the parent's first credit does not cover the last one.
const BEYOND_CREDIT: u64 = LIMITS.staging as u64 + 1;

fn states(streams: &Streams<Vec<u8>>) -> Vec<State> {
    let accumulator = |slot| streams.accumulators.get(slot).and_then(Option::as_ref);
    (0..LIMITS.flight as usize).map(|slot| accumulator(slot).map_or(State::Free, |a| a.state)).collect()
}

fn up(seq: u64) -> Sent {
    Sent { target: Target::Parent, kind: Kind::Contribution, seq, bytes: bytes(1 + 2) }
}

/// The pieces among what was sent.
fn pieces(bench: &mut Bench) -> Vec<Sent> {
    bench.out.take_sent().into_iter().filter(|sent| sent.kind.carries_data()).collect()
}

#[test]
fn a_segment_of_one_child_is_staged() {
    let mut bench = Bench::below_a_parent();
    let mut streams = Streams::new(bench.identity(), &bench.info);
    contribute(&mut bench, &mut streams, 0, 0);
    assert_eq!(states(&streams), [State::Free; 3]);
    assert_eq!((pieces(&mut bench), streams.buffers_held()), (vec![], 1));
}

#[test]
fn a_fold_waits_for_the_parents_credit() {
    let mut bench = Bench::below_a_parent();
    let streams = with_segments(&mut bench, BEYOND_CREDIT);
    assert_eq!(states(&streams), [State::Sent, State::Sent, State::Folded]);
    assert_eq!((pieces(&mut bench), streams.buffers_held()), (vec![up(0), up(1)], 3));
}

#[test]
fn at_the_root_a_fold_is_the_result() {
    let mut bench = Bench::at_the_root();
    let streams = with_segments(&mut bench, 1);
    assert_eq!(states(&streams), [State::Result, State::Free, State::Free]);
    let down = Sent { target: Target::Children(BOTH), kind: Kind::Result, seq: 0, bytes: bytes(1 + 2) };
    assert_eq!((pieces(&mut bench), streams.buffers_held()), (vec![down], 1));
}

#[test]
fn credit_sends_an_aggregate_up() {
    let mut bench = Bench::below_a_parent();
    let mut streams = with_segments(&mut bench, BEYOND_CREDIT);
    pieces(&mut bench);
    streams.on_credit(&mut bench.at(), BEYOND_CREDIT);
    assert_eq!(states(&streams), [State::Sent; 3]);
    assert_eq!((pieces(&mut bench), streams.buffers_held()), (vec![up(2)], 3));
}

#[test]
fn the_result_from_above_takes_the_place_of_the_aggregate() {
    let mut bench = Bench::below_a_parent();
    let mut streams = with_segments(&mut bench, 1);
    pieces(&mut bench);
    let header = bench.piece(Kind::Result, 0, 0);
    streams.on_result(&mut bench.at(), data(Path::Stream, &header, 9)).expect("no fault");
    assert_eq!(states(&streams), [State::Result, State::Free, State::Free]);
    let down = Sent { target: Target::Children(BOTH), kind: Kind::Result, seq: 0, bytes: bytes(9) };
    assert_eq!((pieces(&mut bench), streams.buffers_held()), (vec![down], 1));
}

#[test]
fn an_accumulator_is_free_when_its_result_is_written_to_every_child() {
    let mut bench = Bench::at_the_root();
    let mut streams = with_segments(&mut bench, 1);
    streams.on_written(&mut bench.at(), ChildIndex(1), 0).expect("no fault");
    assert_eq!((states(&streams)[0], streams.buffers_held()), (State::Result, 1));
    streams.on_written(&mut bench.at(), ChildIndex(0), 0).expect("no fault");
    assert_eq!((states(&streams)[0], streams.buffers_held()), (State::Free, 0));
}

#[test]
fn a_lease_that_ends_earlier_rolls_back_what_waits_for_credit() {
    let mut bench = Bench::below_a_parent();
    let mut streams = with_segments(&mut bench, BEYOND_CREDIT);
    streams.roll_back(&mut bench.at(), BEYOND_CREDIT - 1);
    assert_eq!(states(&streams), [State::Sent, State::Sent, State::Free]);
    assert_eq!(streams.buffers_held(), 2);
}

#[test]
fn a_lease_that_ends_earlier_rolls_back_what_is_on_its_way_up() {
    let mut bench = Bench::below_a_parent();
    let mut streams = with_segments(&mut bench, 2);
    contribute(&mut bench, &mut streams, 0, 2);
    streams.roll_back(&mut bench.at(), 1);
    assert_eq!(states(&streams), [State::Sent, State::Free, State::Free]);
    assert_eq!(streams.buffers_held(), 1, "what was staged is gone too");
}

#[test]
fn after_a_stop_nothing_goes_up_until_the_end_is_known() {
    let mut bench = Bench::below_a_parent();
    let mut streams = with_segments(&mut bench, BEYOND_CREDIT);
    bench.out.take_sent();
    streams.fall_silent();
    streams.on_credit(&mut bench.at(), BEYOND_CREDIT);
    assert_eq!(pieces(&mut bench), []);
    streams.roll_back(&mut bench.at(), BEYOND_CREDIT);
    assert_eq!(pieces(&mut bench), [up(BEYOND_CREDIT - 1)]);
}

#[test]
fn a_roll_back_takes_the_credit_for_what_it_drops_back() {
    let mut bench = Bench::below_a_parent();
    let mut streams = with_segments(&mut bench, 1);
    streams.on_credit(&mut bench.at(), 100);
    streams.roll_back(&mut bench.at(), 0);
    bench.out.take_sent();
    for seq in 0..BEYOND_CREDIT {
        contribute(&mut bench, &mut streams, 0, seq);
        contribute(&mut bench, &mut streams, 1, seq);
    }
    assert_eq!(pieces(&mut bench), [up(0), up(1)]);
}

/// The segments for which there is room, and the accumulators.
fn room(streams: &Streams<Vec<u8>>) -> (usize, usize) {
    (streams.staged.iter().map(VecDeque::capacity).sum(), streams.accumulators.capacity())
}

/// A frame of a group from both children of the root of the tree.
fn bring(core: &mut NodeCore<Vec<u8>>, out: &mut Log, (kind, seq): (Kind, u64), body: &Body) {
    let bench = Bench::at_the_root();
    for position in 0..2 {
        let header = &Header { flags: FLAG_STREAM, ..bench.piece(kind, position, seq) };
        let data = kind.carries_data().then(|| bytes(1));
        let link = Link::Child(ChildIndex(position as u16));
        core.on_frame(Nanos(0), link, Frame { path: Path::Stream, header, body, data }, out);
    }
}

#[test]
fn a_group_has_room_for_segments_only_while_it_streams() {
    let (mut core, mut out) = (NodeCore::new(config(None)), Log::default());
    let (nodes, name) = (RankList::EMPTY, GroupName::default());
    let join = Body::Join { key: key(), fault: None, standing: Standing::NEW, nodes, name };
    let room_now = |core: &NodeCore<Vec<u8>>| core.table.get(GroupIndex(0))?.streams.as_deref().map(room);
    bring(&mut core, &mut out, (Kind::Join, 0), &join);
    bring(&mut core, &mut out, (Kind::Mark, 0), &Body::None);
    assert_eq!(room_now(&core), Some((0, 0)), "marks need none");
    bring(&mut core, &mut out, (Kind::Intent, 1), &Body::None);
    bring(&mut core, &mut out, (Kind::Contribution, 0), &Body::None);
    assert!(room_now(&core).is_some_and(|(segments, accumulators)| segments > 0 && accumulators > 0));
    let result = Header { flags: FLAG_STREAM, ..Bench::at_the_root().piece(Kind::Result, 0, 0) };
    (0..2).for_each(|child| core.on_written(Nanos(0), ChildIndex(child), &result, &mut out));
    assert_eq!(core.streams_held(), 1);
    bring(&mut core, &mut out, (Kind::StopAt, 1), &Body::None);
    assert_eq!((core.streams_held(), room_now(&core)), (0, Some((0, 0))), "the lease is over");
}
