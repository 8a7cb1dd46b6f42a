//! Hosts as a level of the tree: their nodes are in processes of their ranks, which die, stop and
//! leave with all that they host. There are two hosts with three ranks each and one node above,
//! unless a test says otherwise, and each node has three candidates.

use trib_proto::Nanos;
use trib_sim::Verdict;
use trib_sim::fabric::Tree;
use trib_sim::options::Options;
use trib_sim::random::Rng;
use trib_sim::workload::{GroupPlan, OperationPlan, Step, Workload};
use trib_sim::world::World;
use trib_wire::{Rank, Reason};

use super::scenarios::{last, ms, passed, succeeded, sum};

const ROOT: usize = 0;
/// The node of ranks 0 to 2, of which the first is the lead.
const HOST: usize = 1;
const LEAD: u32 = 0;
/// Elements of a vector that goes by datagram, and of one that is streamed.
const SIZES: [u64; 2] = [8, 20_000];
/// Operations of all ranks, and of all but the lead.
const ALL: [usize; 3] = [0, 2, 4];
const OTHERS: [usize; 3] = [1, 3, 5];

fn world(ranks_on: &[u32], work: &Workload) -> World {
    of(options(ranks_on.iter().sum()), ranks_on, work)
}

fn options(ranks: u32) -> Options {
    let mut options = Options { recovers: true, candidates: 3, ..Options::calm(ranks) };
    options.limits.dead_after = ms(40_000);
    options
}

fn of(options: Options, ranks_on: &[u32], work: &Workload) -> World {
    World::new(0, options, Tree::of_hosts(ranks_on), work.clone(), Rng::new(1), false)
}

/// All ranks have a group, all but the lead have another one, and both work at the same time.
fn work(ranks: u32, elements: u64) -> Workload {
    let groups = vec![GroupPlan::new((0..ranks).collect(), 0), GroupPlan::new((1..ranks).collect(), 1)];
    let operation = |number: usize| OperationPlan { group: number % 2, signature: sum(elements), odd: None };
    let operations = (0..6).map(operation).collect();
    let script = |rank: u32| {
        let own: Vec<usize> = (0..6).filter(|number| rank != LEAD || number % 2 == 0).collect();
        let groups = || [0, 1].into_iter().filter(|group| rank != LEAD || *group == 0);
        let posts = own.iter().map(|number| Step::Post(*number));
        let script = groups().map(Step::Create).chain(posts).chain([Step::Wait(own.clone())]);
        script.chain(groups().map(Step::Free)).collect()
    };
    Workload { groups, operations, scripts: (0..ranks).map(script).collect() }
}

fn span(ranks_on: &[u32], work: &Workload) -> Nanos {
    let verdict = passed(world(ranks_on, work).run());
    assert!((0..6).all(|operation| succeeded(&verdict, operation)));
    (0..6).map(|operation| last(&verdict.endings[operation])).max().expect("there are operations")
}

/// All others' operations succeed, and those that a dead rank takes part in end with its name, if
/// they fail. All of that is over in some seconds, which is far less than a rank may be silent.
fn only_these_fail(verdict: &Verdict, dead: &[u32]) {
    for operation in OTHERS.iter().filter(|_| dead == [LEAD]) {
        assert!(succeeded(verdict, *operation), "operation {operation}: {:?}", verdict.endings[*operation]);
    }
    for endings in verdict.endings.iter().filter(|endings| !endings.is_empty()) {
        assert!(last(endings) < ms(3_000), "{}", last(endings));
        for fault in endings.iter().filter_map(|ending| ending.fault) {
            let is_dead = |rank: Rank| dead.contains(&rank.0);
            assert!(fault.reason == Reason::MemberDead && is_dead(fault.rank_a), "{fault}");
        }
    }
}

/// When something happens: sooner and later within this span, and shortly after it.
fn moments(span: Nanos) -> impl Iterator<Item = Nanos> {
    (0..24).map(move |step| Nanos(span.0 * step / 20))
}

