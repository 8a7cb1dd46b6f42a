use std::path::Path;

use super::*;
use crate::Topology;
use crate::graph::{LinkRate, Shape};
use crate::predict::{Constants, JobGround, Model, Ranks, forecast, laboratory_file, predict_job};
use crate::trees::Loads;
use trib_messages::levels::Levels;
use trib_messages::prediction::Prediction;
use trib_wire::ids::Rank;

fn laboratory() -> Constants {
    Constants::parse(&laboratory_file(), "laboratory.toml").unwrap()
}

fn predicted(text: &str, hosts: &[String], constants: &Constants) -> Prediction {
    predicted_with(Levels::None, text, hosts, constants)
}

fn predicted_with(levels: Levels, text: &str, hosts: &[String], constants: &Constants) -> Prediction {
    let topology = Topology::parse(text, Path::new("test.toml")).unwrap();
    let program = crate::Program { levels, ..crate::Program::flat(hosts) };
    let plan = crate::plan(&topology, &program, &topology.idle_loads()).unwrap();
    let ground = JobGround { topology: &topology, hosts, lanes: &[(0, &plan)], stripe_threshold: 1 << 17, workers: 1 };
    predict_job(&ground, constants).unwrap().0
}

// Two leaves below a spine, with two hosts on each, given by hand as a laboratory does.
const BY_HAND: &str = "[[node]]\nname = \"spine\"\n\
    [[node]]\nname = \"leaf0\"\nparent = \"spine\"\nrate = \"400mbit\"\n\
    [[node]]\nname = \"leaf1\"\nparent = \"spine\"\nrate = \"400mbit\"\n\
    [[host]]\nname = \"h0\"\nleaf = \"leaf0\"\nrate = \"200mbit\"\n\
    [[host]]\nname = \"h1\"\nleaf = \"leaf0\"\nrate = \"200mbit\"\n\
    [[host]]\nname = \"h2\"\nleaf = \"leaf1\"\nrate = \"200mbit\"\n\
    [[host]]\nname = \"h3\"\nleaf = \"leaf1\"\nrate = \"200mbit\"\n";

fn in_turn(each: usize) -> Vec<String> {
    (0..4 * each).map(|rank| format!("h{}", rank % 4)).collect()
}

#[test]
fn four_ranks_on_each_host_leave_long_vectors_to_the_hosts_and_fewer_do_not() {
    for (each, long) in [(1, true), (2, true), (4, false)] {
        let prediction = predicted(BY_HAND, &in_turn(each), &laboratory());
        let all: Vec<Rank> = (0..4 * each as u32).map(Rank).collect();
        let shape = prediction.of(&all).unwrap();
        assert_eq!((shape.hosts, shape.ranks_per_host, shape.streams), (4, each as u32, each as u32));
        assert_eq!(shape.has_allreduce(4 << 20), long, "{each} ranks: {shape:?}");
        assert!(prediction.is_valid(4 * each));
        // The leaders, one on each host, are judged as if there were no other ranks.
        let leaders: Vec<Rank> = (0..4).map(Rank).collect();
        assert!(prediction.of(&leaders).unwrap().has_allreduce(4 << 20));
    }
}

#[test]
fn below_a_node_of_their_host_four_ranks_have_the_tree_for_long_vectors_as_one_has() {
    let of = |levels, each| {
        let prediction = predicted_with(levels, BY_HAND, &in_turn(each), &laboratory());
        let all: Vec<Rank> = (0..4 * each as u32).map(Rank).collect();
        prediction.of(&all).unwrap().clone()
    };
    let (one, four, flat) = (of(Levels::Numa, 1), of(Levels::Numa, 4), of(Levels::None, 4));
    assert!(one.has_allreduce(16 << 20) && four.has_allreduce(16 << 20), "{four:?}");
    assert!(!flat.has_allreduce(16 << 20), "{flat:?}");
    assert_eq!(one, of(Levels::None, 1), "one rank on each host has no node there");
    // The row of a part with two ranks on each host is below the same nodes.
    let prediction = predicted_with(Levels::Host, BY_HAND, &in_turn(4), &laboratory());
    let half: Vec<Rank> = (0..8).map(Rank).collect();
    assert!(prediction.of(&half).unwrap().has_allreduce(16 << 20));
}

