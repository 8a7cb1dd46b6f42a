//! The core over a perfect network with real bytes: every collective, both protocols, whole and
//! partial groups.

use std::collections::VecDeque;

use trib_messages::explanation::GroupPart;
use trib_messages::policy::Recovery;
use trib_proto::leaf::{GroupId, OpId, Post};
use trib_proto::node::{self, Link, Stage};
use trib_proto::{Limits, Nanos, Path, window};
use trib_wire::{ChildIndex, Collective, DataType, Kind, Rank, RankList, ReduceOp, Signature};

use crate::parts::{
    EPOCH, End, Frame, Leaf, Node, RANKS, create, create_as, leaf, limits, nodes, received, signature, vector,
};

/// A tree of six ranks: root 0 has nodes 1 (ranks 0..3) and 2 (ranks 3..6).
struct World {
    leaves: Vec<Leaf>,
    nodes: Vec<Node>,
    wires: VecDeque<Frame>,
    /// The nodes' clock.
    now: Nanos,
    /// A rank that is stopped, so that nothing reaches it.
    deaf: Option<u32>,
}

impl World {
    fn new(streams: u32) -> World {
        World::with_leases(streams, 0)
    }

    fn with_leases(streams: u32, lease_operations: u32) -> World {
        World::with_limits(limits(streams, lease_operations))
    }

    fn with_limits(limits: Limits) -> World {
        let leaves = (0..RANKS).map(|rank| leaf(rank, limits, Recovery::Notify)).collect();
        World {
            leaves,
            nodes: nodes(limits, EPOCH, Recovery::Notify),
            wires: VecDeque::new(),
            now: Nanos(0),
            deaf: None,
        }
    }

    fn create(&mut self, members: &[u32], tag: u64) -> Vec<(u32, GroupId)> {
        self.create_as(false, members, tag)
    }

    /// Makes a group that may be made for another one.
    fn create_as(&mut self, companion: bool, members: &[u32], tag: u64) -> Vec<(u32, GroupId)> {
        let list = RankList::from_ranks(members.iter().copied());
        let ids = members
            .iter()
            .map(|&r| {
                let Leaf { core, memory } = &mut self.leaves[r as usize];
                (r, create_as(companion, core, (list.clone(), tag), memory))
            })
            .collect();
        self.run();
        ids
    }

    fn post(&mut self, rank: u32, group: GroupId, signature: Signature, vector: Vec<u8>) -> OpId {
        let Leaf { core, memory } = &mut self.leaves[rank as usize];
        let id = core.next_op();
        memory.inputs.insert(id, vector);
        core.post(Nanos(0), group, &Post { id, number: None, signature, stretch_of: 0 }, memory)
            .expect("the operation is valid");
        id
    }

    fn run(&mut self) {
        loop {
            for leaf in &mut self.leaves {
                self.wires.extend(leaf.memory.sent.drain(..));
            }
            for node in &mut self.nodes {
                self.wires.extend(node.memory.sent.drain(..));
                for (child, header) in std::mem::take(&mut node.memory.written) {
                    node.core.on_written(self.now, child, &header, &mut node.memory);
                }
            }
            let Some(frame) = self.wires.pop_front() else {
                if self.nodes.iter().all(|n| n.memory.sent.is_empty() && n.memory.written.is_empty()) {
                    return;
                }
                continue;
            };
            match frame.to {
                End::Leaf(rank) if self.deaf == Some(rank) => {}
                End::Leaf(rank) => {
                    let Leaf { core, memory } = &mut self.leaves[rank as usize];
                    let destination = core.destination(&frame.header);
                    assert_eq!(destination.is_some(), !frame.data.is_empty() && frame.header.kind == Kind::Result);
                    memory.incoming = frame.data;
                    core.on_frame(Nanos(0), frame.path, &frame.header, frame.body, memory);
                }
                End::Node(id, link) => {
                    let Node { core, memory } = &mut self.nodes[usize::from(id)];
                    let data = (!frame.data.is_empty()).then_some(frame.data);
                    let frame = node::Frame { path: frame.path, header: &frame.header, body: &frame.body, data };
                    core.on_frame(self.now, link, frame, memory);
                }
            }
        }
    }