#[test]
fn a_lead_that_dies_fails_its_own_groups_soon_and_no_others() {
    for ranks_on in [&[3, 3][..], &[2, 4], &[5]] {
        for elements in SIZES {
            let work = work(ranks_on.iter().sum(), elements);
            let mut failed = 0;
            for at in moments(span(ranks_on, &work)) {
                let mut world = world(ranks_on, &work);
                world.kill_rank(at, LEAD, true);
                let verdict = passed(world.run());
                only_these_fail(&verdict, &[LEAD]);
                failed += ALL.iter().filter(|operation| !succeeded(&verdict, **operation)).count();
            }
            assert!(failed > 0, "{ranks_on:?}");
        }
    }
}

#[test]
fn the_next_rank_may_die_where_the_node_has_just_come() {
    for elements in SIZES {
        let work = work(6, elements);
        let half = Nanos(span(&[3, 3], &work).0 / 2);
        for gap in [0, 20, 50, 100, 200, 500, 1_000, 100_000, 400_000, 700_000] {
            let mut world = world(&[3, 3], &work);
            world.kill_rank(half, LEAD, true);
            world.kill_rank(half + Nanos::from_micros(gap), 1, true);
            only_these_fail(&passed(world.run()), &[LEAD, 1]);
        }
    }
}

#[test]
fn a_lead_may_die_together_with_the_node_above() {
    for elements in SIZES {
        let work = work(6, elements);
        let span = span(&[3, 3], &work);
        for at in moments(span) {
            for gap in [0, 30, 300] {
                let mut world = world(&[3, 3], &work);
                world.kill_rank(at, LEAD, true);
                world.crash((ROOT, 0), at + Nanos::from_micros(gap), None, true);
                only_these_fail(&passed(world.run()), &[LEAD]);
            }
        }
    }
}

#[test]
fn a_lead_that_was_stopped_is_late_and_the_job_goes_on_elsewhere_until_it_wakes() {
    for elements in SIZES {
        let work = work(6, elements);
        for wakes in [1_000, 6_000, 12_000, 30_000] {
            let mut world = world(&[3, 3], &work);
            world.stop_node(HOST, Nanos(span(&[3, 3], &work).0 / 2), ms(wakes));
            let verdict = passed(world.run());
            assert!((0..6).all(|operation| succeeded(&verdict, operation)), "{wakes}");
            assert_eq!(verdict.met.contains(&"a new epoch"), wakes > 5_000, "{wakes}");
            assert!(!verdict.met.contains(&"a rank seen gone"), "{wakes}");
            // The others do not wait for it where they need not.
            let others = OTHERS.iter().map(|operation| last(&verdict.endings[*operation])).max().expect("some");
            assert!(others < ms(7_000), "{others}");
        }
    }
}

#[test]
fn ranks_that_leave_together_end_their_nodes_and_begin_no_epoch() {
    for ranks_on in [&[3, 3][..], &[4]] {
        let ranks = ranks_on.iter().sum();
        for late in [0, 5, 300, 800] {
            let mut work = work(ranks, 8);
            work.scripts[1].push(Step::Sleep(ms(late)));
            let options = Options { leaves: true, ..options(ranks) };
            let verdict = passed(of(options, ranks_on, &work).run());
            assert!(verdict.met.contains(&"a node that nobody needed any more"), "{late}");
            assert!(!verdict.met.contains(&"a new epoch"), "{late}");
        }
    }
}

#[test]
fn a_lead_that_leaves_while_others_work_lets_its_node_go_on() {
    for ranks_on in [&[3, 3][..], &[4]] {
        let ranks = ranks_on.iter().sum();
        let mut work = work(ranks, 8);
        for rank in 1..ranks as usize {
            // Long after the lead has left.
            let at = work.scripts[rank].iter().position(|step| *step == Step::Post(1)).expect("it posts");
            let (first, rest) = work.scripts[rank].split_at(at);
            let own = [Step::Post(2), Step::Post(4), Step::Wait(vec![0, 2, 4]), Step::Free(0), Step::Sleep(ms(3_000))];
            let rest = rest.iter().filter(|step| !own.contains(step));
            work.scripts[rank] = first.iter().chain(&own).chain(rest).cloned().collect();
        }
        let verdict = passed(of(Options { leaves: true, ..options(ranks) }, ranks_on, &work).run());
        assert!((0..6).all(|operation| succeeded(&verdict, operation)));
        assert!(verdict.met.contains(&"a new epoch") && verdict.met.contains(&"a rank seen gone"));
        assert!(last(&verdict.endings[5]) < ms(3_500), "{}", last(&verdict.endings[5]));
    }
}
