//! One test for each arrow of the group's table.

use super::*;
use crate::node::harness::Bench;

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
