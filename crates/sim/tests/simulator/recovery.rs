//! Nodes that die, stop or are cut off in the middle of something: every operation ends all the
//! same, with the right value, and soon. The tree has two lower nodes with two ranks each, and each
//! node has three candidates.

use trib_proto::Nanos;
use trib_sim::Verdict;
use trib_sim::options::{Options, Trouble};
use trib_sim::workload::{GroupPlan, OperationPlan, Step, Workload};
use trib_sim::world::World;
use trib_wire::Reason;

use super::scenarios::{last, ms, passed, succeeded, sum, world};

/// The root, and the node of ranks 0 and 1.
const ROOT: usize = 0;
const LOWER: usize = 1;
/// Elements of a vector that goes by datagram, and of one that is streamed.
const SIZES: [u64; 2] = [8, 20_000];

fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

fn options() -> Options {
    let mut options = Options { recovers: true, candidates: 3, ..Options::calm(4) };
    options.limits.dead_after = ms(40_000);
    options
}

fn recovering(work: &Workload) -> World {
    world(options(), &[2, 2], work.clone())
}

/// The verdict, when every operation has succeeded before this time.
fn all_well(world: World, operations: usize, before: Nanos) -> Verdict {
    let verdict = passed(world.run());
    for operation in 0..operations {
        assert!(succeeded(&verdict, operation), "operation {operation}: {:?}", verdict.endings[operation]);
        let ends = last(&verdict.endings[operation]);
        assert!(ends < before, "operation {operation} ends at {ends}");
    }
    verdict
}

/// How long a program takes that nothing disturbs.
fn undisturbed(work: &Workload, operations: usize) -> Nanos {
    let verdict = all_well(recovering(work), operations, ms(1_000));
    (0..operations).map(|operation| last(&verdict.endings[operation])).max().expect("there are operations")
}

#[test]
fn a_node_may_die_at_any_moment_of_a_program() {
    for elements in SIZES {
        let work = Workload::plain(4, &[sum(elements); 6]);
        let span = undisturbed(&work, 6);
        for node in [ROOT, LOWER] {
            for step in 0..40 {
                for refuses in [true, false] {
                    let mut world = recovering(&work);
                    // The last moments are those in which the group is freed.
                    world.crash((node, 0), Nanos(span.0 * step / 32), None, refuses);
                    // A call of the first epoch may take five seconds.
                    all_well(world, 6, ms(if refuses { 300 } else { 6_500 }));
                }
            }
        }
    }
}

#[test]
fn processes_that_leave_one_by_one_cost_a_program_some_round_trips_each() {
    for elements in SIZES {
        let work = Workload::plain(4, &[sum(elements); 6]);
        let span = undisturbed(&work, 6);
        for step in 0..40 {
            let at = |more: u64| Nanos(span.0 * step / 32) + us(more);
            for (first, second) in [(ROOT, LOWER), (LOWER, ROOT), (LOWER, 2)] {
                let mut world = recovering(&work);
                world.depart((first, 0), at(0));
                world.depart((second, 0), at(40));
                // All that is lost is what was under way, and the time to come to the next process.
                all_well(world, 6, Nanos(2 * span.0) + ms(4));
            }
        }
    }
}

#[test]
fn a_second_node_may_die_while_the_first_is_replaced() {
    for elements in SIZES {
        let work = Workload::plain(4, &[sum(elements); 6]);
        let half = Nanos(undisturbed(&work, 6).0 / 2);
        for step in 0..30 {
            let second = half + us(step * 25);
            for (node, candidate) in [(ROOT, 0), (LOWER, 1), (2, 0)] {
                let mut world = recovering(&work);
                world.crash((LOWER, 0), half, None, true);
                world.crash((node, candidate), second, None, true);
                // And a third, that the first two may have made the only way.
                world.crash((node, candidate), second + us(step * 40), Some(second + us(9_000)), true);
                all_well(world, 6, ms(500));
            }
        }
    }
}