    fn check_empty(&self) {
        for node in &self.nodes {
            assert_eq!(node.core.groups(), 0, "groups left at node {}", node.memory.node);
            assert_eq!(node.core.buffers_held(), (0, 0), "buffers left at node {}", node.memory.node);
            assert_eq!(node.core.streams_held(), 0);
        }
    }
}

/// Posts one operation on every member, runs it, and compares each rank's bytes with a plain
/// computation.
fn check(world: &mut World, group: &[(u32, GroupId)], signature: Signature, salt: u64) {
    let size = group.len() as u32;
    let element = signature.dtype.size();
    let total = window::vector_bytes(&signature, size).expect("short vectors");
    let ops: Vec<OpId> =
        group.iter().map(|&(rank, id)| world.post(rank, id, signature, vector(rank, total, salt))).collect();
    world.run();
    let mut expected = vec![0u8; total as usize];
    for (position, &(rank, _)) in group.iter().enumerate() {
        let given = window::given(&signature, size, position as u32);
        let input = vector(rank, total, salt);
        for at in given.start as usize * element..given.end as usize * element {
            expected[at] = expected[at].wrapping_add(input[at]);
        }
    }
    for (position, (&(rank, _), op)) in group.iter().zip(&ops).enumerate() {
        let memory = &world.leaves[rank as usize].memory;
        let outcome = memory.done.get(op).unwrap_or_else(|| panic!("{signature}: rank {rank} hangs"));
        assert!(outcome.is_ok(), "{signature}: rank {rank}: {outcome:?}");
        let gotten = window::gotten(&signature, size, position as u32);
        let bytes = received(memory.results.get(op), &signature, (size, position as u32), &expected);
        assert_eq!(
            bytes,
            expected[gotten.start as usize * element..gotten.end as usize * element],
            "{signature}: rank {rank}"
        );
    }
}

/// The same with elements of 12 bytes, which the driver takes for bytes as it takes all.
fn of_pairs(collective: Collective, count: u64, root: u32) -> Signature {
    let pair = DataType::from_name("float64:int32").expect("a type of this name");
    let op = if collective.computes() { ReduceOp::MaxLoc } else { ReduceOp::BitOr };
    Signature { dtype: pair, op, ..signature(collective, count, root) }
}

#[test]
fn every_collective_on_every_kind_of_group() {
    for (streams, lease_operations) in [(1, 0), (2, 0), (1, 1), (2, 3)] {
        let mut world = World::with_leases(streams, lease_operations);
        let groups: Vec<_> = [&[0u32, 1, 2, 3, 4, 5][..], &[5, 4, 3, 2, 1, 0], &[0, 3], &[1, 2], &[4], &[2, 5, 0]]
            .iter()
            .enumerate()
            .map(|(tag, members)| world.create(members, tag as u64))
            .collect();
        let mut salt = 0;
        for group in &groups {
            for &collective in Collective::ALL {
                for count in [0u64, 1, 7, 16, 100, 333, 1000] {
                    salt += 1;
                    let root = salt as u32 % group.len() as u32;
                    let count = if collective == Collective::Barrier { 0 } else { count };
                    check(&mut world, group, signature(collective, count, root), salt);
                    // One of these is as much as fits into a piece of these limits.
                    check(&mut world, group, of_pairs(collective, count / 8, root), salt);
                }
            }
        }
        for (rank, id) in groups.into_iter().flatten() {
            let Leaf { core, memory } = &mut world.leaves[rank as usize];
            core.free_group(Nanos(0), id, memory);
        }
        world.run();
        world.check_empty();
    }
}

