//! One hand-made run for each mechanism. The tree has two lower nodes and a root unless a test says
//! otherwise.

use trib_proto::Nanos;
use trib_sim::checkers::Ending;
use trib_sim::fabric::Tree;
use trib_sim::options::{Options, Trouble};
use trib_sim::random::Rng;
use trib_sim::workload::{GroupPlan, OperationPlan, Step, Workload};
use trib_sim::world::World;
use trib_sim::{Verdict, checkers};
use trib_wire::{Collective, DataType, Reason, ReduceOp, Signature, WireFormat};

const SECOND: Nanos = Nanos::from_millis(1000);

pub(super) fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

pub(super) fn sum(elements: u64) -> Signature {
    Signature {
        collective: Collective::Allreduce,
        dtype: DataType::F32,
        op: ReduceOp::Sum,
        format: WireFormat::Plain,
        root: 0,
        count: elements,
    }
}

fn group(members: &[u32], tag: u64) -> GroupPlan {
    GroupPlan::new(members.to_vec(), tag)
}

fn operation(group: usize, signature: Signature) -> OperationPlan {
    OperationPlan { group, signature, odd: None }
}

pub(super) fn world(options: Options, ranks_below: &[u32], work: Workload) -> World {
    World::new(0, options, Tree::regular(ranks_below), work, Rng::new(1), false)
}

/// The same program, except that the group is made before anything is posted and before anything
/// goes wrong.
pub(super) fn after_ten_ms(mut work: Workload) -> Workload {
    for script in &mut work.scripts {
        script.insert(1, Step::Sleep(ms(10)));
    }
    work
}

pub(super) fn passed(verdict: Verdict) -> Verdict {
    assert!(verdict.passed(), "{verdict}");
    verdict
}

pub(super) fn succeeded(verdict: &Verdict, operation: usize) -> bool {
    verdict.endings[operation].iter().all(|ending| ending.fault.is_none())
}

pub(super) fn last(endings: &[Ending]) -> Nanos {
    endings.iter().map(|ending| ending.at).max().expect("the operation has ended")
}

#[test]
fn a_lost_result_is_still_there_when_others_are_a_bank_ahead() {
    let work = after_ten_ms(Workload::plain(4, &[sum(8); 12]));
    let options = Options::calm(4);
    let payload = u64::from(options.limits.payload);
    assert!(8 * 4 <= payload, "one fragment each");
    let mut world = world(options, &[2, 2], work);
    // Results to rank 3 are lost for a while; the others run ahead as far as the window lets them.
    world.outage(3 + 3, false, ms(9), ms(40));
    let verdict = passed(world.run());
    let first = &verdict.endings[0];
    assert!((0..12).all(|op| succeeded(&verdict, op)));
    assert!(first.iter().any(|e| e.rank == 3 && e.at > ms(40)), "{first:?}");
    assert!(last(&verdict.endings[11]) < SECOND);
}

#[test]
fn crossing_orders_share_one_stream_context() {
    let mut work = Workload {
        groups: vec![group(&[0, 1, 2, 3], 0), group(&[0, 1, 2, 3], 1)],
        operations: (0..8).map(|n| operation(n % 2, sum(2000))).collect(),
        scripts: Vec::new(),
    };
    for rank in 0..4 {
        let posts = |parity: usize| (0..8).filter(move |n| n % 2 == parity).map(Step::Post);
        let mut script = vec![Step::Create(0), Step::Create(1)];
        script.extend(posts(rank % 2).chain(posts(1 - rank % 2)));
        script.extend([Step::Wait((0..8).collect()), Step::Free(0), Step::Free(1)]);
        work.scripts.push(script);
    }
    for lease_operations in [0, 1, 3] {
        let mut options = Options::calm(4);
        options.limits.streams = 1;
        options.limits.lease_operations = lease_operations;
        let verdict = passed(world(options, &[2, 2], work.clone()).run());
        assert!((0..8).all(|op| succeeded(&verdict, op)));
        assert!(last(&verdict.endings[7]) < SECOND);
    }
}

