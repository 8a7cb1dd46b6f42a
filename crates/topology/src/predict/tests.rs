use std::path::Path;

use super::*;
use crate::graph::{LinkRate, Shape};
use crate::hostlist::expand;

fn fabric(text: &str) -> Graph {
    Graph::parse(text, Path::new("test.toml"), LinkRate::DEFAULT).unwrap()
}

// The laboratory of docs/performance.md: two leaves with four hosts each at 500 Mbit/s below one
// spine.
fn laboratory(trunk: &str) -> Graph {
    fabric(&format!(
        "[[switch]]\nname = \"leaf[0-1]\"\n[[switch]]\nname = \"spine\"\n\
         [[host]]\nname = \"h[0-3]\"\nswitch = \"leaf0\"\nrate = \"500mbit\"\n\
         [[host]]\nname = \"h[4-7]\"\nswitch = \"leaf1\"\nrate = \"500mbit\"\n\
         [[link]]\nends = [\"leaf[0-1]\", \"spine\"]\nrate = \"{trunk}\"\n"
    ))
}

fn named(graph: &Graph, names: &str) -> Vec<usize> {
    expand(names).unwrap().iter().map(|name| graph.find(name).unwrap()).collect()
}

fn of(forecast: &Forecast, way: Way) -> &Candidate {
    forecast.candidates.iter().find(|candidate| candidate.way == way).unwrap()
}

fn close(predicted: f64, measured: f64) {
    assert!((predicted / measured - 1.0).abs() < 0.12, "predicted {predicted}, measured {measured}");
}

#[test]
fn with_the_constants_of_its_machine_the_model_tells_what_the_comparison_measured() {
    let graph = laboratory("2gbit");
    let forecast = forecast(&graph, Ranks::flat(&named(&graph, "h[0-7]")), 4, 1, &Model::laboratory()).unwrap();
    let tree = of(&forecast, Way::Trees(1));
    for (bytes, microseconds) in [(8, 82.0), (65_536, 1073.0), (1 << 20, 16_973.0), (16 << 20, 273_983.0)] {
        close(tree.time(bytes) * 1e6, microseconds);
    }
    close(of(&forecast, Way::Ring).time(1 << 20) * 1e6, 29_662.0);
    close(of(&forecast, Way::Doubling).time(8) * 1e6, 101.0);
    assert_eq!(forecast.trees.len(), 1, "there is one spine");
}

#[test]
fn blocking_trunks_slow_rings_of_interleaved_ranks_down_and_no_tree() {
    let graph = laboratory("500mbit");
    let share = |candidate: &Candidate| 8.0 / candidate.byte / 500e6;
    let in_order = forecast(&graph, Ranks::flat(&named(&graph, "h[0-7]")), 1, 1, &Model::laboratory()).unwrap();
    close(share(of(&in_order, Way::Trees(1))), 0.979);
    close(share(of(&in_order, Way::Ring)), 0.488);
    let interleaved = named(&graph, "h0,h4,h1,h5,h2,h6,h3,h7");
    let forecast = forecast(&graph, Ranks::flat(&interleaved), 1, 1, &Model::laboratory()).unwrap();
    close(share(of(&forecast, Way::Trees(1))), 0.984);
    close(share(of(&forecast, Way::Ring)), 0.141);
    assert!(of(&forecast, Way::Ring).limit.contains("leaf0"), "{}", of(&forecast, Way::Ring).limit);
}

// Four hosts with 200 Mbit/s below two leaves and vectors of 4 MiB; neighbours in rank share a
// host. This was measured with Open MPI 4.1 as it is installed, and with its `han` (which for one
// rank on each host is what is installed).
#[test]
fn with_several_ranks_on_a_host_the_model_tells_who_was_measured_to_be_faster() {
    let graph = fabric(
        "[[switch]]\nname = \"leaf[0-1]\"\n[[switch]]\nname = \"spine\"\n\
         [[host]]\nname = \"h[0-1]\"\nswitch = \"leaf0\"\nrate = \"200mbit\"\n\
         [[host]]\nname = \"h[2-3]\"\nswitch = \"leaf1\"\nrate = \"200mbit\"\n\
         [[link]]\nends = [\"leaf[0-1]\", \"spine\"]\nrate = \"400mbit\"\n",
    );
    let hosts = named(&graph, "h[0-3]");
    for (each, ours, below_a_node, installed, han) in
        [(1, 177.0, 169.0, 524.0, None), (2, 355.0, 170.0, 982.0, Some(640.0)), (4, 713.0, 174.0, 1767.0, Some(658.0))]
    {
        let ranks: Vec<usize> = hosts.iter().copied().cycle().take(4 * each).collect();
        let forecast = forecast(&graph, Ranks::flat(&ranks), 1, 1, &Model::laboratory()).unwrap();
        let ms = |way| of(&forecast, way).time(4 << 20) * 1e3;
        close(ms(Way::Trees(1)), ours);
        let level = super::forecast(&graph, Ranks { hosts: &ranks, levels: true }, 1, 1, &Model::laboratory()).unwrap();
        close(of(&level, Way::Trees(1)).time(4 << 20) * 1e3, below_a_node);
        assert!(level.choice(4 << 20).way.is_tree());
        let halving = ms(Way::Halving);
        assert!((halving / installed - 1.0).abs() < 0.16, "{each} ranks: predicted {halving}, measured {installed}");
        if let Some(han) = han {
            close(ms(Way::LeadersDoubling), han);
        }
        assert_eq!(forecast.choice(4 << 20).way.is_tree(), each < 4, "{each} ranks on each host");
    }
}