#[test]
fn streaming_groups_posted_in_crossing_order_share_one_context() {
    let mut world = World::new(1);
    let a = world.create(&[0, 1, 2, 3, 4, 5], 0);
    let b = world.create(&[5, 4, 3, 2, 1, 0], 0);
    let s = signature(Collective::Allreduce, 999, 0);
    let mut ops = Vec::new();
    for rank in 0..RANKS {
        let of = |g: &[(u32, GroupId)]| g.iter().find(|(r, _)| *r == rank).expect("member").1;
        let order = if rank % 2 == 0 { [of(&a), of(&b)] } else { [of(&b), of(&a)] };
        for (i, group) in order.into_iter().enumerate() {
            ops.push((rank, world.post(rank, group, s, vector(rank, 999, i as u64))));
        }
    }
    world.run();
    for (rank, op) in ops {
        assert!(world.leaves[rank as usize].memory.done.get(&op).is_some_and(Result::is_ok), "rank {rank} {op:?}");
    }
}

#[test]
fn ranks_that_disagree_all_learn_two_names() {
    // Both go by datagram, both are streamed, or one of each.
    for (few, many) in [(8, 9), (500, 600), (8, 600)] {
        for odd in [0u32, 4] {
            let mut world = World::new(1);
            let group = world.create(&[0, 1, 2, 3, 4, 5], 0);
            for &(rank, id) in &group {
                let count = if rank == odd { many } else { few };
                world.post(rank, id, signature(Collective::Allreduce, count, 0), vector(rank, count, 0));
            }
            world.run();
            for leaf in &world.leaves {
                let [(_, fault)] = leaf.memory.failed.as_slice() else {
                    panic!("rank {} was not told ({few} against {many})", leaf.memory.rank)
                };
                assert_eq!(fault.reason, trib_wire::Reason::Mismatch);
                assert!(fault.rank_a.0 == odd || fault.rank_b.0 == odd, "{fault}");
                assert_ne!(fault.rank_a, fault.rank_b, "{fault}");
                assert!(leaf.memory.done.values().all(Result::is_err));
            }
            for &(rank, id) in &group {
                let Leaf { core, memory } = &mut world.leaves[rank as usize];
                core.free_group(Nanos(0), id, memory);
            }
            world.run();
            world.check_empty();
        }
    }
}

#[test]
fn a_dead_rank_fails_its_groups_and_no_others() {
    let mut world = World::new(2);
    let all = world.create(&[0, 1, 2, 3, 4, 5], 0);
    let safe = world.create(&[0, 1, 3, 4], 0);
    let Node { core, memory } = &mut world.nodes[1];
    core.on_link_down(Nanos(0), Link::Child(ChildIndex(2)), memory);
    world.run();
    for &(rank, id) in &all {
        let failed = &world.leaves[rank as usize].memory.failed;
        if rank != 2 {
            assert_eq!(failed.len(), 1);
            assert_eq!(failed[0].0, id);
            assert_eq!((failed[0].1.reason, failed[0].1.rank_a), (trib_wire::Reason::MemberDead, Rank(2)));
        }
    }
    check(&mut world, &safe, signature(Collective::Allreduce, 333, 0), 1);
    check(&mut world, &safe, signature(Collective::Allreduce, 3, 0), 2);
    let late: Vec<u32> = vec![0, 2];
    let list = RankList::from_ranks(late);
    let Leaf { core, memory } = &mut world.leaves[0];
    create(core, list, 9, memory);
    world.run();
    assert_eq!(world.leaves[0].memory.failed.len(), 2, "a group with a dead member is refused, not waited for");
}

