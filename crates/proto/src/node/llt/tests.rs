//! One test for each arrow of the slot's table, and what the node does there.

use super::*;
use crate::node::harness::{BOTH, Bench, Sent, bytes, data};

fn contribute(bench: &mut Bench, datagrams: &mut Datagrams<Vec<u8>>, position: usize, seq: u64) -> bool {
    let header = bench.piece(Kind::Contribution, position, seq);
    let frame = data(Path::Datagram, &header, position as u8 + 1);
    datagrams.on_contribution(&mut bench.at(), position, frame).expect("no fault")
}

/// A fragment to which both children have contributed.
fn complete(bench: &mut Bench, datagrams: &mut Datagrams<Vec<u8>>, seq: u64) {
    assert!(contribute(bench, datagrams, 0, seq));
    assert!(!contribute(bench, datagrams, 1, seq));
}

fn states(datagrams: &Datagrams<Vec<u8>>) -> [(State, u64); 2] {
    [0, 1].map(|slot: usize| (datagrams.records[slot].state, datagrams.records[slot].head.seq))
}

#[test]
fn the_first_contribution_opens_an_empty_slot() {
    let mut bench = Bench::at_the_root();
    let mut datagrams = Datagrams::new(bench.identity(), &bench.info);
    assert!(contribute(&mut bench, &mut datagrams, 1, 0));
    assert_eq!(states(&datagrams), [(State::Filling, 0), (State::Empty, 0)]);
    assert_eq!((bench.out.take_sent(), datagrams.buffers_held()), (vec![], 1));
}

#[test]
fn the_last_contribution_sends_the_aggregate_up() {
    let mut bench = Bench::below_a_parent();
    let mut datagrams = Datagrams::new(bench.identity(), &bench.info);
    complete(&mut bench, &mut datagrams, 0);
    assert_eq!(states(&datagrams)[0], (State::Sent, 0));
    let up = Sent { target: Target::Parent, kind: Kind::Contribution, seq: 0, bytes: bytes(1 + 2) };
    assert_eq!((bench.out.take_sent(), datagrams.buffers_held()), (vec![up], 1));
}

#[test]
fn at_the_root_the_last_contribution_makes_the_result() {
    let mut bench = Bench::at_the_root();
    let mut datagrams = Datagrams::new(bench.identity(), &bench.info);
    complete(&mut bench, &mut datagrams, 0);
    assert_eq!(states(&datagrams)[0], (State::Done, 0));
    let down = Sent { target: Target::Children(BOTH), kind: Kind::Result, seq: 0, bytes: bytes(1 + 2) };
    assert_eq!((bench.out.take_sent(), datagrams.buffers_held()), (vec![down], 1));
}

#[test]
fn the_result_from_above_takes_the_place_of_the_aggregate() {
    let mut bench = Bench::below_a_parent();
    let mut datagrams = Datagrams::new(bench.identity(), &bench.info);
    complete(&mut bench, &mut datagrams, 0);
    bench.out.take_sent();
    let header = bench.piece(Kind::Result, 0, 0);
    datagrams.on_result(&mut bench.at(), data(Path::Datagram, &header, 9));
    assert_eq!(states(&datagrams)[0], (State::Done, 0));
    let down = Sent { target: Target::Children(BOTH), kind: Kind::Result, seq: 0, bytes: bytes(9) };
    assert_eq!((bench.out.take_sent(), datagrams.buffers_held()), (vec![down], 1));
}

#[test]
fn a_result_that_comes_before_the_last_contribution_changes_nothing() {
    let mut bench = Bench::below_a_parent();
    let mut datagrams = Datagrams::new(bench.identity(), &bench.info);
    contribute(&mut bench, &mut datagrams, 0, 0);
    let header = bench.piece(Kind::Result, 0, 0);
    datagrams.on_result(&mut bench.at(), data(Path::Datagram, &header, 9));
    assert_eq!(states(&datagrams)[0], (State::Filling, 0));
    assert_eq!((bench.out.notes, datagrams.buffers_held()), (vec![Note::Violation], 1));
}

#[test]
fn a_result_makes_room_for_the_fragment_two_windows_later() {
    let mut bench = Bench::at_the_root();
    let mut datagrams = Datagrams::new(bench.identity(), &bench.info);
    complete(&mut bench, &mut datagrams, 0);
    complete(&mut bench, &mut datagrams, 1);
    assert_eq!(datagrams.buffers_held(), 2, "the results of both banks");
    assert!(contribute(&mut bench, &mut datagrams, 0, 2));
    assert_eq!(states(&datagrams), [(State::Filling, 2), (State::Done, 1)]);
    assert_eq!(datagrams.buffers_held(), 2, "a result and a contribution");
}
