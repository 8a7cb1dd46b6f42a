//! Placements meet in one, whatever way the news take.

use proptest::prelude::*;
use trib_wire::hello::{Hello, parse_placement, placement_entries_len, placement_to_bytes};
use trib_wire::placement::MOVED_MAX;
use trib_wire::{Body, ChildIndex, Epoch, JobId, Kind, Mode, NodeId, Placement};

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

#[test]
fn all_nodes_of_the_largest_tree_may_have_moved() {
    for nodes in [1_025, MOVED_MAX as u16] {
        let entries = (0..nodes).flat_map(|node| [node.to_le_bytes(), 1u16.to_le_bytes()].concat());
        let bytes: Vec<u8> = nodes.to_le_bytes().into_iter().chain(entries).collect();
        let moved = parse_placement(&bytes).unwrap();
        assert_eq!(placement_to_bytes(&moved), bytes);
        assert_eq!(placement_entries_len([bytes[0], bytes[1]]), bytes.len() - 2);
        assert_eq!(moved.epoch(Epoch(1)), Epoch(1 + u32::from(nodes)));

        let hello = Hello {
            job: JobId(1),
            epoch: moved.epoch(Epoch(1)),
            node: NodeId(0),
            child: ChildIndex(0),
            channel: 0,
            mode: Mode::Checked,
            udp_port: 9,
            nonce: [7; 16],
            placement: moved.clone(),
        };
        let bytes = hello.to_bytes();
        assert_eq!(Hello::len_of(bytes.first_chunk().unwrap()), Ok(bytes.len()));
        assert_eq!(Hello::parse(&bytes), Ok(hello));

        let body = Body::Move(moved);
        assert_eq!(Body::parse(Kind::Move, &body.to_bytes()), Ok(body));
    }
}