#[test]
fn a_node_tells_how_far_its_children_were_apart_and_how_long_the_answer_took() {
    for (path, count) in [(Path::Datagram, 8), (Path::Stream, 500)] {
        let mut world = World::new(1);
        let group = world.create(&[0, 1, 2, 3, 4, 5], 0);
        // The first operation leaves the lease with the group, so in the second segments leave as
        // soon as they are posted.
        check(&mut world, &group, signature(Collective::Allreduce, count, 0), 0);
        for node in &mut world.nodes {
            node.memory.took.clear();
        }
        let folded = |world: &World, node: usize| {
            let report = world.nodes[node].core.group_reports().next().expect("the group is alive");
            assert_eq!(report.ranks, RANKS);
            if path == Path::Stream { report.streams } else { report.datagrams }
        };
        let before = folded(&world, 1);
        for (now, ranks) in [(10, 0..1), (40, 1..3), (100, 3..6)] {
            world.now = Nanos(now);
            for &(rank, id) in &group[ranks] {
                world.post(rank, id, signature(Collective::Allreduce, count, 0), vector(rank, count, 1));
            }
            world.run();
        }
        let longest = |node: usize, stage: Stage| {
            let took = world.nodes[node].memory.took.iter().filter(|(on, of, _)| (*on, *of) == (path, stage));
            took.map(|(_, _, span)| span.0).max()
        };
        let stages = |node| (longest(node, Stage::Gather), longest(node, Stage::Answer));
        assert_eq!(stages(0), (Some(60), None), "{path:?}: the root waits for the second node");
        assert_eq!(stages(1), (Some(30), Some(60)), "{path:?}: its ranks are 30 apart");
        assert_eq!(stages(2), (Some(0), Some(0)), "{path:?}: its ranks come last and together");
        let after = folded(&world, 1);
        assert_eq!(after.bytes - before.bytes, count, "{path:?}");
        assert!(after.count > before.count && after.gathering.0 >= before.gathering.0 + 30, "{path:?}");
    }
}

#[test]
fn the_root_tells_since_when_a_group_holds_the_lock_and_another_is_in_line() {
    let mut world = World::new(1);
    let a = world.create(&[0, 3], 7);
    let b = world.create(&[1, 4], 8);
    let s = signature(Collective::Allreduce, 999, 0);
    world.now = Nanos::from_millis(5);
    check(&mut world, &a, s, 0);
    // The holder is asked to stop, and one of its ranks does not hear that.
    world.deaf = Some(3);
    world.now = Nanos::from_millis(20);
    for &(rank, id) in &b {
        world.post(rank, id, s, vector(rank, 999, 1));
    }
    world.run();
    let part = world.nodes[0].core.explain(Nanos::from_millis(50), 64, None);
    let contexts = part.contexts.expect("the root decides");
    assert_eq!((&contexts.held_tags, &contexts.line_tags), (&vec![7], &vec![8]));
    let tag = |index: u32| part.groups.iter().find(|group| group.index == index).map(|group| group.tag);
    let held: Vec<_> = contexts.held.iter().map(|index| tag(*index)).zip(contexts.held_ms).collect();
    let line: Vec<_> = contexts.line.iter().map(|index| tag(*index)).zip(contexts.line_ms).collect();
    assert_eq!((held, line), (vec![(Some(7), 45)], vec![(Some(8), 30)]));
    assert!(world.nodes[1].core.explain(Nanos::from_millis(50), 64, None).contexts.is_none());
}

#[test]
fn a_group_is_told_about_alone_where_it_folds_and_where_it_is_passed_on() {
    let mut world = World::new(1);
    // One group folds at node 1 alone, and the root of the tree only passes its frames on. The
    // other folds at all three nodes.
    let low = world.create(&[0, 1], 7);
    let wide = world.create(&[0, 3], 8);
    let s = signature(Collective::Allreduce, 99, 0);
    check(&mut world, &low, s, 0);
    check(&mut world, &wide, s, 0);
    let told = |tag: Option<u64>| {
        let parts = world.nodes.iter().map(|node| node.core.explain(world.now, 64, tag).groups);
        parts.map(|groups| groups.into_iter().map(|g| (g.tag, g.relayed)).collect()).collect::<Vec<Vec<_>>>()
    };
    assert_eq!(told(None), [vec![(8, false)], vec![(7, false), (8, false)], vec![(8, false)]]);
    assert_eq!(told(Some(7)), [vec![(7, true)], vec![(7, false)], vec![]]);
    assert_eq!(told(Some(9)), vec![Vec::<(u64, bool)>::new(); 3]);
    let group = |node: usize, tag| world.nodes[node].core.explain(world.now, 64, Some(tag)).groups.remove(0);
    let folds = |group: &GroupPart| group.datagrams.count + group.streams.count;
    assert!(folds(&group(1, 7)) > 0 && folds(&group(0, 7)) == 0);
    assert_eq!(group(0, 8).datagrams.bytes + group(0, 8).streams.bytes, 99);
}

