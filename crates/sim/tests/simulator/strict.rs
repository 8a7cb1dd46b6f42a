//! Jobs whose ranks agree: an operation succeeds on all ranks or fails on all, whatever dies and
//! whenever. The tree has two lower nodes with two ranks each, and each node has three candidates.

use trib_proto::Nanos;
use trib_sim::Verdict;
use trib_sim::options::{Options, Trouble};
use trib_sim::workload::{Step, Workload};
use trib_sim::world::World;
use trib_wire::Reason;

use super::scenarios::{last, ms, passed, succeeded, sum, world};

const ROOT: usize = 0;
const LOWER: usize = 1;
/// Elements of a vector that goes by datagram, and of one that is streamed.
const SIZES: [u64; 2] = [8, 20_000];

fn of(strict: bool, work: &Workload) -> World {
    let mut options = Options { recovers: true, strict, candidates: 3, ..Options::calm(4) };
    options.limits.dead_after = ms(2_000);
    world(options, &[2, 2], work.clone())
}

/// A program that waits for each of so many operations before the next.
fn one_by_one(elements: u64, operations: usize) -> Workload {
    let mut work = Workload::plain(4, &vec![sum(elements); operations]);
    let steps = (0..operations).flat_map(|operation| [Step::Post(operation), Step::Wait(vec![operation])]);
    let script: Vec<Step> = [Step::Create(0)].into_iter().chain(steps).chain([Step::Free(0)]).collect();
    work.scripts = vec![script; 4];
    work
}

/// The number of operations that the other ranks report as successful, which is the same for each
/// of them, when this rank dies.
fn agreed(verdict: &Verdict, dead: u32) -> usize {
    let successes = |rank: u32| {
        let ends = verdict.endings.iter().flatten().filter(|ending| ending.rank == rank);
        ends.filter(|ending| ending.fault.is_none()).count()
    };
    let counts: Vec<usize> = (0..4).filter(|rank| *rank != dead).map(successes).collect();
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    let faults =
        verdict.endings.iter().flatten().filter(|ending| ending.rank != dead).filter_map(|ending| ending.fault);
    for fault in faults {
        assert_eq!((fault.reason, fault.rank_a.0), (Reason::MemberDead, dead), "{fault}");
    }
    counts[0]
}

#[test]
fn an_operation_costs_a_frame_each_way_on_each_edge_more_and_no_pause() {
    let run = |strict: bool, operations: usize| passed(of(strict, &one_by_one(8, operations)).run());
    let frames = |strict: bool| run(strict, 30).frames - run(strict, 10).frames;
    // Four ranks and two nodes have an edge upward.
    assert_eq!(frames(true) - frames(false), 20 * 2 * 6);
    let verdict = run(true, 30);
    assert!((0..30).all(|operation| succeeded(&verdict, operation)));
    assert!(last(&verdict.endings[29]) < ms(30), "it waited for something: {}", last(&verdict.endings[29]));
}

#[test]
fn a_rank_that_dies_leaves_others_that_agree() {
    for elements in SIZES {
        for work in [one_by_one(elements, 6), Workload::plain(4, &[sum(elements); 6])] {
            let span = last(&passed(of(true, &work).run()).endings[5]);
            let mut seen: Vec<usize> = Vec::new();
            for step in 0..60 {
                let mut world = of(true, &work);
                world.kill_rank(Nanos(span.0 * step / 60), 3, step % 2 == 0);
                seen.push(agreed(&passed(world.run()), 3));
            }
            assert!(seen.contains(&0) && seen.iter().any(|count| (1..6).contains(count)), "{seen:?}");
        }
    }
}

#[test]
fn a_rank_and_nodes_that_die_together_leave_others_that_agree() {
    for elements in SIZES {
        let work = one_by_one(elements, 6);
        let span = last(&passed(of(true, &work).run()).endings[5]);
        for step in 0..40 {
            for (number, nodes) in [vec![ROOT], vec![LOWER], vec![ROOT, LOWER], vec![2, ROOT]].into_iter().enumerate() {
                let at = Nanos(span.0 * step / 40);
                let mut world = of(true, &work);
                world.kill_rank(at, 3, number % 2 == 0);
                for (nth, node) in nodes.into_iter().enumerate() {
                    world.crash((node, 0), at + Nanos::from_micros(7 * nth as u64 * step), None, true);
                }
                agreed(&passed(world.run()), 3);
            }
        }
    }
}

#[test]
fn who_frees_a_group_early_hears_of_what_it_holds_all_the_same() {
    for step in 0..80 {
        let mut work = one_by_one(8, 3);
        work.groups[0].disturbed = Some(Trouble::EarlyFree);
        work.scripts[3] =
            vec![Step::Create(0), Step::Post(0), Step::Sleep(Nanos::from_micros(5 * step)), Step::Free(0)];
        passed(of(true, &work).run());
    }
}

#[test]
fn who_frees_a_group_early_waits_for_a_node_that_comes_back_late() {
    let mut work = Workload::plain(1, &[sum(8)]);
    work.groups[0].disturbed = Some(Trouble::EarlyFree);
    work.scripts[0] = vec![Step::Create(0), Step::Post(0), Step::Sleep(ms(2_000)), Step::Free(0)];
    let options = Options { recovers: true, strict: true, candidates: 1, ..Options::calm(1) };
    let run = |crash: Option<Nanos>| {
        let mut world = world(options.clone(), &[1], work.clone());
        if let Some(at) = crash {
            world.crash((ROOT, 0), at, Some(ms(8_000)), false);
        }
        last(&passed(world.run()).endings[0])
    };
    let span = run(None);
    let ends: Vec<Nanos> = (0..40).map(|step| run(Some(Nanos(span.0 * step / 40)))).collect();
    assert!(ends.iter().any(|at| *at > ms(8_000)), "nothing was undecided: {ends:?}");
}

#[test]
fn a_node_that_dies_costs_no_operation() {
    for elements in SIZES {
        let work = one_by_one(elements, 6);
        let span = last(&passed(of(true, &work).run()).endings[5]);
        for node in [ROOT, LOWER] {
            for step in 0..40 {
                let mut world = of(true, &work);
                world.crash((node, 0), Nanos(span.0 * step / 40), None, true);
                let verdict = passed(world.run());
                assert!((0..6).all(|operation| succeeded(&verdict, operation)), "node {node}, step {step}");
            }
        }
    }
}