#[test]
fn a_node_that_was_stopped_wakes_in_an_epoch_that_is_over_and_harms_nobody() {
    for elements in SIZES {
        for node in [ROOT, LOWER] {
            for wakes in [5_500, 6_000, 7_000, 9_000, 20_000] {
                let mut work = Workload::plain(4, &[sum(elements); 60]);
                for script in &mut work.scripts {
                    script.insert(31, Step::Wait((0..30).collect()));
                    script.insert(32, Step::Sleep(ms(8_000)));
                }
                let mut world = recovering(&work);
                world.stop_node(node, us(800), ms(wakes));
                all_well(world, 60, ms(20_000));
            }
        }
    }
}

#[test]
fn a_process_that_begins_anew_and_has_forgotten_everything_is_told() {
    for elements in SIZES {
        let work = Workload::plain(4, &[sum(elements); 6]);
        let half = Nanos(undisturbed(&work, 6).0 / 2);
        for node in [ROOT, LOWER] {
            for gap in [1, 100, 300, 1_000] {
                let mut world = recovering(&work);
                for turn in 0..4 {
                    let at = half + us(turn * 2 * gap);
                    world.crash((node, 0), at, Some(at + us(gap)), true);
                }
                all_well(world, 6, ms(500));
            }
        }
    }
}

#[test]
fn a_rank_that_is_cut_off_for_seconds_takes_all_others_along_to_another_epoch() {
    for elements in SIZES {
        for (up, down) in [(true, true), (true, false), (false, true)] {
            let mut work = Workload::plain(4, &[sum(elements); 6]);
            for script in &mut work.scripts {
                script.insert(1, Step::Sleep(ms(100)));
            }
            let mut options = options();
            options.levels = 2;
            let sites = 3 * 3;
            let mut world = world(options, &[2, 2], work);
            for (way, is_cut) in [(true, up), (false, down)] {
                if is_cut {
                    world.outage(sites + 3, way, ms(90), ms(8_000));
                }
            }
            all_well(world, 6, ms(20_000));
        }
    }
}

#[test]
fn no_forged_datagram_passes_a_way_that_is_cut() {
    // The second group has the place of the first in the nodes' tables, so that what is forged of
    // an older generation of it is of this epoch: a sign of life of its node.
    let mut work = Workload::plain(4, &[sum(8)]);
    work.groups.insert(0, GroupPlan::new(vec![0, 1, 2, 3], 1));
    work.operations[0].group = 1;
    let rest = Step::Sleep(ms(50));
    let before = [Step::Create(0), rest.clone(), Step::Free(0), rest.clone()];
    let after = [Step::Create(1), rest, Step::Post(0), Step::Wait(vec![0]), Step::Free(1)];
    work.scripts = vec![before.into_iter().chain(after).collect(); 4];
    let mut world = world(Options { ghosts: 1_000, ..options() }, &[2, 2], work);
    let above_rank_3 = world.tree().nodes.len() * 3 + 3;
    world.outage(above_rank_3, false, ms(140), ms(20_000));
    // The rank misses its node before the node finds that what it sends is lost.
    all_well(world, 1, ms(30_000));
}

#[test]
fn a_node_may_die_while_two_groups_want_the_only_stream_context() {
    let group = |tag| GroupPlan::new(vec![0, 1, 2, 3], tag);
    let operation = |n: usize| OperationPlan { group: n % 2, signature: sum(3_000), odd: None };
    let mut work =
        Workload { groups: vec![group(0), group(1)], operations: (0..8).map(operation).collect(), scripts: Vec::new() };
    for rank in 0..4 {
        let posts = |parity: usize| (0..8).filter(move |n| n % 2 == parity).map(Step::Post);
        let mut script = vec![Step::Create(0), Step::Create(1)];
        script.extend(posts(rank % 2).chain(posts(1 - rank % 2)));
        script.extend([Step::Wait((0..8).collect()), Step::Free(0), Step::Free(1)]);
        work.scripts.push(script);
    }
    for lease_operations in [0, 1] {
        for step in 0..60 {
            let mut options = options();
            options.limits.streams = 1;
            options.limits.lease_operations = lease_operations;
            let mut world = world(options, &[2, 2], work.clone());
            world.crash((if step % 2 == 0 { ROOT } else { LOWER }, 0), us(400 + 40 * step), None, true);
            all_well(world, 8, ms(500));
        }
    }
}

