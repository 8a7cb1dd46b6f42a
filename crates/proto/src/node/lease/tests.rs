//! One test for each arrow of the lease's table, and what the node does there.

use super::*;
use crate::node::harness::{BOTH, Bench, Sent};

fn granted(bench: &mut Bench) -> Lease {
    let mut lease = Lease::default();
    lease.grant(&mut bench.at());
    lease
}

/// A lease of whose children one has come to segment 5 and the other to segment 3.
fn stopping(bench: &mut Bench) -> Lease {
    let mut lease = granted(bench);
    assert_eq!(lease.on_stop(&bench.at(), 0, 5, 0), Ok(Step::Nothing));
    assert_eq!(lease.on_stop(&bench.at(), 1, 3, 0), Ok(Step::Stop { end: 3 }));
    lease
}

fn ending(bench: &mut Bench) -> Lease {
    let mut lease = stopping(bench);
    assert!(lease.end(&mut bench.at(), 3));
    lease
}

fn to_both(kind: Kind, seq: u64) -> Vec<Sent> {
    vec![Sent { target: Target::Children(BOTH), kind, seq, bytes: Vec::new() }]
}

#[test]
fn a_grant_is_passed_to_the_children() {
    let mut bench = Bench::at_the_root();
    let lease = granted(&mut bench);
    assert_eq!((lease.phase, bench.out.take_sent()), (Phase::Granted, to_both(Kind::Grant, 1)));
    assert!(lease.covers(u64::MAX));
}

#[test]
fn a_second_grant_is_a_violation() {
    let mut bench = Bench::at_the_root();
    let mut lease = granted(&mut bench);
    lease.grant(&mut bench.at());
    assert_eq!((lease.current(), bench.out.notes), (1, vec![Note::Violation]));
}

#[test]
fn a_revocation_is_passed_to_the_children() {
    let mut bench = Bench::at_the_root();
    let lease = granted(&mut bench);
    bench.out.take_sent();
    lease.revoke(&mut bench.at());
    assert_eq!((lease.phase, bench.out.take_sent()), (Phase::Granted, to_both(Kind::Revoke, 1)));
}

#[test]
fn all_stops_together_say_where_the_lease_may_end() {
    let mut bench = Bench::at_the_root();
    let mut lease = stopping(&mut bench);
    assert_eq!(lease.phase, Phase::Stopping);
    assert!(lease.on_stop(&bench.at(), 0, 9, 0).is_err(), "it has said so already");
}

#[test]
fn the_word_how_far_all_have_got_stays_behind_the_segments() {
    let mut bench = Bench::below_a_parent();
    let lease = stopping(&mut bench);
    lease.send_stop_up(&mut bench.at());
    assert_eq!(bench.out.in_turn, [Kind::StopAt]);
}

#[test]
fn a_revocation_may_cross_the_stops() {
    let mut bench = Bench::at_the_root();
    let lease = stopping(&mut bench);
    bench.out.take_sent();
    lease.revoke(&mut bench.at());
    assert_eq!((lease.phase, bench.out.take_sent()), (Phase::Stopping, to_both(Kind::Revoke, 1)));
}

#[test]
fn the_end_is_passed_to_the_children() {
    let mut bench = Bench::at_the_root();
    let mut lease = stopping(&mut bench);
    bench.out.take_sent();
    assert!(lease.end(&mut bench.at(), 3));
    assert_eq!((lease.phase, bench.out.take_sent()), (Phase::Ending, to_both(Kind::LeaseEnd, 3)));
    assert!(lease.covers(2) && !lease.covers(3));
}

#[test]
fn a_lease_that_has_not_stopped_does_not_end() {
    let mut bench = Bench::at_the_root();
    let mut lease = granted(&mut bench);
    assert!(!lease.end(&mut bench.at(), 3));
    assert_eq!(lease.phase, Phase::Granted);
}

#[test]
fn the_context_is_free_when_all_before_the_end_has_drained() {
    let mut bench = Bench::at_the_root();
    let mut lease = ending(&mut bench);
    assert_eq!(lease.try_release(&bench.info, 0, |_| false), Step::Nothing);
    assert_eq!(lease.phase, Phase::Ending);
    assert_eq!(lease.try_release(&bench.info, 0, |end| end == 3), Step::Released);
    assert!(!lease.holds_context());
}
