//! Ranks tell their nodes for which others they wait at a board.

use trib_messages::explanation::GroupPart;
use trib_messages::policy::Recovery;
use trib_proto::leaf::{GroupId, Standstill};
use trib_proto::node;
use trib_proto::{Nanos, Path};
use trib_wire::body::{Fault, Reason};
use trib_wire::{Body, ChildIndex, Collective, Epoch, GroupKey, Header, JobId, Kind, Marks, NodeId, Rank, RankList};

use crate::parts::{EPOCH, End, Leaf, Node, RANKS, create, leaf, limits, nodes, signature};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// All ranks in one group of which each has told that it has a board.
fn founded() -> (Vec<Leaf>, Vec<Node>, Vec<GroupId>) {
    let mut leaves: Vec<Leaf> = (0..RANKS).map(|rank| leaf(rank, limits(1, 0), Recovery::Notify)).collect();
    let mut nodes = nodes(limits(1, 0), EPOCH, Recovery::Notify);
    let make = |leaf: &mut Leaf| create(&mut leaf.core, RankList::world(RANKS), 0, &mut leaf.memory);
    let groups: Vec<GroupId> = leaves.iter_mut().map(make).collect();
    run(&mut leaves, &mut nodes, ms(0));
    for (leaf, group) in leaves.iter_mut().zip(&groups) {
        leaf.core.tell_of_board(ms(0), *group, None, &mut leaf.memory);
    }
    run(&mut leaves, &mut nodes, ms(0));
    (leaves, nodes, groups)
}

fn run(leaves: &mut [Leaf], nodes: &mut [Node], now: Nanos) {
    loop {
        let mut frames: Vec<_> = leaves.iter_mut().flat_map(|leaf| leaf.memory.sent.drain(..)).collect();
        frames.extend(nodes.iter_mut().flat_map(|node| node.memory.sent.drain(..)));
        if frames.is_empty() {
            return;
        }
        for frame in frames {
            match frame.to {
                End::Leaf(rank) => {
                    let Leaf { core, memory } = &mut leaves[rank as usize];
                    core.on_frame(now, frame.path, &frame.header, frame.body, memory);
                }
                End::Node(id, link) => {
                    let Node { core, memory } = &mut nodes[usize::from(id)];
                    let frame = node::Frame { path: frame.path, header: &frame.header, body: &frame.body, data: None };
                    core.on_frame(now, link, frame, memory);
                }
            }
        }
    }
}

fn waits(operation: u64, since: Nanos, late: &[u32]) -> Option<Standstill> {
    let signature = signature(Collective::Allreduce, 9, 0);
    Some(Standstill { operation, signature, since, late: Standstill::late(late.to_vec()) })
}

/// The group, as a node explains it.
fn group(node: &Node, now: Nanos) -> GroupPart {
    node.core.explain(now, 64, None).groups.remove(0)
}

/// Which ranks are late, at which operation and for how long.
fn late(node: &Node, now: Nanos) -> Vec<(u16, u32, u32, u64, Option<u64>)> {
    let late = group(node, now).late;
    late.into_iter().map(|late| (late.child.0, late.rank.0, late.ranks, late.operation, late.waited_ms)).collect()
}

#[test]
fn every_node_of_a_group_knows_who_is_late_below_it_and_no_longer_when_it_has_come() {
    let (mut leaves, mut nodes, groups) = founded();
    let tell = |leaves: &mut Vec<Leaf>, rank: usize, now, standstill| {
        let Leaf { core, memory } = &mut leaves[rank];
        core.tell_of_board(now, groups[rank], standstill, memory);
    };
    assert!(nodes.iter().all(|node| group(node, ms(1)).board && late(node, ms(1)).is_empty()));
    // Rank 4 hangs below node 2, and nobody else there waits.
    tell(&mut leaves, 1, ms(150), waits(7, ms(50), &[4]));
    run(&mut leaves, &mut nodes, ms(150));
    let now = ms(250);
    assert_eq!(late(&nodes[0], now), [(1, 4, 1, 7, Some(200))], "by its name, though a node is between");
    assert_eq!((late(&nodes[1], now), late(&nodes[2], now)), (vec![], vec![]));
    assert!(group(&nodes[0], now).late[0].what.starts_with("allreduce of 9 "));
    tell(&mut leaves, 5, now, waits(7, ms(60), &[4, 3]));
    run(&mut leaves, &mut nodes, now);
    assert_eq!(late(&nodes[2], now), [(0, 3, 1, 7, Some(190)), (1, 4, 1, 7, Some(190))]);
    for rank in [1, 5] {
        tell(&mut leaves, rank, now, None);
    }
    run(&mut leaves, &mut nodes, now);
    assert!(nodes.iter().all(|node| group(node, now).board && late(node, now).is_empty()));
}

