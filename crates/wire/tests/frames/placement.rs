//! Placements meet in one, whatever way the news take.

use proptest::prelude::*;
use trib_wire::{Epoch, NodeId, Placement};

use crate::generate::placement;

proptest! {
    #[test]
    fn the_order_in_which_placements_meet_does_not_matter(a in placement(), b in placement(), c in placement()) {
        prop_assert_eq!(a.with(&b), b.with(&a));
        prop_assert_eq!(a.with(&b).with(&c), a.with(&b.with(&c)));
        prop_assert_eq!(a.with(&a), a.clone());
        prop_assert!(a.with(&b).covers(&a) && a.with(&b).covers(&b));
        prop_assert_eq!(a.covers(&b), a.with(&b) == a);
    }

    #[test]
    fn a_placement_that_knows_more_has_a_higher_epoch(a in placement(), b in placement(), node in 0u16..8) {
        let (both, first) = (a.with(&b), Epoch(3));
        prop_assert_eq!(both == a, both.epoch(first) == a.epoch(first));
        let next = a.without(NodeId(node));
        prop_assert_eq!(next.epoch(first), Epoch(a.epoch(first).0 + 1));
        prop_assert_eq!(next.moves_of(NodeId(node)), a.moves_of(NodeId(node)) + 1);
        // Two neighbours that find the same node dead say the same.
        prop_assert_eq!(a.without(NodeId(node)).with(&a.without(NodeId(node))), next);
    }
}

#[test]
fn a_node_comes_back_to_its_first_candidate_behind_the_last() {
    let once = Placement::FIRST.without(NodeId(4));
    assert_eq!((once.candidate(NodeId(4), 2), once.candidate(NodeId(3), 2)), (1, 0));
    assert_eq!(once.without(NodeId(4)).candidate(NodeId(4), 2), 0);
}
