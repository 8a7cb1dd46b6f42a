//! Real nodes and ranks on loopback. The error is the one that the trap sets off.

use trib_wire::{Collective, DataType, JobId, NodeId, RankList, Reason, ReduceOp, Signature, WireFormat};

use super::trap;
use crate::worker::support::{Rank, Tree, await_count, drive, node};

fn sum(count: u64) -> Signature {
    Signature {
        collective: Collective::Allreduce,
        dtype: DataType::I64,
        op: ReduceOp::Sum,
        format: WireFormat::Plain,
        root: 0,
        count,
    }
}

fn vector(value: i64, count: u64) -> Vec<u8> {
    (0..count).flat_map(|_| value.to_le_bytes()).collect()
}

/// A job under one root, its ranks and their group.
struct Program {
    ranks: Vec<Rank>,
    groups: Vec<trib_proto::leaf::GroupId>,
}

impl Program {
    fn new(node: &trib_node::Node, tree: &Tree) -> Program {
        node.install(tree.root()).unwrap();
        let mut ranks: Vec<_> = (0..2).map(|rank| Rank::connect(tree, rank, node.address())).collect();
        let groups: Vec<_> = ranks.iter_mut().map(|r| r.create_group(RankList::world(2))).collect();
        drive(&mut ranks, "group creation", |rank| rank.is_ready(groups[0]));
        Program { ranks, groups }
    }

    fn post(&mut self, count: u64) -> trib_proto::leaf::OpId {
        let Program { ranks, groups } = self;
        let posted = ranks.iter_mut().zip(groups).enumerate();
        let ops: Vec<_> = posted.map(|(r, (rank, g))| rank.post(*g, sum(count), vector(r as i64 + 1, count))).collect();
        ops[0]
    }

    fn adds_up(&mut self, count: u64) {
        let op = self.post(count);
        drive(&mut self.ranks, "the other job's sum", |rank| rank.is_done(op));
        assert!(self.ranks.iter().all(|rank| rank.result(op).unwrap() == vector(3, count)));
    }
}

#[test]
fn an_error_while_one_jobs_event_is_handled_ends_that_job_by_name_and_no_other() {
    // A fragment and a segment fold in different functions.
    for (number, count) in [(100, 10), (200, 100_000)] {
        let node = node(1);
        let mut other = Program::new(&node, &Tree::new(number, 0, 2));
        let mut program = Program::new(&node, &Tree::new(number + 1, 0, 2));
        other.adds_up(count);
        let begun = other.post(count);
        trap::set(JobId(number + 1));
        let op = program.post(count);
        drive(&mut program.ranks, "the end of the job", Rank::is_cut);
        for rank in &program.ranks {
            let fault = rank.result(op).unwrap_err();
            assert_eq!((fault.reason, fault.node), (Reason::NodeFailed, NodeId(0)), "{fault}");
            assert_eq!(rank.failure(program.groups[0]), Some(fault));
        }
        drive(&mut other.ranks, "the other job's sum", |rank| rank.is_done(begun));
        for count in [1, 1000, 50_000] {
            other.adds_up(count);
        }
        let counters = node.counters();
        assert_eq!((counters["jobs_broken"], counters["jobs"], counters["jobs_removed"]), (1, 1, 1), "{counters:#?}");
        // Nothing of the job is left, so its number can be used again.
        let mut again = Program::new(&node, &Tree::new(number + 1, 0, 2));
        again.adds_up(count);
    }
}

#[test]
fn ranks_below_other_nodes_of_the_tree_learn_which_node_failed() {
    let (above, below) = (node(1), node(1));
    let tree = Tree::new(300, 2, 2);
    below.install(tree.leaf(0, above.address())).unwrap();
    above.install(tree.leaf(1, above.address())).unwrap();
    above.install(tree.root()).unwrap();
    let at = |rank: u32| if rank < 2 { below.address() } else { above.address() };
    let mut ranks: Vec<_> = (0..4).map(|rank| Rank::connect(&tree, rank, at(rank))).collect();
    let groups: Vec<_> = ranks.iter_mut().map(|r| r.create_group(RankList::world(4))).collect();
    drive(&mut ranks, "group creation", |rank| rank.is_ready(groups[0]));
    trap::set(tree.job);
    // Only the leaf node below has all that it needs to fold.
    let ops: Vec<_> = (0..2).map(|rank| ranks[rank].post(groups[rank], sum(4), vector(1, 4))).collect();
    drive(&mut ranks, "the failure", |rank| rank.failure(groups[0]).is_some());
    for rank in &ranks {
        let fault = rank.failure(groups[0]).unwrap();
        assert_eq!((fault.reason, fault.node), (Reason::NodeFailed, NodeId(1)), "{fault}");
    }
    assert!(ranks[0].result(ops[0]).is_err());
    await_count(&below, "jobs_broken", 1);
    assert_eq!(above.counters()["jobs_broken"], 0);
}

#[test]
fn an_error_while_a_job_is_installed_or_asked_about_costs_nobody_else() {
    let node = node(1);
    let mut other = Program::new(&node, &Tree::new(400, 0, 2));
    trap::set(JobId(401));
    let refusal = node.install(Tree::new(401, 0, 2).root()).unwrap_err();
    assert!(refusal.text.contains("an error in the node's program"), "{refusal}");
    other.adds_up(10);
}