#[test]
fn of_several_late_ranks_below_a_node_that_heard_nothing_none_is_accused_alone() {
    let (mut leaves, mut nodes, groups) = founded();
    let Leaf { core, memory } = &mut leaves[0];
    core.tell_of_board(ms(150), groups[0], waits(2, ms(50), &[3, 5]), memory);
    run(&mut leaves, &mut nodes, ms(150));
    assert_eq!(late(&nodes[0], ms(150)), [(1, 3, 3, 2, Some(100))]);
}

#[test]
fn a_frame_names_the_lowest_of_many() {
    let all = Standstill::late((0..50).rev().collect());
    assert_eq!(all, RankList::from_ranks(0..16));
}

#[test]
fn who_waits_tells_a_new_node_too_and_nobody_after_it_has_left() {
    let mut leaf = leaf(0, limits(1, 0), Recovery::Retry);
    leaf.core.on_link_up(ms(0), EPOCH, &mut leaf.memory);
    let group = create(&mut leaf.core, RankList::world(RANKS), 0, &mut leaf.memory);
    leaf.core.tell_of_board(ms(100), group, waits(3, ms(40), &[2]), &mut leaf.memory);
    let told = |leaf: &mut Leaf| {
        let frames: Vec<_> = leaf.memory.sent.drain(..).filter(|frame| frame.header.kind == Kind::Late).collect();
        frames.into_iter().map(|frame| (frame.header.op_seq, frame.body)).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut leaf), [], "the node does not know the group yet");
    for (now, epoch) in [(ms(200), EPOCH), (ms(300), Epoch(EPOCH.0 + 1))] {
        if epoch != EPOCH {
            leaf.core.on_link_down(&mut leaf.memory);
            leaf.core.on_link_up(now, epoch, &mut leaf.memory);
        }
        let key = GroupKey { tag: 0, creation: 0, members: RankList::world(RANKS) };
        let header = Header::new(Kind::Ready, JobId(7), epoch, NodeId(1), ChildIndex(0));
        leaf.core.on_frame(now, Path::Stream, &header, Body::Ready(key, Marks::default()), &mut leaf.memory);
        let waited_ms = (now.0 - ms(40).0) as u32 / 1_000_000;
        let ranks = RankList::from_ranks([2]);
        assert_eq!(told(&mut leaf), [(3, Body::Late(trib_wire::body::Late { waited_ms, ranks }))]);
    }
    leaf.core.free_group(ms(400), group, &mut leaf.memory);
    leaf.core.tell_of_board(ms(400), group, None, &mut leaf.memory);
    assert_eq!(told(&mut leaf), []);
}

#[test]
fn a_member_that_has_left_accuses_nobody() {
    let (mut leaves, mut nodes, groups) = founded();
    let Leaf { core, memory } = &mut leaves[0];
    core.tell_of_board(ms(150), groups[0], waits(2, ms(50), &[1, 4]), memory);
    core.free_group(ms(151), groups[0], memory);
    run(&mut leaves, &mut nodes, ms(151));
    assert!(nodes.iter().all(|node| late(node, ms(151)).is_empty()));
}

#[test]
fn a_node_hears_with_heartbeats_how_much_is_done_over_boards_below_it() {
    let mut leaves: Vec<Leaf> = (0..RANKS).map(|rank| leaf(rank, limits(1, 0), Recovery::Notify)).collect();
    let mut nodes = nodes(limits(1, 0), EPOCH, Recovery::Notify);
    for Leaf { core, memory } in &mut leaves {
        core.on_link_up(ms(0), EPOCH, memory);
    }
    let done = |nodes: &[Node]| nodes.iter().map(|node| node.core.at_boards()).collect::<Vec<_>>();
    let beat = |leaves: &mut Vec<Leaf>, nodes: &mut Vec<Node>, rank: usize, operations: u64| {
        let Leaf { core, memory } = &mut leaves[rank];
        core.done_at_boards(operations);
        let due = core.next_judgement();
        core.on_timer(due, memory);
        run(leaves, nodes, due);
    };
    assert_eq!(done(&nodes), [0, 0, 0]);
    beat(&mut leaves, &mut nodes, 0, 7);
    let first = done(&nodes);
    assert_eq!(first.iter().sum::<u64>(), 7, "the node above it, and no other: {first:?}");
    beat(&mut leaves, &mut nodes, 0, 9);
    beat(&mut leaves, &mut nodes, 4, 5);
    let both = done(&nodes);
    assert_eq!(both.iter().sum::<u64>(), 9 + 5, "the last word of each counts: {both:?}");
}