#[test]
fn quota_is_refused_on_every_member() {
    let mut world = World::new(1);
    for tag in 0..8 {
        world.create(&[0, 1, 2, 3, 4, 5], tag);
    }
    world.create(&[0, 1, 2, 3, 4, 5], 8);
    for leaf in &world.leaves {
        assert_eq!(leaf.memory.ready.len(), 8);
        assert_eq!(leaf.memory.failed.len(), 1);
        assert_eq!(leaf.memory.failed[0].1.reason, trib_wire::Reason::GroupQuota);
    }
}

/// The root passes on what folds below it, and keeps its own quota for what folds there.
#[test]
fn a_group_is_charged_where_it_folds() {
    // Eight groups and slots for eight, so each node is full after eight.
    let mut world = World::with_limits(Limits { osts: 24, ..limits(1, 0) });
    let sides = [[0, 1], [3, 4]];
    for tag in 0..8 {
        for side in &sides {
            world.create(side, tag);
        }
    }
    let ready = |world: &World| world.leaves.iter().map(|leaf| leaf.memory.ready.len()).collect::<Vec<_>>();
    assert_eq!(ready(&world), [8, 8, 0, 8, 8, 0], "both sides have all that a node may fold for");
    // The ranks that are left meet at the root, through nodes that are full.
    world.create(&[2, 5], 8);
    for rank in [2, 5] {
        assert_eq!(world.leaves[rank].memory.failed[0].1.reason, trib_wire::Reason::GroupQuota);
    }
    // What passes the root is bounded by what those below may fold for, and that bound is kept.
    let s = signature(Collective::Allreduce, 9, 0);
    let group = world.create(&sides[0], 9);
    assert_eq!(world.leaves[0].memory.failed[0].1.reason, trib_wire::Reason::GroupQuota);
    assert_eq!(group.len(), 2);
    for side in sides {
        let members: Vec<_> = side.iter().map(|rank| (*rank, world.leaves[*rank as usize].memory.ready[7])).collect();
        check(&mut world, &members, s, 0);
    }
}

#[test]
fn a_group_and_its_companion_are_one_in_the_quota_of_groups_and_two_in_that_of_slots() {
    let all = [0, 1, 2, 3, 4, 5];
    // Groups that fold at the root, and such that it passes on.
    for members in [&all[..], &[0, 1]] {
        let mut world = World::with_limits(Limits { groups: 8, osts: 64, ..limits(1, 0) });
        let heads = [members[0], *members.last().unwrap()];
        for tag in 0..8 {
            world.create(members, tag);
            world.create_as(true, &heads, tag);
        }
        assert_eq!((world.leaves[0].memory.ready.len(), world.leaves[0].memory.failed.len()), (16, 0));
        let s = signature(Collective::Allreduce, 9, 0);
        let last = heads.map(|rank| (rank, *world.leaves[rank as usize].memory.ready.last().unwrap()));
        check(&mut world, &last, s, 0);
        for (companion, group) in [(false, members), (true, &heads[..])] {
            world.create_as(companion, group, 9);
            let fault = world.leaves[0].memory.failed.pop().unwrap().1;
            assert_eq!(fault.reason, trib_wire::Reason::GroupQuota, "there are as many companions as groups");
        }
    }
    let mut world = World::with_limits(Limits { groups: 8, osts: 9, ..limits(1, 0) });
    world.create(&all, 0);
    world.create_as(true, &[0, 5], 0);
    world.create(&all, 1);
    assert_eq!(world.leaves[0].memory.ready.len(), 3);
    world.create_as(true, &[0, 5], 1);
    assert_eq!(world.leaves[0].memory.failed[0].1.reason, trib_wire::Reason::OstQuota);
}

#[test]
fn the_roots_own_quota_is_free_of_what_it_passes_on() {
    let mut world = World::with_limits(Limits { groups: 2, osts: 6, ..limits(1, 0) });
    let low = [world.create(&[0, 1], 0), world.create(&[3, 4], 0)];
    let wide = world.create(&[0, 3], 1);
    let s = signature(Collective::Allreduce, 9, 0);
    for group in low.iter().chain([&wide]) {
        check(&mut world, group, s, 0);
    }
}