#[test]
fn a_rank_two_minutes_late_costs_little_and_fails_nothing() {
    for elements in [4, 4000] {
        let mut work = Workload::plain(4, &[sum(elements); 3]);
        work.scripts[2].insert(1, Step::Sleep(ms(120_000)));
        let verdict = passed(world(Options::calm(4), &[2, 2], work).run());
        assert!((0..3).all(|op| succeeded(&verdict, op)));
        assert!(last(&verdict.endings[0]) > ms(120_000));
        // This counts all frames: three waiters, probes and answers on two levels, heartbeats.
        // Their rate is checked by the traffic checker.
        assert!(verdict.frames < 120 * 200, "{} frames", verdict.frames);
    }
}

#[test]
fn windows_for_which_a_node_has_no_room_are_sent_again_in_parts() {
    for (groups, window, room) in [(1, 64, 3), (2, 64, 12), (3, 33, 9), (5, 33, 2), (5, 64, 20)] {
        let mut work = Workload {
            groups: (0..groups).map(|n| group(&[0, 1], n as u64)).collect(),
            operations: (0..groups).map(|n| operation(n, sum(u64::from(window) * 16))).collect(),
            scripts: Vec::new(),
        };
        for posts_at in [10, 5_000] {
            let mut script: Vec<Step> = (0..groups).map(Step::Create).collect();
            script.push(Step::Sleep(ms(posts_at)));
            script.extend((0..groups).map(Step::Post));
            script.push(Step::Wait((0..groups).collect()));
            script.extend((0..groups).map(Step::Free));
            work.scripts.push(script);
        }
        let mut options = Options::calm(2);
        (options.limits.window, options.limits.stream_threshold) = (window, 1 << 20);
        options.datagram_room = room;
        let mut world = world(options, &[2], work);
        // The node stands still until the first second of waiting, which does not count, is over.
        world.pause(0, ms(9), ms(1_020));
        // How much rank 0 sends meanwhile is checked by the traffic checker.
        let verdict = passed(world.run());
        assert!((0..groups).all(|op| succeeded(&verdict, op)));
    }
}

#[test]
fn a_dead_member_is_named_to_all_the_others() {
    for orderly in [true, false] {
        for elements in [4, 4000] {
            let mut work = Workload::plain(4, &[sum(elements); 2]);
            // Rank 1 takes part in the first operation and dies before the second.
            work.scripts[1] =
                vec![Step::Create(0), Step::Post(0), Step::Wait(vec![0]), Step::Sleep(SECOND), Step::Post(1)];
            let mut world = world(Options::calm(4), &[2, 2], work);
            world.kill_rank(ms(500), 1, orderly);
            let verdict = passed(world.run());
            assert!(succeeded(&verdict, 0));
            let told = &verdict.endings[1];
            assert_eq!(told.len(), 3);
            for ending in told {
                let fault = ending.fault.expect("nobody gets a result");
                assert_eq!((fault.reason, fault.rank_a.0), (Reason::MemberDead, 1));
                assert!(ending.at < ms(if orderly { 600 } else { 12_000 }));
            }
        }
    }
}

#[test]
fn groups_without_the_dead_rank_go_on() {
    let mut work = Workload {
        groups: vec![group(&[0, 1, 2, 3], 0), group(&[0, 2, 3], 0)],
        operations: vec![operation(0, sum(4000)), operation(1, sum(4000)), operation(1, sum(4))],
        scripts: Vec::new(),
    };
    for rank in 0..4 {
        let own = vec![Step::Create(0), Step::Sleep(SECOND), Step::Post(0), Step::Wait(vec![0]), Step::Free(0)];
        let mut script = if rank == 1 { Vec::new() } else { vec![Step::Create(1)] };
        script.extend(own);
        if rank != 1 {
            script.extend([Step::Post(1), Step::Post(2), Step::Wait(vec![1, 2]), Step::Free(1)]);
        }
        work.scripts.push(script);
    }
    let mut world = world(Options::calm(4), &[2, 2], work);
    world.kill_rank(ms(500), 1, true);
    let verdict = passed(world.run());
    assert!(verdict.endings[0].iter().all(|e| e.fault.is_some()));
    assert!(succeeded(&verdict, 1) && succeeded(&verdict, 2));
}