// At 8 bytes and with four ranks on each host the tree was measured to be faster than Open MPI as
// it is installed and than its `han` on eight hosts, and slower than `han` on four.
#[test]
fn with_several_ranks_on_a_host_the_model_tells_who_is_faster_for_short_vectors() {
    let graph = laboratory("2gbit");
    for (names, tree_is_faster) in [("h[0-7]", true), ("h[0-1,4-5]", false)] {
        let ranks: Vec<usize> = named(&graph, names).iter().flat_map(|host| vec![*host; 4]).collect();
        let forecast = forecast(&graph, Ranks { hosts: &ranks, levels: true }, 1, 1, &Model::laboratory()).unwrap();
        assert_eq!(forecast.choice(8).way.is_tree(), tree_is_faster, "{names}: {:?}", forecast.candidates);
    }
}

#[test]
fn a_node_of_a_host_sends_one_vector_and_is_bound_by_a_processor_on_fast_links() {
    let graph = laboratory("2gbit");
    let hosts = named(&graph, "h[0-7]");
    let of = |each: usize, levels, model: &Model| {
        let ranks: Vec<usize> = hosts.iter().flat_map(|host| vec![*host; each]).collect();
        forecast(&graph, Ranks { hosts: &ranks, levels }, 1, 1, model).unwrap().candidates[0].clone()
    };
    let model = Model::laboratory();
    let (one, four) = (of(1, true, &model), of(4, true, &model));
    assert_eq!(one, of(1, false, &model));
    assert!((four.byte / one.byte - 1.0).abs() < 1e-9, "{} {}", four.byte, one.byte);
    let within = 2.0 * (3.0 * model.local_step + model.message);
    assert!((four.latency - one.latency - within).abs() < 1e-9, "three steps within the host");
    assert!((of(4, false, &model).byte / one.byte - 4.0).abs() < 1e-9);
    let slow = Model { node_byte: 1e-8, ..model };
    let bound = of(8, true, &slow);
    assert!((bound.byte - 2.0 * 9.0 * 1e-8).abs() < 1e-12, "{}", bound.byte);
    assert_eq!(bound.limit, "a rank of h7, with 8 vectors each way from below");
}

#[test]
fn lanes_over_one_tree_take_as_many_workers_as_there_are() {
    let graph = Shape::FatTree2 { hosts: 32, ports: 8 }.graph(LinkRate::gbit(400)).unwrap();
    let all: Vec<usize> = graph.hosts().collect();
    let byte = |lanes, workers: f64| {
        let model = Model { workers, host_byte: 0.0, ..Model::server() };
        let forecast = forecast(&graph, Ranks::flat(&all), 1, lanes, &model).unwrap();
        of(&forecast, Way::Lanes(lanes)).byte
    };
    let close_to = |value: f64, factor: f64| assert!((value * factor / byte(2, 1.0) - 1.0).abs() < 1e-6);
    close_to(byte(8, 4.0), 4.0);
    close_to(byte(2, 4.0), 2.0);
    close_to(byte(8, 1.0), 1.0);
}

#[test]
fn ranks_of_one_host_are_left_to_its_memory() {
    let graph = laboratory("2gbit");
    let ranks = named(&graph, "h3,h3,h3,h3");
    let forecast = forecast(&graph, Ranks::flat(&ranks), 1, 1, &Model::server()).unwrap();
    assert_eq!(forecast.choice(8).way, Way::Memory);
    assert_eq!(forecast.choice(1 << 20).way, Way::Memory);
}

