//! Trees of jobs on a fabric that is given as a graph.

use std::time::{Duration, Instant};

use crate::common::{Fabric, Manner, Node, eventually};
use trib_messages::node::NodeMessage;
use trib_messages::reply::Resource;
use trib_messages::request::{QuotaAsk, Request};

const SLURM: &str = "SwitchName=leaf0 Nodes=a[0-1]\nSwitchName=leaf1 Nodes=b[0-1]\nSwitchName=lone Nodes=c\n\
    SwitchName=spine0 Switches=leaf[0-1]\nSwitchName=spine1 Switches=leaf[0-1]\n";

fn slurm() -> (Fabric, [Node; 4]) {
    let fabric = Fabric::serving("topology.conf", SLURM);
    let nodes = ["leaf0", "leaf1", "spine0", "spine1"].map(|name| fabric.node(name, Manner::Installs));
    (fabric, nodes)
}

#[test]
fn concurrent_jobs_take_different_spines_and_leave_them_when_they_end() {
    let (fabric, _nodes) = slurm();
    let (user, other) = (fabric.user(), fabric.user());
    let job = |hosts: &[&str]| {
        let ticket = user.job(hosts, QuotaAsk::default()).unwrap();
        let names: Vec<String> = ticket.nodes.iter().map(|node| node.name().to_owned()).collect();
        (ticket.job, names)
    };
    let (first, names) = job(&["a0", "b0"]);
    assert_eq!(names, ["spine0", "leaf0", "leaf1"]);
    let (_, names) = job(&["a1", "b1"]);
    assert_eq!(names, ["spine1", "leaf0", "leaf1"]);
    user.ask(&Request::EndJob { job: first, why: None });
    assert_eq!(job(&["a1", "b0"]).1, ["spine0", "leaf0", "leaf1"]);
    // A refused request takes nothing: both spines still have one job each, so the first one in the
    // file is taken.
    let too_much = QuotaAsk { window: Some(65), ..QuotaAsk::default() };
    other.job(&["a0", "b0"], too_much).unwrap_err();
    assert_eq!(job(&["a0", "b1"]).1[0], "spine0");
}

#[test]
fn a_job_without_a_tree_or_a_node_is_refused_with_the_reason() {
    let (fabric, _nodes) = slurm();
    let refused = |hosts: &[&str]| fabric.user().job(hosts, QuotaAsk::default()).unwrap_err();
    let apart = refused(&["a0", "c"]);
    assert_eq!(apart.resource, Resource::Node);
    assert!(apart.text.contains("no switch with an aggregation node reaches all of the hosts"), "{apart}");
    let missing = refused(&["c"]);
    assert!(missing.text.contains("aggregation node lone of the job's tree is not connected"), "{missing}");
    let unknown = refused(&["x"]);
    assert_eq!((unknown.resource, unknown.holder.as_deref()), (Resource::Host, Some("x")));
}

#[test]
fn a_job_goes_around_nodes_that_are_away_and_that_is_told() {
    let (fabric, [leaf0, leaf1, spine0, spine1]) = slurm();
    let (user, other) = (fabric.user(), fabric.user());
    let away = |names: &[&str]| {
        eventually("the manager sees who is away", || {
            let nodes = other.status().nodes;
            names.iter().all(|name| nodes.iter().any(|node| node.name == *name && !node.connected))
        });
    };
    let job = |hosts: &[&str]| {
        let ticket = user.job(hosts, QuotaAsk::default()).unwrap();
        let names: Vec<String> = ticket.nodes.iter().map(|node| node.name().to_owned()).collect();
        (names, other.status().jobs.pop().unwrap().around)
    };
    assert_eq!(job(&["a0", "b0"]), (["spine0", "leaf0", "leaf1"].map(String::from).to_vec(), vec![]));
    drop(spine1);
    away(&["spine1"]);
    // The idle spine would be the better one.
    assert_eq!(job(&["a1", "b1"]), (["spine0", "leaf0", "leaf1"].map(String::from).to_vec(), vec!["spine1".into()]));
    drop(spine0);
    away(&["spine0"]);
    // Data pass through a spine whose node is away, while a leaf's node is the root.
    let (names, around) = job(&["a0", "b0"]);
    assert_eq!((names, around.len()), (["leaf0", "leaf1"].map(String::from).to_vec(), 1));
    // A job that needs none of these nodes is admitted as usual.
    assert_eq!(job(&["a0", "a1"]), (vec!["leaf0".into()], vec![]));
    drop((leaf0, leaf1));
    away(&["leaf0", "leaf1"]);
    let refusal = user.job(&["a0", "b0"], QuotaAsk::default()).unwrap_err();
    assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Node, 3, 0));
    assert!(refusal.text.contains("no tree around it would do"), "{refusal}");
    assert!(refusal.holder.is_some_and(|holder| holder.contains("leaf0") && holder.contains("leaf1")));
}

