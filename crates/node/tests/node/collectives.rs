//! Collectives through real nodes, over both protocols.

use crate::support::{Rank, Tree, drive, node};
use trib_node::Node;
use trib_wire::{Collective, DataType, RankList, ReduceOp, Signature, WireFormat};

fn signature(collective: Collective, count: u64) -> Signature {
    let op = if collective == Collective::Allreduce { ReduceOp::Sum } else { ReduceOp::BitOr };
    Signature { collective, dtype: DataType::I64, op, format: WireFormat::Plain, root: 0, count }
}

/// Element `i` of what rank `rank` gives.
fn given(rank: u32, i: u64) -> i64 {
    (i as i64 + 1).wrapping_mul(i64::from(rank) * 7919 + 13)
}

fn vector(rank: u32, count: u64) -> Vec<u8> {
    (0..count).flat_map(|i| given(rank, i).to_le_bytes()).collect()
}

/// Four ranks under a root and two leaf nodes, all in one process.
fn two_levels(node: &Node, job: u32) -> Vec<Rank> {
    let tree = Tree::new(job, 2, 2);
    // The leaf nodes come first, and wait for their parent.
    node.install(tree.leaf(0, node.address())).unwrap();
    node.install(tree.leaf(1, node.address())).unwrap();
    node.install(tree.root()).unwrap();
    (0..4).map(|rank| Rank::connect(&tree, rank, node.address())).collect()
}

fn allreduce(workers: usize, count: u64) -> Vec<u8> {
    let node = node(workers);
    let mut ranks = two_levels(&node, 1);
    let groups: Vec<_> = ranks.iter_mut().map(|r| r.create_group(RankList::world(4))).collect();
    let ops: Vec<_> = (ranks.iter_mut().zip(&groups).enumerate())
        .map(|(r, (rank, group))| rank.post(*group, signature(Collective::Allreduce, count), vector(r as u32, count)))
        .collect();
    drive(&mut ranks, "allreduce", |rank| rank.is_done(ops[0]));
    let wanted: Vec<u8> =
        (0..count).flat_map(|i| (0..4).map(|r| given(r, i)).fold(0i64, i64::wrapping_add).to_le_bytes()).collect();
    for rank in &ranks {
        assert!(rank.result(ops[0]).unwrap() == wanted, "wrong sum of {count} elements");
    }
    let counters = node.counters();
    let folded = if count * 8 > 16 * 1024 { "segments_folded" } else { "fragments_folded" };
    assert!(counters[folded] > 0, "{counters:#?}");
    assert_eq!(counters["violations"], 0);
    wanted
}

#[test]
fn short_vectors_travel_as_datagrams_and_long_ones_as_streams() {
    for count in [1, 1000, 2048, 2049, 300_000] {
        allreduce(1, count);
    }
}

#[test]
fn logical_nodes_of_one_job_may_live_on_different_workers() {
    for count in [1000, 100_000] {
        allreduce(3, count);
    }
}

#[test]
fn pieces_are_laid_side_by_side() {
    let node = node(2);
    let mut ranks = two_levels(&node, 1);
    for count in [50, 5_000] {
        let groups: Vec<_> = ranks.iter_mut().map(|r| r.create_group(RankList::world(4))).collect();
        let ops: Vec<_> = (ranks.iter_mut().zip(&groups).enumerate())
            .map(|(r, (rank, group))| {
                let mut whole = vec![0; 4 * 8 * count as usize];
                whole[r * 8 * count as usize..][..8 * count as usize].copy_from_slice(&vector(r as u32, count));
                rank.post(*group, signature(Collective::Allgather, count), whole)
            })
            .collect();
        drive(&mut ranks, "allgather", |rank| rank.is_done(ops[0]));
        let wanted: Vec<u8> = (0..4).flat_map(|r| vector(r, count)).collect();
        for rank in &ranks {
            assert!(rank.result(ops[0]).unwrap() == wanted, "wrong allgather of {count} elements");
        }
        for (rank, group) in ranks.iter_mut().zip(&groups) {
            rank.free_group(*group);
        }
    }
}

#[test]
fn many_operations_and_groups_at_once_leave_nothing_behind() {
    let node = node(2);
    let mut ranks = two_levels(&node, 1);
    for _ in 0..3 {
        let groups: Vec<Vec<_>> =
            ranks.iter_mut().map(|r| (0..4).map(|_| r.create_group(RankList::world(4))).collect()).collect();
        let mut last = Vec::new();
        for (r, rank) in ranks.iter_mut().enumerate() {
            for turn in 0..5 {
                for (g, group) in groups[r].iter().enumerate() {
                    let count = [10, 700, 9_000, 40_000][(turn + g) % 4];
                    let op = rank.post(*group, signature(Collective::Allreduce, count), vector(r as u32, count));
                    last.push(op);
                }
            }
        }
        let ops: Vec<_> = last[..20].to_vec();
        drive(&mut ranks, "twenty allreduces", |rank| ops.iter().all(|op| rank.is_done(*op)));
        for rank in &ranks {
            for op in &ops {
                let result = rank.result(*op).unwrap();
                let first = i64::from_le_bytes(result[..8].try_into().unwrap());
                assert_eq!(first, (0..4).map(|r| given(r, 0)).sum::<i64>());
            }
        }
        for (r, rank) in ranks.iter_mut().enumerate() {
            for group in &groups[r] {
                rank.free_group(*group);
            }
        }
    }
    drive(&mut ranks, "leaving", |rank| rank.is_flushed());
    let quiet = std::time::Instant::now();
    loop {
        for rank in &mut ranks {
            rank.poll();
        }
        let counters = node.counters();
        if (counters["groups"], counters["buffers_held"]) == (0, 0) {
            assert_eq!(counters["groups_made"], counters["groups_freed"]);
            break;
        }
        assert!(quiet.elapsed().as_secs() < 5, "{counters:#?}");
    }
}

#[test]
fn short_vectors_take_no_memory_of_the_streams_where_both_are_cut_alike() {
    let node = node(1);
    let mut tree = Tree::new(1, 0, 2);
    // More results stay in the window than there are segments, and buffers of both kinds have the
    // same size.
    (tree.limits.payload, tree.limits.segment) = (1024, 1024);
    (tree.limits.window, tree.limits.osts, tree.limits.streams) = (16, 128, 1);
    (tree.limits.staging, tree.limits.flight) = (1, 1);
    node.install(tree.root()).unwrap();
    let mut ranks: Vec<_> = (0..2).map(|rank| Rank::connect(&tree, rank, node.address())).collect();
    for turn in 0..2 {
        let groups: Vec<_> = ranks.iter_mut().map(|r| r.create_group(RankList::world(2))).collect();
        for operation in 0..64 {
            let ops: Vec<_> = (ranks.iter_mut().zip(&groups).enumerate())
                .map(|(r, (rank, group))| {
                    let mut whole = vec![0; 16];
                    whole[r * 8..][..8].copy_from_slice(&vector(r as u32 + operation, 1));
                    rank.post(*group, signature(Collective::Allgather, 1), whole)
                })
                .collect();
            drive(&mut ranks, "a short allgather", |rank| rank.is_done(ops[0]));
            let wanted = [vector(operation, 1), vector(operation + 1, 1)].concat();
            assert!(ranks.iter().all(|rank| rank.result(ops[0]).unwrap() == wanted), "allgather {operation} of {turn}");
        }
    }
    assert_eq!(node.counters()["pool_exhausted"], 0);
}