#[test]
fn ranks_that_disagree_are_both_named_to_all() {
    let cases = [(4, 5), (4, 4000), (4000, 4001), (4000, 8000), (40, 400)];
    for (right, wrong) in cases {
        let mut work = Workload::plain(4, &[sum(right)]);
        work.operations[0].odd = Some((2, sum(wrong)));
        work.groups[0].disturbed = Some(Trouble::Mismatch);
        let verdict = passed(world(Options::calm(4), &[2, 2], work).run());
        assert_eq!(verdict.endings[0].len(), 4);
        for ending in &verdict.endings[0] {
            let fault = ending.fault.expect("nobody gets a result");
            assert_eq!(fault.reason, Reason::Mismatch);
            let (a, b) = fault.signatures.expect("both signatures are told");
            assert_ne!(a, b);
            assert!(fault.rank_a.0 == 2 || fault.rank_b.0 == 2, "{fault}");
        }
    }
}

#[test]
fn who_frees_early_is_named_and_hangs_nobody() {
    for elements in [4, 4000] {
        let mut work = Workload::plain(4, &[sum(elements); 2]);
        work.groups[0].disturbed = Some(Trouble::EarlyFree);
        work.scripts[3] = vec![Step::Create(0), Step::Sleep(ms(10)), Step::Post(0), Step::Free(0)];
        let verdict = passed(world(Options::calm(4), &[2, 2], work).run());
        for ending in verdict.endings[1].iter().filter(|e| e.rank != 3) {
            let fault = ending.fault.expect("rank 3 never posts it");
            assert_eq!((fault.reason, fault.rank_a.0), (Reason::MemberLeft, 3));
        }
    }
}

#[test]
fn a_stopped_rank_delays_only_its_own_groups() {
    let mut work = Workload {
        groups: vec![group(&[0, 1, 2, 3], 0), group(&[1, 2], 0)],
        operations: vec![operation(0, sum(40_000)), operation(1, sum(40_000)), operation(1, sum(4))],
        scripts: Vec::new(),
    };
    for rank in 0..4 {
        let mut script = vec![Step::Create(0)];
        script.extend((rank == 1 || rank == 2).then_some(Step::Create(1)));
        script.push(Step::Post(0));
        if rank == 1 || rank == 2 {
            script.extend([Step::Sleep(ms(5)), Step::Post(1), Step::Post(2), Step::Wait(vec![1, 2]), Step::Free(1)]);
        }
        script.extend([Step::Wait(vec![0]), Step::Free(0)]);
        work.scripts.push(script);
    }
    let mut world = world(Options::calm(4), &[2, 2], work);
    world.pause(3 + 3, ms(1), ms(4000));
    let verdict = passed(world.run());
    assert!((0..3).all(|op| succeeded(&verdict, op)));
    assert!(last(&verdict.endings[0]) > ms(4000));
    assert!(last(&verdict.endings[1]).max(last(&verdict.endings[2])) < ms(100));
}

#[test]
fn a_stopped_node_goes_on_where_it_was() {
    for elements in [4, 40_000] {
        let work = after_ten_ms(Workload::plain(4, &[sum(elements); 60]));
        let mut world = world(Options::calm(4), &[2, 2], work);
        world.pause(1, ms(11), ms(4000));
        let verdict = passed(world.run());
        assert!((0..60).all(|op| succeeded(&verdict, op)));
        assert!(last(&verdict.endings[59]) > ms(4000));
    }
}

