//! Links that carry the stream and not every datagram: the groups that need them fail, in bounded
//! time and with the link's name. The tree has two lower nodes with two ranks each.

use trib_proto::Nanos;
use trib_sim::fabric::Tree;
use trib_sim::network::Gate;
use trib_sim::options::{Options, Trouble};
use trib_sim::random::Rng;
use trib_sim::workload::{Step, Workload};
use trib_sim::world::World;
use trib_wire::Reason;

use super::scenarios::{last, ms, passed, succeeded, sum, world};

/// The links above rank 3 and above the node of ranks 2 and 3: the actor below, the node above, and
/// the ranks by which the lower end is named.
const LINKS: [(usize, u16, (u32, u32)); 2] = [(6, 2, (3, 3)), (2, 0, (2, 3))];

/// Why the only operation, of 32 bytes, fails where a link is like that, and when it is over at all
/// ranks.
fn ends(work: &Workload, trouble: Trouble, link: usize, up: bool, gate: Gate) -> (Reason, Nanos) {
    let mut work = work.clone();
    work.groups[0].disturbed = Some(trouble);
    let (below, node, ranks) = LINKS[link];
    let mut world = world(Options::calm(4), &[2, 2], work);
    world.narrow(below, up, gate);
    let verdict = passed(world.run());
    let endings = &verdict.endings[0];
    assert_eq!(endings.len(), 4);
    let failed = |rank: u32| endings.iter().any(|ending| ending.rank == rank && ending.fault.is_some());
    assert!((ranks.0..=ranks.1).all(failed), "ranks below the link get no result: {endings:?}");
    assert!(!up || (0..4).all(failed), "what does not get up is in no result: {endings:?}");
    let faults: Vec<_> = endings.iter().filter_map(|ending| ending.fault).collect();
    for fault in &faults {
        assert_eq!(fault, &faults[0]);
        assert_eq!((fault.node.0, (fault.rank_a.0, fault.rank_b.0)), (node, ranks), "{fault}");
    }
    (faults[0].reason, last(&verdict.endings[0]))
}

#[test]
fn what_the_kernel_refuses_as_too_long_fails_the_group_at_once() {
    let work = Workload::plain(4, &[sum(8)]);
    for link in [0, 1] {
        for up in [true, false] {
            let (reason, at) = ends(&work, Trouble::ShortPath(true), link, up, Gate::Known(24));
            assert!(reason == Reason::DatagramTooLong && at < ms(100), "{link} {up}: {reason:?} at {at}");
        }
    }
}

#[test]
fn long_datagrams_that_vanish_on_the_way_up_are_found_out_in_seconds() {
    for link in [0, 1] {
        let work = Workload::plain(4, &[sum(8)]);
        let (reason, at) = ends(&work, Trouble::ShortPath(false), link, true, Gate::UpTo(24));
        assert_eq!(reason, Reason::DatagramTooLong);
        assert!(ms(5_000) < at && at < ms(8_000), "{link}: {at}");
    }
}

#[test]
fn results_that_vanish_on_the_way_down_are_found_out_in_seconds() {
    for (link, gate) in [(0, Gate::UpTo(24)), (1, Gate::UpTo(24)), (0, Gate::Shut), (1, Gate::Shut)] {
        let work = Workload::plain(4, &[sum(8)]);
        let (reason, at) = ends(&work, Trouble::NoDatagrams, link, false, gate);
        assert_eq!(reason, Reason::ResultLost);
        assert!(ms(8_000) < at && at < ms(11_000), "{link} {gate:?}: {at}");
    }
}

#[test]
fn after_an_epoch_the_lower_end_finds_out_first_that_results_vanish() {
    let mut work = Workload::plain(4, &[sum(8)]);
    work.groups[0].disturbed = Some(Trouble::ShortPath(false));
    work.scripts.iter_mut().for_each(|script| script.insert(1, Step::Sleep(ms(1_000))));
    let options = Options { recovers: true, candidates: 2, ..Options::calm(4) };
    let mut world = world(options, &[2, 2], work);
    let rank_3 = world.tree().nodes.len() * 2 + 3;
    world.narrow(rank_3, false, Gate::UpTo(24));
    world.depart((1, 0), ms(100));
    let verdict = passed(world.run());
    let ending = verdict.endings[0].iter().find(|ending| ending.rank == 3).expect("it has ended");
    let fault = ending.fault.expect("its result never comes");
    assert_eq!((fault.reason, fault.node.0, fault.rank_a.0), (Reason::DatagramsBlocked, 2, 3));
    assert!(ms(10_000) < ending.at && ending.at < ms(13_000), "{}", ending.at);
}

#[test]
fn a_node_that_answers_on_its_stream_alone_is_found_out_in_seconds() {
    for link in [0, 1] {
        // Where nothing gets up, there is no result. Where nothing gets down, there is none either
        // while a rank is late.
        let all = Workload::plain(4, &[sum(8)]);
        let mut late = all.clone();
        late.scripts[0].insert(1, Step::Sleep(ms(30_000)));
        for (work, up) in [(all, true), (late, false)] {
            let (reason, at) = ends(&work, Trouble::NoDatagrams, link, up, Gate::Shut);
            assert_eq!(reason, Reason::DatagramsBlocked);
            assert!(ms(10_000) < at && at < ms(31_000), "{link}: {at}");
        }
    }
}

#[test]
fn a_way_that_loses_half_of_everything_is_slow_and_no_fault() {
    for seed in 0..20 {
        let mut work = Workload::plain(4, &[sum(8); 40]);
        work.scripts[1].insert(3, Step::Sleep(ms(40_000)));
        let mut options = Options::calm(4);
        options.quality.loss = 500;
        let verdict = passed(World::new(0, options, Tree::regular(&[2, 2]), work, Rng::new(seed), false).run());
        assert!((0..40).all(|op| succeeded(&verdict, op)), "seed {seed}");
    }
}