#[test]
fn leaving_under_others_is_named() {
    let mut world = World::new(1);
    let group = world.create(&[0, 1, 2, 3, 4, 5], 0);
    let Leaf { core, memory } = &mut world.leaves[5];
    core.free_group(Nanos(0), group[5].1, memory);
    for &(rank, id) in &group[..5] {
        world.post(rank, id, signature(Collective::Allreduce, 4, 0), vector(rank, 4, 0));
    }
    world.run();
    for leaf in &world.leaves[..5] {
        assert_eq!(leaf.memory.failed.len(), 1, "rank {}", leaf.memory.rank);
        let fault = leaf.memory.failed[0].1;
        assert_eq!((fault.reason, fault.rank_a), (trib_wire::Reason::MemberLeft, Rank(5)));
    }
}

/// A rank streams ahead on a held lease while its peer first needs the lock for another group: the
/// lease must give way.
#[test]
fn a_held_lease_never_waits_for_an_operation_that_is_not_posted() {
    for (a_members, w_members) in [([0u32, 1], [1u32, 2]), ([0, 3], [3, 5]), ([0, 4], [1, 4])] {
        let mut world = World::new(1);
        let a = world.create(&a_members, 0);
        let w = world.create(&w_members, 0);
        let s = signature(Collective::Allreduce, 5000, 0);
        check(&mut world, &a, s, 1);
        let common = a_members.iter().find(|r| w_members.contains(r)).copied().expect("they overlap");
        let (ahead, other) = (a.iter().find(|(r, _)| *r != common), w.iter().find(|(r, _)| *r != common));
        let (&(ahead, a_ahead), &(other, w_other)) = (ahead.expect("two members"), other.expect("two members"));
        let mine = |g: &[(u32, GroupId)]| g.iter().find(|(r, _)| *r == common).expect("member").1;
        let first = world.post(ahead, a_ahead, s, vector(ahead, 5000, 2));
        world.run();
        let second = world.post(common, mine(&w), s, vector(common, 5000, 3));
        let third = world.post(other, w_other, s, vector(other, 5000, 3));
        world.run();
        for (rank, op) in [(common, second), (other, third)] {
            let done = world.leaves[rank as usize].memory.done.get(&op);
            assert!(done.is_some_and(Result::is_ok), "rank {rank} waits for a lock whose holder waits for it");
        }
        let fourth = world.post(common, mine(&a), s, vector(common, 5000, 2));
        world.run();
        for (rank, op) in [(ahead, first), (common, fourth)] {
            assert!(world.leaves[rank as usize].memory.done.get(&op).is_some_and(Result::is_ok), "rank {rank}");
            let memory = &world.leaves[rank as usize].memory;
            let bytes: Vec<u8> = memory.results[&op].values().flatten().copied().collect();
            let sum: Vec<u8> =
                (vector(ahead, 5000, 2).iter()).zip(vector(common, 5000, 2)).map(|(a, b)| a.wrapping_add(b)).collect();
            assert_eq!(bytes, sum);
        }
        for (rank, id) in a.into_iter().chain(w) {
            let Leaf { core, memory } = &mut world.leaves[rank as usize];
            core.free_group(Nanos(0), id, memory);
        }
        world.run();
        world.check_empty();
    }
}

#[test]
fn a_group_that_some_have_left_gives_the_lock_back() {
    for members in [[0u32, 1], [0, 3]] {
        let mut world = World::new(1);
        let a = world.create(&members, 0);
        let w = world.create(&[0, 1, 2, 3, 4, 5], 0);
        check(&mut world, &a, signature(Collective::Allreduce, 999, 0), 1);
        let Leaf { core, memory } = &mut world.leaves[0];
        core.free_group(Nanos(0), a[0].1, memory);
        world.run();
        check(&mut world, &w, signature(Collective::Allreduce, 999, 0), 2);
    }
}