/// A job that has as much patience with its ranks as jobs have by default.
fn patient(ranks: u32) -> Options {
    let mut options = Options::calm(ranks);
    options.limits.dead_after = ms(60_000);
    options
}

#[test]
fn a_node_that_stays_stopped_is_given_up_in_seconds_by_all_who_ran_meanwhile() {
    for (node, elements) in [(0, 4), (0, 40_000), (1, 4), (1, 40_000)] {
        let work = after_ten_ms(Workload::plain(4, &[sum(elements); 60]));
        // Nothing can replace the node, so it has as much time as a rank.
        let mut options = patient(4);
        options.limits.dead_after = ms(5_000);
        let mut world = world(options, &[2, 2], work);
        world.stop_node(node, ms(11), ms(40_000));
        let verdict = passed(world.run());
        let ends = last(&verdict.endings[59]);
        assert!(!succeeded(&verdict, 59), "node {node} was stopped all the time");
        assert!(ms(5_000) < ends && ends < ms(9_000), "node {node}: {ends}");
    }
}

#[test]
fn a_rank_without_a_processor_for_half_a_minute_is_late_and_blames_nobody_when_it_is_back() {
    for elements in [4, 40_000] {
        let work = after_ten_ms(Workload::plain(4, &[sum(elements); 60]));
        let mut world = world(patient(4), &[2, 2], work);
        world.pause(3 + 3, ms(11), ms(30_000));
        let verdict = passed(world.run());
        assert!((0..60).all(|op| succeeded(&verdict, op)));
        assert!(last(&verdict.endings[59]) > ms(30_000));
    }
}

#[test]
fn where_nobody_has_a_processor_nobody_is_given_up() {
    // All stand still for half a minute; then each has the processor for a moment now and then,
    // never two at once.
    let work = after_ten_ms(Workload::plain(4, &[sum(4); 60]));
    let mut world = world(patient(4), &[2, 2], work);
    for actor in 0..7 {
        world.pause(actor, ms(11), ms(30_000));
        for turn in 0..10 {
            let begin = 30_100 + turn * 3_500 + actor as u64 * 500;
            world.pause(actor, ms(begin), ms(begin + 3_000));
        }
    }
    let verdict = passed(world.run());
    assert!((0..60).all(|op| succeeded(&verdict, op)));
}

#[test]
fn an_index_is_used_again_with_a_new_generation() {
    let mut work = Workload { groups: Vec::new(), operations: Vec::new(), scripts: vec![Vec::new(); 4] };
    for n in 0..20 {
        work.groups.push(group(&[0, 1, 2, 3], 0));
        work.operations.push(operation(n, sum(if n % 2 == 0 { 30 } else { 3000 })));
        for script in &mut work.scripts {
            script.extend([Step::Create(n), Step::Post(n), Step::Wait(vec![n]), Step::Free(n)]);
        }
    }
    let mut options = Options::calm(4);
    options.limits.groups = 2;
    options.limits.osts = 8;
    options.quality.loss = 100;
    options.quality.duplication = 100;
    options.quality.stray = 100;
    options.quality.stray_max = ms(200);
    options.ghosts = 300;
    let verdict = passed(world(options, &[2, 2], work).run());
    assert!((0..20).all(|op| succeeded(&verdict, op)));
}

#[test]
fn a_checker_that_fails_names_the_stuck_operation() {
    let mut work = Workload::plain(2, &[sum(4)]);
    work.scripts[1] = vec![Step::Create(0)];
    let verdict = world(Options::calm(2), &[2], work).run();
    let checkers::Failure { checker, what, .. } = verdict.failure.expect("rank 1 never posts");
    assert_eq!(checker, "liveness");
    assert!(what.contains("operation 0") && what.contains("ranks [1] have not posted"), "{what}");
}