/// Ranks 3 and 4 have called different operations.
fn disagreement() -> Fault {
    let signatures = Some((signature(Collective::Allreduce, 9, 0), signature(Collective::Allreduce, 8, 0)));
    Fault { reason: Reason::Mismatch, node: NodeId(0), rank_a: Rank(3), rank_b: Rank(4), signatures }
}

#[test]
fn what_a_rank_has_found_out_fails_the_group_at_all_ranks_with_that_cause() {
    let (mut leaves, mut nodes, groups) = founded();
    // Two tell it: the first counts.
    for (rank, fault) in [(3, disagreement()), (4, Fault { rank_a: Rank(5), ..disagreement() })] {
        let Leaf { core, memory } = &mut leaves[rank];
        core.report(ms(150), groups[rank], fault, memory);
        assert_eq!(core.fault_of(groups[rank]), Some(fault));
    }
    run(&mut leaves, &mut nodes, ms(150));
    for (rank, (leaf, group)) in leaves.iter().zip(&groups).enumerate().filter(|(rank, _)| *rank != 4) {
        assert_eq!(leaf.memory.failed, [(*group, disagreement())], "rank {rank}");
    }
    assert_eq!(leaves[4].memory.failed.len(), 1, "it knew another cause");
}

#[test]
fn what_is_found_out_while_the_node_makes_the_group_is_told_when_it_has() {
    let mut leaf = leaf(0, limits(1, 0), Recovery::Retry);
    leaf.core.on_link_up(ms(0), EPOCH, &mut leaf.memory);
    let group = create(&mut leaf.core, RankList::world(RANKS), 0, &mut leaf.memory);
    let ready = |leaf: &mut Leaf, epoch| {
        let key = GroupKey { tag: 0, creation: 0, members: RankList::world(RANKS) };
        let header = Header::new(Kind::Ready, JobId(7), epoch, NodeId(1), ChildIndex(0));
        leaf.core.on_frame(ms(300), Path::Stream, &header, Body::Ready(key, Marks::default()), &mut leaf.memory);
    };
    let told = |leaf: &mut Leaf| {
        let frames: Vec<_> = leaf.memory.sent.drain(..).map(|frame| frame.body).collect();
        let fault = |body| match body {
            Body::GroupError(fault) => Some(("reported", fault)),
            Body::Join { fault: Some(fault), .. } => Some(("joined", fault)),
            _ => None,
        };
        frames.into_iter().filter_map(fault).collect::<Vec<_>>()
    };
    ready(&mut leaf, EPOCH);
    // In another epoch it is told before the node has answered, in the next one with the question.
    let next = |by: u32| Epoch(EPOCH.0 + by);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.core.on_link_up(ms(100), next(1), &mut leaf.memory);
    leaf.core.report(ms(150), group, disagreement(), &mut leaf.memory);
    assert_eq!(leaf.memory.failed, [(group, disagreement())]);
    assert_eq!(told(&mut leaf), []);
    ready(&mut leaf, next(1));
    assert_eq!(told(&mut leaf), [("reported", disagreement())]);
    leaf.core.on_link_down(&mut leaf.memory);
    leaf.core.on_link_up(ms(400), next(2), &mut leaf.memory);
    assert_eq!(told(&mut leaf), [("joined", disagreement())]);
    ready(&mut leaf, next(2));
    assert_eq!(told(&mut leaf), [], "once");
}

#[test]
fn who_has_freed_a_group_that_failed_while_it_was_made_says_so_when_it_has_been() {
    for recovery in [Recovery::Notify, Recovery::Retry] {
        let mut leaf = leaf(0, limits(1, 0), recovery);
        leaf.core.on_link_up(ms(0), EPOCH, &mut leaf.memory);
        let group = create(&mut leaf.core, RankList::world(RANKS), 0, &mut leaf.memory);
        leaf.core.report(ms(150), group, disagreement(), &mut leaf.memory);
        leaf.core.free_group(ms(160), group, &mut leaf.memory);
        leaf.memory.sent.clear();
        let key = GroupKey { tag: 0, creation: 0, members: RankList::world(RANKS) };
        let header = Header::new(Kind::Ready, JobId(7), EPOCH, NodeId(1), ChildIndex(0));
        let body = Body::Ready(key, Marks::default());
        leaf.core.on_frame(ms(300), Path::Stream, &header, body, &mut leaf.memory);
        // Else the others wait for a member that never comes.
        let told = leaf.memory.sent.iter().map(|frame| frame.header.kind).next_back();
        assert_eq!(told, Some(Kind::Leave), "{recovery:?}");
    }
}