#[test]
fn a_rank_that_dies_with_its_node_is_named_and_groups_without_it_go_on() {
    for elements in SIZES {
        let group = |members: &[u32]| GroupPlan::new(members.to_vec(), 0);
        let operation = |group| OperationPlan { group, signature: sum(elements), odd: None };
        let mut work = Workload {
            groups: vec![group(&[0, 1, 2, 3]), group(&[0, 2, 3])],
            operations: vec![operation(0), operation(1)],
            scripts: Vec::new(),
        };
        for rank in 0..4 {
            let own = vec![Step::Create(0), Step::Sleep(ms(50)), Step::Post(0)];
            let mut script = if rank == 1 { Vec::new() } else { vec![Step::Create(1)] };
            script.extend(own);
            if rank != 1 {
                script.extend([Step::Post(1), Step::Wait(vec![1]), Step::Free(1)]);
            }
            script.extend([Step::Wait(vec![0]), Step::Free(0)]);
            work.scripts.push(script);
        }
        for orderly in [true, false] {
            let mut world = recovering(&work);
            world.crash((LOWER, 0), ms(20), None, true);
            world.kill_rank(ms(20), 1, orderly);
            let verdict = passed(world.run());
            assert!(succeeded(&verdict, 1) && last(&verdict.endings[1]) < ms(500));
            assert_eq!(verdict.endings[0].len(), 3);
            for ending in &verdict.endings[0] {
                let fault = ending.fault.expect("rank 1 has given nothing");
                assert_eq!((fault.reason, fault.rank_a.0), (Reason::MemberDead, 1));
                assert!(ending.at < ms(43_000), "{}", ending.at);
            }
        }
    }
}

#[test]
fn a_node_that_dies_just_after_all_ranks_below_it_leaves_no_group_behind() {
    // The group is made while the word of a member's death is on the way up. The node of that rank
    // has said so, and dies before it can say that it has left the group.
    for step in 0..100 {
        let mut work = Workload::plain(3, &[sum(8)]);
        work.groups.push(GroupPlan::new(vec![1, 2], 0));
        work.operations.push(OperationPlan { group: 1, signature: sum(8), odd: None });
        work.scripts[0].insert(0, Step::Sleep(ms(5)));
        for script in &mut work.scripts[1..] {
            script.extend([Step::Create(1), Step::Post(1), Step::Wait(vec![1]), Step::Free(1)]);
        }
        for gap in [22, 26, 30, 34, 38] {
            let mut options = Options { ranks: 3, ..options() };
            // There is no room for the second group while the first is there.
            options.limits.groups = 1;
            let mut world = world(options, &[1, 2], work.clone());
            let dies = us(5_000 + 5 * step);
            world.kill_rank(dies, 0, true);
            world.crash((LOWER, 0), dies + us(gap), None, true);
            let verdict = passed(world.run());
            assert!(succeeded(&verdict, 1), "{step}, {gap}: {:?}", verdict.endings[1]);
        }
    }
}

#[test]
fn ranks_that_rest_keep_nothing_for_each_other() {
    for elements in SIZES {
        let work = Workload::plain(4, &[sum(elements); 6]);
        all_well(recovering(&work.clone().with_rest(ms(2_000))), 6, ms(1_000));
        let span = undisturbed(&work, 6);
        for step in 0..12 {
            let mut world = recovering(&work.clone().with_rest(ms(40_000)));
            world.crash((LOWER, 0), Nanos(span.0 * step / 10), None, step % 2 == 0);
            all_well(world, 6, ms(6_500));
        }
    }
}

#[test]
fn ranks_that_may_keep_one_byte_wait_for_each_other_and_end() {
    for elements in SIZES {
        let work = Workload::plain(4, &[sum(elements); 6]);
        let span = undisturbed(&work, 6);
        for step in 0..12 {
            let mut world = world(Options { rank_memory: 1, ..options() }, &[2, 2], work.clone());
            world.crash((LOWER, 0), Nanos(span.0 * step / 2), None, step % 2 == 0);
            all_well(world, 6, ms(6_500));
        }
    }
}