// A switch without a node, with eight hosts and some servers.
fn servers(count: u32) -> Graph {
    fabric(&format!(
        "[[switch]]\nname = \"s\"\nnode = false\n[[host]]\nname = \"h[0-7]\"\nswitch = \"s\"\nrate = \"10gbit\"\n\
         [[server]]\nname = \"an[1-{count}]\"\nswitch = \"s\"\nrate = \"10gbit\"\n"
    ))
}

#[test]
fn servers_with_one_nic_share_the_vector_and_too_few_of_them_are_not_chosen() {
    let fast = Model { node_byte: 0.0, ..Model::laboratory() };
    let planned = |count: u32| {
        let graph = servers(count);
        forecast(&graph, Ranks::flat(&named(&graph, "h[0-7]")), 8, 1, &fast).unwrap()
    };
    let eight = planned(8);
    assert_eq!(eight.trees.len(), 8);
    let (one, all) = (of(&eight, Way::Trees(1)), of(&eight, Way::Trees(8)));
    assert!((one.byte / all.byte - 8.0).abs() < 1e-6, "each NIC takes an eighth");
    assert_eq!(one.limit, "the NIC of an1, 10gbit, 8 vectors each way");
    assert_eq!(eight.choice(64 << 20).way, Way::Trees(8));
    assert_eq!(eight.choice(8).way, Way::Trees(1), "of equals the simplest");
    assert_eq!(planned(2).choice(64 << 20).way, Way::Ring, "slower than the hosts alone is never chosen");
}

#[test]
fn a_nodes_processor_bounds_what_fast_links_promise() {
    let graph = Shape::FatTree2 { hosts: 32, ports: 8 }.graph(LinkRate::gbit(400)).unwrap();
    let forecast =
        forecast(&graph, Ranks::flat(&graph.hosts().collect::<Vec<_>>()), 1, 1, &Model::laboratory()).unwrap();
    let tree = of(&forecast, Way::Trees(1));
    assert!((tree.byte - 8.0 * 2.0 * 0.27e-9).abs() < 1e-15, "the spine has eight children");
    assert_eq!(tree.limit, "the processor of node spine0, 8 vectors each way from below");
}

#[test]
fn one_host_needs_nobody() {
    let graph = laboratory("2gbit");
    let forecast = forecast(&graph, Ranks::flat(&named(&graph, "h3")), 4, 1, &Model::laboratory()).unwrap();
    assert_eq!(forecast.candidates.len(), 1);
}

#[test]
fn jobs_fit_until_hosts_or_trunks_are_used_up() {
    let fat = Shape::FatTree2 { hosts: 32, ports: 8 }.graph(LinkRate::DEFAULT).unwrap();
    assert_eq!(fit(&fat, &named(&fat, "h[0-7]"), 1).unwrap(), Fit { jobs: 4, stop: Stop::Hosts });
    assert_eq!(fit(&fat, &named(&fat, "h[0-7]"), 4).unwrap(), Fit { jobs: 4, stop: Stop::Hosts });
    let thin = laboratory("500mbit");
    assert_eq!(fit(&thin, &named(&thin, "h0,h4"), 1).unwrap(), Fit { jobs: 2, stop: Stop::Links });
    assert_eq!(fit(&thin, &named(&thin, "h0,h1"), 1).unwrap(), Fit { jobs: 4, stop: Stop::Hosts });
    assert_eq!(fit(&servers(1), &named(&servers(1), "h[0-3]"), 1).unwrap(), Fit { jobs: 1, stop: Stop::Links });
    assert_eq!(fit(&servers(2), &named(&servers(2), "h[0-3]"), 1).unwrap(), Fit { jobs: 2, stop: Stop::Hosts });
}

#[test]
fn reports_have_names() {
    let graph = laboratory("2gbit");
    let forecast = forecast(&graph, Ranks::flat(&named(&graph, "h[0-4]")), 1, 1, &Model::laboratory()).unwrap();
    let report = TreeReport::new(&graph, &forecast.trees[0]);
    assert_eq!((report.root.as_str(), report.levels), ("spine", 2));
    let rows: Vec<(&str, u32, &str)> =
        report.branches.iter().map(|branch| (branch.switch.as_str(), branch.depth, branch.hosts.as_str())).collect();
    assert_eq!(rows, [("spine", 0, ""), ("leaf0", 1, "h[0-3]"), ("leaf1", 1, "h4")]);
    assert_eq!(report.branches[1].rate, Some(LinkRate::gbit(2)));
}
