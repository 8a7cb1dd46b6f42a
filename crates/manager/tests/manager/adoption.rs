//! Jobs outlive the manager that admitted them, and end when their nodes have lost them.

use crate::common::{Fabric, Manner, Node, eventually};
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::request::QuotaAsk;
use trib_wire::ids::JobId;

fn jobs(fabric: &Fabric) -> Vec<(JobId, bool)> {
    fabric.user().status().jobs.iter().map(|job| (job.id, job.adopted)).collect()
}

#[test]
fn a_manager_without_a_file_gives_no_number_that_a_node_still_holds() {
    let (fabric, nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let job = || user.job(&["x", "x"], QuotaAsk::default()).unwrap().job;
    assert_eq!([job(), job()], [JobId(1), JobId(2)]);
    drop(nodes);
    let leaf = Node::holding(&fabric, "leaf1", &[JobId(3), JobId(5)]);
    assert_eq!(leaf.next(), ManagerMessage::Registered);
    let _others = ["root", "leaf0"].map(|name| fabric.node(name, Manner::Installs));
    assert_eq!([job(), job()], [JobId(4), JobId(6)]);
}

#[test]
fn a_manager_goes_on_where_its_predecessor_was() {
    let (mut fabric, nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let ask = QuotaAsk::default;
    // The first job is on all three nodes, the second on one leaf, and the third on all three
    // again.
    let first = user.job(&["x", "x"], ask()).unwrap().job;
    let second = user.job(&["h0"], ask()).unwrap().job;
    let third = user.job(&["x", "x", "h0"], ask()).unwrap().job;
    assert_eq!(jobs(&fabric), [(first, false), (second, false), (third, false)]);

    drop(nodes);
    fabric.stop_manager();
    fabric.start_manager();
    assert_eq!(jobs(&fabric), [(first, true), (second, true), (third, true)]);

    let came_back = |name: &str, jobs: &[JobId]| {
        let node = fabric.node(name, Manner::Installs);
        node.channel.send(&NodeMessage::Hosts { jobs: jobs.to_vec() }).unwrap();
        node
    };
    let _root = came_back("root", &[first]);
    let leaf0 = came_back("leaf0", &[first, second]);
    // Two nodes have lost the third job, and the last node may still have it.
    assert_eq!(jobs(&fabric).len(), 3);
    let _leaf1 = came_back("leaf1", &[first]);
    eventually("the third job ends", || jobs(&fabric) == [(first, true), (second, true)]);

    // New jobs are held by their connections, whatever the nodes say, and have numbers of their
    // own.
    let user = fabric.user();
    let fourth = user.job(&["h0"], ask()).unwrap().job;
    assert!(![first, second, third].contains(&fourth));
    leaf0.channel.send(&NodeMessage::Left { job: second }).unwrap();
    leaf0.channel.send(&NodeMessage::Left { job: fourth }).unwrap();
    eventually("the second job ends", || jobs(&fabric) == [(first, true), (fourth, false)]);
    drop(user);
    eventually("the fourth job ends with its user", || jobs(&fabric) == [(first, true)]);
}
