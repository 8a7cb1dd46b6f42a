//! One test for each arrow of the group's table.

use super::*;
use crate::node::harness::{Bench, Log};
use trib_wire::Reason;

fn group() -> Group<Vec<u8>> {
    Group::new(Bench::at_the_root().info)
}

#[test]
fn a_live_group_fails_once() {
    let mut group = group();
    assert!(!group.has_failed());
    assert!(group.fail());
    assert!(group.has_failed());
    assert!(!group.fail());
}

#[test]
fn a_live_group_is_gone_when_all_have_left() {
    let mut group = group();
    group.left = 0b01;
    assert!(!group.is_gone());
    group.left = 0b11;
    assert!(group.is_gone());
    assert!(!group.fail(), "nobody is left to be told");
}

#[test]
fn a_failed_group_is_gone_when_all_have_left() {
    let mut group = group();
    group.fail();
    assert!(!group.is_gone());
    group.left = 0b11;
    assert!(group.is_gone());
}

#[test]
fn an_operation_that_one_member_streams_and_another_does_not_is_found_whatever_else_is_streamed() {
    let bench = Bench::at_the_root();
    let (streams, datagram) =
        (|kind, operation| bench.piece(kind, 0, operation), bench.piece(Kind::Contribution, 1, 4));
    // The lock is asked for again while segments of the lease before are on their way; and after
    // the end of a lease, for an operation of which later ones have been streamed.
    for streamed in [3, 5] {
        for order in
            [[(Kind::Intent, 4), (Kind::Contribution, streamed)], [(Kind::Contribution, streamed), (Kind::Intent, 4)]]
        {
            let mut group = group();
            for (kind, operation) in order {
                assert_eq!(group.announce(bench.identity(), 0, &streams(kind, operation)), Ok(()));
            }
            let found = group.check_begun(bench.identity(), &datagram).map_err(|fault| fault.reason);
            assert_eq!(found, Err(Reason::Mismatch), "{order:?}");
        }
    }
}

#[test]
fn those_that_have_left_hear_when_nothing_of_a_failed_group_is_needed_any_more() {
    let (bench, mut out) = (Bench::at_the_root(), Log::default());
    let mut group = group();
    group.left = 0b10;
    group.fail();
    group.release_those_that_left(bench.identity(), &mut out);
    let told: Vec<_> = out.take_sent().into_iter().map(|sent| (sent.target, sent.kind)).collect();
    assert_eq!(told, [(Target::Children(0b10), Kind::Mark); 2], "of fragments and of segments");
}