#[test]
fn a_job_goes_around_a_node_that_is_connected_and_does_not_answer() {
    let fabric = Fabric::serving("topology.conf", SLURM);
    let _nodes = ["leaf0", "leaf1", "spine1"].map(|name| fabric.node(name, Manner::Installs));
    let _stopped = fabric.node("spine0", Manner::Ignores);
    let (user, other) = (fabric.user(), fabric.user());
    let job = |hosts: &[&str]| {
        let began = Instant::now();
        let ticket = user.job(hosts, QuotaAsk::default()).unwrap();
        let took = began.elapsed();
        let around = other.status().jobs.pop().unwrap().around;
        user.ask(&Request::EndJob { job: ticket.job, why: None });
        (ticket.nodes[0].name().to_owned(), around, took)
    };
    // The first job finds it out while it waits for the node, and the others know it then.
    let (root, around, took) = job(&["a0", "b0"]);
    assert_eq!((root.as_str(), &around[..]), ("spine1", &["spine0".to_owned()][..]));
    assert!(took < Duration::from_secs(5), "{took:?}");
    let (root, around, took) = job(&["a1", "b1"]);
    assert_eq!((root.as_str(), around.len()), ("spine1", 1));
    assert!(took < Duration::from_secs(2), "{took:?}: nobody waits for it again");
    let silent =
        |name| other.status().nodes.into_iter().any(|node| node.name == name && node.silent_since_ms.is_some());
    assert!(silent("spine0") && !silent("spine1"));
}

#[test]
fn trees_of_an_earlier_managers_jobs_count_until_they_end() {
    let (mut fabric, nodes) = slurm();
    let roots =
        |fabric: &Fabric| -> Vec<String> { fabric.user().status().jobs.into_iter().map(|job| job.root).collect() };
    let user = fabric.user();
    let first = user.job(&["a0", "b0"], QuotaAsk::default()).unwrap().job;
    assert_eq!(roots(&fabric), ["spine0"]);
    drop(nodes);
    fabric.stop_manager();
    fabric.start_manager();
    let nodes = ["leaf0", "leaf1", "spine0", "spine1"].map(|name| {
        let node = fabric.node(name, Manner::Installs);
        let jobs = if name == "spine1" { vec![] } else { vec![first] };
        node.channel.send(&NodeMessage::Hosts { jobs }).unwrap();
        node
    });
    // The first spine in the file is taken by a job that this manager has never planned.
    let user = fabric.user();
    let second = user.job(&["a1", "b1"], QuotaAsk::default()).unwrap().job;
    assert_eq!(roots(&fabric), ["spine0", "spine1"]);
    for node in &nodes[..3] {
        node.channel.send(&NodeMessage::Left { job: first }).unwrap();
    }
    eventually("the adopted job has ended", || roots(&fabric) == ["spine1"]);
    user.job(&["a0", "b1"], QuotaAsk::default()).unwrap();
    assert_eq!(roots(&fabric), ["spine1", "spine0"]);
    user.ask(&Request::EndJob { job: second, why: None });
    assert_eq!(fabric.user().jobs().past.len(), 2);
}

#[test]
fn the_lanes_of_a_job_take_both_spines_and_give_them_back() {
    let (fabric, nodes) = slurm();
    let user = fabric.user();
    let lanes = |lanes, trees| QuotaAsk { lanes: Some(lanes), trees, ..QuotaAsk::default() };
    let ticket = user.job(&["a0", "b0"], lanes(3, None)).unwrap();
    let names: Vec<&str> = ticket.nodes.iter().map(|node| node.name()).collect();
    let tree = |spine| [spine, "leaf0", "leaf1"];
    assert_eq!(names, [tree("spine0"), tree("spine1"), tree("spine0")].concat());
    assert_eq!(ticket.lanes.iter().map(|lane| lane.leaves[1].node.0).collect::<Vec<_>>(), [2, 5, 8]);
    // It is one job: its nodes have the grants of all lanes before the ticket comes, and it has one
    // end.
    assert_eq!((0..3).map(|_| nodes[0].grant()).filter(|grant| grant.job == ticket.job).count(), 3);
    assert_eq!((0..2).map(|_| nodes[2].grant().parent).collect::<Vec<_>>(), [None, None]);
    assert_eq!(nodes[3].grant().node.0, 3);
    assert_eq!(user.status().jobs.len(), 1);
    // A wish for one tree gives one tree, and a wish for more than there are is refused.
    let one = user.job(&["a0", "b0"], lanes(2, Some(1))).unwrap();
    assert_eq!(one.nodes[0].name(), one.nodes[3].name());
    let refusal = user.job(&["a0", "b0"], lanes(3, Some(3))).unwrap_err();
    assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Trees, 3, 2), "{refusal}");
    let refusal = user.job(&["a0", "b0"], lanes(9, None)).unwrap_err();
    assert_eq!((refusal.resource, refusal.available), (Resource::Lanes, 8), "{refusal}");
    for job in [ticket.job, one.job] {
        user.ask(&Request::EndJob { job, why: None });
    }
    // What was refused and what has ended takes nothing, so the first spine in the file is taken
    // again.
    assert_eq!(user.job(&["a1", "b1"], QuotaAsk::default()).unwrap().nodes[0].name(), "spine0");
}