/// Rank 0 makes a group with all others, and another one later; the others go on with a third.
fn with_a_late_rank(elements: u64, creates: Nanos) -> Workload {
    let mut work = Workload::plain(4, &[sum(elements)]);
    work.groups.extend([GroupPlan::new(vec![0, 1, 2, 3], 1), GroupPlan::new(vec![1, 2, 3], 0)]);
    work.operations.extend([1, 2].map(|group| OperationPlan { group, signature: sum(elements), odd: None }));
    for (rank, script) in work.scripts.iter_mut().enumerate() {
        script.insert(1, Step::Sleep(ms(10)));
        script.insert(3, Step::Sleep(creates));
        script.extend([Step::Create(1), Step::Post(1), Step::Wait(vec![1]), Step::Free(1)]);
        if rank != 0 {
            script.extend([Step::Create(2), Step::Post(2), Step::Wait(vec![2]), Step::Free(2)]);
        }
    }
    work
}

#[test]
fn a_rank_that_wakes_after_it_was_taken_for_dead_fails_what_others_have_given_up() {
    for elements in SIZES {
        // Beside other ranks, and as the only one below its node.
        let cases = [2, 1].into_iter().flat_map(|below| [30_000, 60_000].map(|wakes| (below, wakes)));
        for ((below, wakes), moves) in cases.flat_map(|case| [false, true].map(|moves| (case, moves))) {
            let mut options = options();
            options.limits.dead_after = ms(10_000);
            let mut world = world(options, &[below, 4 - below], with_a_late_rank(elements, ms(20_000)));
            world.stop_rank(0, ms(8), ms(wakes));
            if moves {
                // Nobody has ever seen the rank in the epoch in which it is missed.
                world.crash((LOWER, 0), ms(9), None, true);
            }
            let verdict = passed(world.run());
            assert!(succeeded(&verdict, 2), "{:?}", verdict.endings[2]);
            for operation in [0, 1] {
                let endings = &verdict.endings[operation];
                assert_eq!(endings.len(), 4, "operation {operation}, awake at {wakes}, moves {moves}");
                assert!(endings.iter().all(|ending| ending.fault.is_some()), "{endings:?}");
                assert!(last(endings) < ms(wakes + 21_000), "{}", last(endings));
            }
        }
    }
}

#[test]
fn who_has_given_up_results_does_not_ask_in_the_next_epoch_for_what_others_have_forgotten() {
    // As much as may be under way at once.
    for elements in [8, 1_000] {
        let mut work = Workload::plain(2, &[sum(elements), sum(elements)]);
        work.groups[0].disturbed = Some(Trouble::EarlyFree);
        let begin = [Step::Create(0), Step::Sleep(ms(10)), Step::Post(0)];
        let patient = [Step::Wait(vec![0]), Step::Sleep(ms(500)), Step::Post(1), Step::Wait(vec![1]), Step::Free(0)];
        work.scripts[0] = begin.clone().into_iter().chain(patient).collect();
        work.scripts[1] = begin.into_iter().chain([Step::Sleep(ms(5)), Step::Free(0)]).collect();
        let mut options = Options { ranks: 2, ..options() };
        options.limits.window = 1;
        let mut given = false;
        for step in 0..40 {
            let mut world = world(options.clone(), &[1, 1], work.clone());
            let above_rank_1 = world.tree().nodes.len() * 3 + 1;
            // At some step it has contributed all, and some result is lost.
            world.outage(above_rank_1, false, ms(10) + us(20 * step), ms(16));
            // Rank 0 posts the next operation before it misses its node.
            world.pause(LOWER, ms(200), ms(20_000));
            let verdict = passed(world.run());
            let fault = |operation: usize, rank: u32| {
                let ending = verdict.endings[operation].iter().find(|ending| ending.rank == rank);
                ending.expect("it has ended").fault
            };
            given |= fault(0, 0).is_none() && fault(0, 1).is_some();
            let fault = fault(1, 0).expect("rank 1 never posts it");
            assert_eq!((fault.reason, fault.rank_a.0), (Reason::MemberLeft, 1), "step {step}");
        }
        assert!(given, "rank 1 has given nothing up that rank 0 has");
    }
}