#[test]
fn every_range_is_where_the_tree_is_predicted_to_be_at_least_as_fast() {
    let graph = Shape::FatTree2 { hosts: 32, ports: 8 }.graph(LinkRate::gbit(100)).unwrap();
    let ranks: Vec<usize> = graph.hosts().flat_map(|host| [host, host]).collect();
    for model in [Model::server(), Model::laboratory()] {
        let forecast = forecast(&graph, Ranks::flat(&ranks), 1, 1, &model).unwrap();
        let tree = &forecast.candidates[0];
        let others: Vec<Line> = forecast.candidates[1..].iter().map(|way| (way.latency, way.byte)).collect();
        let found = range((tree.latency, tree.byte), &others, 0, u64::MAX);
        for bytes in (0..40).map(|power| 1u64 << power) {
            let better = forecast.choice(bytes).way.is_tree();
            assert_eq!(found.is_some_and(|range| range.contains(bytes)), better, "{bytes} of {found:?}");
        }
    }
}

#[test]
fn lines_meet_where_they_should() {
    let none: Option<Range> = None;
    assert_eq!(range((2.0, 1.0), &[(1.0, 1.0)], 0, u64::MAX), none, "later and no steeper: never");
    assert_eq!(
        range((1.0, 1.0), &[(1.0, 1.0)], 0, u64::MAX),
        Some(Range { from: 0, to: u64::MAX }),
        "as fast is enough"
    );
    assert_eq!(range((1.0, 2.0), &[(5.0, 1.0)], 0, u64::MAX), Some(Range { from: 0, to: 4 }));
    assert_eq!(range((5.0, 1.0), &[(1.0, 2.0)], 0, u64::MAX), Some(Range { from: 4, to: u64::MAX }));
    assert_eq!(range((3.0, 2.0), &[(1.0, 3.0), (23.0, 1.0)], 0, u64::MAX), Some(Range { from: 2, to: 20 }));
    assert_eq!(range((3.0, 2.0), &[(1.0, 3.0), (23.0, 1.0)], 21, u64::MAX), none);
}

