//! Trees of jobs on a fabric that is given as a graph.

mod common;

use common::{Fabric, Manner, Node};
use trib_wire::control::reply::Resource;
use trib_wire::control::request::{QuotaAsk, Request};

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
        let names: Vec<String> = ticket.nodes.iter().map(|node| node.name.clone()).collect();
        (ticket.job, names)
    };
    let (first, names) = job(&["a0", "b0"]);
    assert_eq!(names, ["spine0", "leaf0", "leaf1"]);
    let (_, names) = job(&["a1", "b1"]);
    assert_eq!(names, ["spine1", "leaf0", "leaf1"]);
    user.ask(&Request::EndJob { job: first, why: None });
    assert_eq!(job(&["a1", "b0"]).1, ["spine0", "leaf0", "leaf1"]);
    // What is refused takes nothing: both spines have one job each, and the first in the file is taken.
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