#[test]
fn nothing_new_waits_for_a_dead_parent() {
    let mut world = World::new(1);
    let Node { core, memory } = &mut world.nodes[1];
    core.on_link_down(Nanos(0), Link::Parent, memory);
    for rank in [0, 1] {
        let Leaf { core, memory } = &mut world.leaves[rank];
        create(core, RankList::from_ranks([0, 1]), 0, memory);
    }
    world.run();
    for leaf in &world.leaves[..2] {
        assert_eq!(leaf.memory.failed.len(), 1);
        assert_eq!(leaf.memory.failed[0].1.reason, trib_wire::Reason::NodeDead);
    }
}

/// A rank that died before it joined cannot be waited for, wherever in the tree its absence shows.
#[test]
fn a_creation_with_a_dead_rank_is_refused() {
    let mut world = World::new(1);
    let Node { core, memory } = &mut world.nodes[2];
    core.on_link_down(Nanos(0), Link::Child(ChildIndex(1)), memory);
    world.run();
    for members in [[0u32, 4], [3, 4], [4, 5]] {
        let alive: Vec<u32> = members.iter().copied().filter(|r| *r != 4).collect();
        for &rank in &alive {
            let Leaf { core, memory } = &mut world.leaves[rank as usize];
            create(core, RankList::from_ranks(members), 0, memory);
        }
        world.run();
        for &rank in &alive {
            let [(_, fault)] = world.leaves[rank as usize].memory.failed[..] else { panic!("rank {rank} waits") };
            assert_eq!((fault.reason, fault.rank_a), (trib_wire::Reason::MemberDead, Rank(4)));
            world.leaves[rank as usize].memory.failed.clear();
        }
    }
    world.check_empty();
}

/// Every rank frees a group and makes another at once. The first rank to do so must not find the
/// quota still used up.
#[test]
fn a_freed_group_makes_room_for_the_next() {
    let mut world = World::new(1);
    let groups: Vec<_> = (0..8).map(|tag| world.create(&[0, 1, 2, 3, 4, 5], tag)).collect();
    let list = RankList::from_ranks(0..6);
    for rank in 0..RANKS {
        let Leaf { core, memory } = &mut world.leaves[rank as usize];
        core.free_group(Nanos(0), groups[3][rank as usize].1, memory);
        create(core, list.clone(), 8, memory);
        world.run();
    }
    for leaf in &world.leaves {
        assert_eq!((leaf.memory.ready.len(), leaf.memory.failed.len()), (9, 0), "rank {}", leaf.memory.rank);
    }
}

/// A rank that posts one of several streamed operations as a short one waits for a result that
/// never comes, and so do the others. It must not matter which of the operations it is, and how
/// much of the later ones has come.
#[test]
fn a_short_operation_among_streamed_ones_is_named() {
    for odd in 0..3 {
        // An operation is one segment, and all of them fit into the staging room.
        let mut world = World::with_limits(Limits { segment: 1024, staging: 8, ..limits(1, 0) });
        let group = world.create(&[0, 1, 2, 3, 4, 5], 0);
        let (long, short) = (signature(Collective::Allreduce, 500, 0), signature(Collective::Allreduce, 40, 0));
        // The lease stays with the group.
        check(&mut world, &group, long, 0);
        for &(rank, id) in &group[..5] {
            for salt in 1..=3 {
                world.post(rank, id, long, vector(rank, 500, salt));
            }
        }
        world.run();
        // The rank waits for the short one before it posts another.
        for _ in 0..odd {
            world.post(5, group[5].1, long, vector(5, 500, 1));
        }
        world.post(5, group[5].1, short, vector(5, 40, 1));
        world.run();
        for leaf in &world.leaves {
            let [(_, fault)] = leaf.memory.failed[..] else {
                panic!("operation {odd}: rank {} waits", leaf.memory.rank)
            };
            assert_eq!(fault.reason, trib_wire::Reason::Mismatch, "operation {odd}");
            assert!([fault.rank_a, fault.rank_b].contains(&Rank(5)), "operation {odd}: {fault}");
        }
    }
}