#[test]
fn closed_forms_never_flatter_the_tree_beside_the_exact_ones() {
    // Nothing blocks here, so the two may differ by rounding only.
    let graph = Shape::FatTree2 { hosts: 8, ports: 8 }.graph(LinkRate::gbit(10)).unwrap();
    let model = Model::server();
    for hosts in [2usize, 4, 8] {
        for each in [1usize, 2, 4] {
            let chosen: Vec<usize> = graph.hosts().take(hosts).collect();
            let blocks: Vec<usize> = chosen.iter().flat_map(|host| vec![*host; each]).collect();
            let turns: Vec<usize> = chosen.iter().copied().cycle().take(hosts * each).collect();
            for (ranks, streams) in [(blocks, 1), (turns, each)] {
                let members = Members::new(&graph, &ranks, &model);
                assert_eq!(members.ring_streams(), streams);
                let rate = members.rate(chosen[0]);
                let shape = super::Shape { hosts, each, streams, rate };
                for (exact, closed) in
                    [(members.allreduces(), shape.allreduces(&model)), (members.reduces(), shape.reduces(&model))]
                {
                    assert_eq!(exact.len(), closed.len());
                    for (way, (latency, byte)) in exact.iter().zip(&closed) {
                        let word =
                            format!("{} of {hosts} hosts with {each}, {streams}: {way:?}, {latency} {byte}", way.way);
                        assert!((way.latency - latency).abs() < 1e-9, "{word}");
                        assert!(*byte <= way.byte * (1.0 + 1e-9), "{word}");
                        assert!(*byte >= way.byte * 0.5, "{word}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_same_job_gets_the_same_table_whatever_else_happens() {
    let hosts = in_turn(3);
    let first = predicted(BY_HAND, &hosts, &Constants::server());
    for _ in 0..20 {
        assert_eq!(predicted(BY_HAND, &hosts, &Constants::server()), first);
    }
    assert!(first.shapes.len() <= trib_messages::prediction::SHAPES_MAX);
}

#[test]
fn hosts_that_no_entry_names_and_links_of_unknown_rate_are_predicted_for_too() {
    let text = "[[node]]\nname = \"root\"\n[[host]]\nname = \"*\"\nleaf = \"root\"\n";
    let topology = Topology::parse(text, Path::new("test.toml")).unwrap();
    let hosts = ["a", "b", "root", "a"].map(String::from);
    let plan = crate::plan(&topology, &crate::Program::flat(&hosts), &Loads::default()).unwrap();
    let ground =
        JobGround { topology: &topology, hosts: &hosts, lanes: &[(0, &plan)], stripe_threshold: 0, workers: 1 };
    let (prediction, status) = predict_job(&ground, &Constants::server()).unwrap();
    assert_eq!(prediction.hosts, [0, 1, 2, 0]);
    assert_eq!(status.assumed_rate.as_deref(), Some("100gbit"));
    assert!(status.constants.contains("defaults for servers"));
    let alone = ["a", "a"].map(String::from);
    let plan = crate::plan(&topology, &crate::Program::flat(&alone), &Loads::default()).unwrap();
    let ground = JobGround { hosts: &alone, lanes: &[(0, &plan)], ..ground };
    assert!(predict_job(&ground, &Constants::server()).is_none(), "one host needs no tree");
}

proptest::proptest! {
    // Every member has the ticket as text, and the members in the communicator's order.
    #[test]
    fn all_members_of_a_communicator_read_the_same(
        each in 1usize..5,
        order in proptest::sample::subsequence((0..20u32).collect::<Vec<_>>(), 2..20),
        turn in 0usize..20,
    ) {
        let mut members: Vec<Rank> = order.into_iter().filter(|rank| (*rank as usize) < 4 * each).map(Rank).collect();
        let length = members.len().max(1);
        members.rotate_left(turn % length);
        let prediction = predicted(BY_HAND, &in_turn(each), &Constants::server());
        let ticket = serde_json::to_string(&prediction).unwrap();
        let verdicts: Vec<_> = members
            .iter()
            .map(|_| serde_json::from_str::<Prediction>(&ticket).unwrap().of(&members).cloned())
            .collect();
        proptest::prop_assert!(verdicts.windows(2).all(|pair| pair[0] == pair[1]));
        let hosts: std::collections::BTreeSet<u32> = members.iter().map(|rank| prediction.hosts[rank.0 as usize]).collect();
        if hosts.len() > 1 {
            proptest::prop_assert!(verdicts[0].is_some(), "every part of the job has a row");
        }
    }
}

// The fabric of docs/performance.md: eight hosts of 500 Mbit/s below two leaves, one rank on each.
#[test]
fn one_rank_on_each_host_has_the_tree_wherever_the_comparison_measured_it_to_be_faster() {
    let mut text = "[[node]]\nname = \"spine\"\n".to_owned();
    for leaf in 0..2 {
        text += &format!("[[node]]\nname = \"leaf{leaf}\"\nparent = \"spine\"\nrate = \"2gbit\"\n");
    }
    for host in 0..8 {
        text += &format!("[[host]]\nname = \"h{host}\"\nleaf = \"leaf{}\"\nrate = \"500mbit\"\n", host / 4);
    }
    let hosts: Vec<String> = (0..8).map(|host| format!("h{host}")).collect();
    let prediction = predicted(&text, &hosts, &laboratory());
    let whole = prediction.of(&(0..8).map(Rank).collect::<Vec<_>>()).unwrap();
    let any = [Range { from: 0, to: u64::MAX }];
    assert_eq!((&whole.allreduce[..], &whole.reduce[..], whole.barrier), (&any[..], &any[..], true));
}
