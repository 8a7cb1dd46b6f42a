//! The way from a request to a ticket, and back.

use std::time::{Duration, Instant};

use crate::common::{Fabric, Manner, eventually, full};
use trib_control::clock::unix_ms;
use trib_messages::job::Attachment;
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::reply::{Reply, Resource};
use trib_messages::request::{QuotaAsk, Request};
use trib_messages::via::Via;
use trib_wire::ids::{ChildIndex, ChildKind, JobId, NodeId, Rank};

#[test]
fn ticket_and_grants_describe_one_tree() {
    let (fabric, nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let ticket = user.job(&["x", "x", "x", "h0"], QuotaAsk { groups: Some(12), ..QuotaAsk::default() }).unwrap();
    assert_eq!((ticket.limits.groups, ticket.limits.payload, ticket.limits.window), (12, 1368, 16));
    assert_ne!(ticket.key.0, [0; 32]);
    let names: Vec<&str> = ticket.nodes.iter().map(|node| node.name()).collect();
    assert_eq!(names, ["root", "leaf0", "leaf1"]);
    // Nodes have registered with 0.0.0.0. The manager replaces that by the addresses from which
    // they connect.
    assert!(ticket.nodes.iter().all(|node| node.primary().stream == "127.0.0.1:4000".parse().unwrap()));
    let attached =
        |node, child| Attachment { node: NodeId(node), child: ChildIndex(child), address: None, via: Via::Tcp };
    assert_eq!(ticket.lanes[0].leaves, [attached(1, 0), attached(1, 1), attached(2, 0), attached(1, 2)]);

    let (root, leaf) = (nodes["root"].grant(), nodes["leaf0"].grant());
    for grant in [&root, &leaf] {
        assert_eq!(
            (grant.job, grant.epoch, &grant.mark, &grant.limits),
            (ticket.job, ticket.epoch, &ticket.key.mark(ticket.job), &ticket.limits)
        );
        assert_eq!(grant.world_size, 4);
    }
    assert_eq!((root.node, root.parent), (NodeId(0), None));
    let parent = leaf.parent.unwrap();
    assert_eq!(
        (parent.node, parent.child, parent.candidates.len(), parent.candidates[0].stream),
        (NodeId(0), ChildIndex(0), 1, ticket.nodes[0].primary().stream)
    );
    let kinds: Vec<ChildKind> = leaf.children.iter().map(|child| child.kind).collect();
    assert_eq!(kinds, [0, 1, 3].map(|rank| ChildKind::Rank(Rank(rank))));
    assert_eq!(root.children[0].ranks.to_string(), "0-1,3");
}

#[test]
fn a_job_ends_on_request_and_without_its_connection_with_its_last_rank() {
    let (fabric, nodes) = Fabric::with_nodes();
    let (user, other) = (fabric.user(), fabric.user());
    let first = user.job(&["h0"], QuotaAsk::default()).unwrap().job;
    let second = user.job(&["h0"], QuotaAsk::default()).unwrap().job;
    assert_ne!(first, second);
    let leaf = &nodes["leaf0"];
    assert_eq!((leaf.grant().job, leaf.grant().job), (first, second));

    let foreign = other.ask(&Request::EndJob { job: first, why: None });
    assert!(matches!(foreign, Reply::Refused(refusal) if refusal.resource == Resource::Job));
    assert_eq!(user.ask(&Request::EndJob { job: first, why: None }), Reply::Ended { job: first });
    assert_eq!(leaf.next(), ManagerMessage::End { job: first });
    assert_eq!(ids(&other.status().jobs), [second]);
    drop(user);
    eventually("its connection is missed", || other.status().jobs.iter().any(|job| job.lost_ms.is_some()));
    assert!(leaf.is_quiet(), "a rank is there");
    leaf.is_left_by_ranks_of(second);
    assert_eq!(leaf.next(), ManagerMessage::End { job: second });
    assert_eq!(ids(&other.status().jobs), []);
    assert!(nodes["root"].is_quiet(), "it was no part of these jobs");
}

#[test]
fn jobs_share_the_receive_buffers_of_their_nodes() {
    let (fabric, _nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let job = |window| user.job(&["h0"; 8], QuotaAsk { window, ..QuotaAsk::default() }).unwrap();
    // A node has room for 23 fragments of each of eight ranks.
    let first = job(None);
    let second = job(None);
    let third = job(None);
    assert_eq!([&first, &second, &third].map(|ticket| ticket.limits.window), [16, 7, 1]);
    assert_eq!(job(Some(20)).limits.window, 20, "it asked for that");
    for ticket in [first, second] {
        user.ask(&Request::EndJob { job: ticket.job, why: None });
    }
    assert_eq!(job(None).limits.window, 2, "23 less 20 and 1");
}

fn ids(jobs: &[trib_messages::reply::JobStatus]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

#[test]
fn over_quota_is_refused_before_any_node_hears_of_it() {
    let (fabric, nodes) = Fabric::with_nodes();
    let refusal = fabric.user().job(&["x"], QuotaAsk { groups: Some(21), ..QuotaAsk::default() }).unwrap_err();
    assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Groups, 21, 20));
    assert!(refusal.text.contains("groups = 21"), "{refusal}");
    assert!(refusal.text.contains("so since the manager read its topology"), "{refusal}");
    assert!(nodes.values().all(|node| node.is_quiet()));
    assert!(fabric.user().status().jobs.is_empty());
}

#[test]
fn a_missing_node_is_named() {
    let fabric = Fabric::start();
    let _root = fabric.node("root", Manner::Installs);
    let leaf0 = fabric.node("leaf0", Manner::Installs);
    let user = fabric.user();
    let refusal = user.job(&["x", "x"], QuotaAsk::default()).unwrap_err();
    assert_eq!((refusal.resource, refusal.holder.as_deref()), (Resource::Node, Some("leaf1")));
    assert_eq!((refusal.asked, refusal.available), (3, 2));
    assert!(refusal.since_ms.is_some_and(|since| since <= unix_ms()) && refusal.text.contains("(so for "), "{refusal}");
    // A job that does not need the missing node is admitted nevertheless.
    user.job(&["h0"], QuotaAsk::default()).unwrap();

    drop(leaf0);
    eventually("the manager sees that leaf0 is gone", || !user.status().nodes[1].connected);
    let before = unix_ms();
    std::thread::sleep(Duration::from_millis(5));
    let refusal = user.job(&["h0"], QuotaAsk::default()).unwrap_err();
    assert_eq!(refusal.holder.as_deref(), Some("leaf0"));
    assert!(refusal.since_ms.is_some_and(|since| since <= before), "since it was lost, not since it is asked for");
    let _back = fabric.node("leaf0", Manner::Installs);
    user.job(&["h0"], QuotaAsk::default()).unwrap();
}

#[test]
fn a_node_that_rejects_undoes_the_job_everywhere() {
    let fabric = Fabric::start();
    let root = fabric.node("root", Manner::Installs);
    let _leaf0 = fabric.node("leaf0", Manner::Installs);
    let _leaf1 = fabric.node("leaf1", Manner::Rejects(full()));
    let user = fabric.user();
    let refusal = user.job(&["x", "x"], QuotaAsk::default()).unwrap_err();
    assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Memory, 9, 3));
    assert_eq!(refusal.holder.as_deref(), Some("leaf1"));
    assert!(refusal.text.contains("memory is full"), "{refusal}");
    let job = root.grant().job;
    assert_eq!(root.next(), ManagerMessage::End { job });
    assert!(user.status().jobs.is_empty());
}

#[test]
fn a_node_that_is_lost_or_silent_holds_up_its_own_jobs_only() {
    let fabric = Fabric::start();
    let _root = fabric.node("root", Manner::Installs);
    let _leaf0 = fabric.node("leaf0", Manner::Installs);
    {
        let _leaf1 = fabric.node("leaf1", Manner::HangsUp);
        let refusal = fabric.user().job(&["x", "x"], QuotaAsk::default()).unwrap_err();
        assert!(refusal.text.contains("leaf1 lost its connection"), "{refusal}");
    }
    eventually("leaf1 is gone", || !fabric.user().status().nodes[2].connected);
    let leaf1 = fabric.node("leaf1", Manner::Ignores);
    let (start, before) = (Instant::now(), unix_ms());
    std::thread::scope(|scope| {
        let stuck = scope.spawn(|| fabric.user().job(&["x", "x"], QuotaAsk::default()).unwrap_err());
        fabric.user().job(&["h0"], QuotaAsk::default()).unwrap();
        assert!(start.elapsed() < Duration::from_secs(4), "another job waited for the stuck one");
        let refusal = stuck.join().unwrap();
        assert!(refusal.text.contains("leaf1 did not install"), "{refusal}");
        assert_eq!(refusal.holder.as_deref(), Some("leaf1"));
    });
    // Otherwise the manager would wait for it once more.
    std::thread::sleep(Duration::from_millis(1_500));
    let user = fabric.user();
    eventually("nobody waits for it any more", || {
        let began = Instant::now();
        let refusal = user.job(&["x", "x"], QuotaAsk::default()).unwrap_err();
        let known = refusal.text.contains("leaf1 of the job's tree is connected to the manager but does not answer");
        assert!(!known || began.elapsed() < Duration::from_secs(1), "it is known already");
        assert_eq!((refusal.resource, refusal.holder.as_deref()), (Resource::Node, Some("leaf1")));
        assert!(refusal.since_ms.is_some_and(|since| since + 2_000 < unix_ms() && since + 2_000 > before), "{refusal}");
        known
    });
    // Any message shows that the node is alive, and a node that comes in its place is as good.
    leaf1.channel.send(&NodeMessage::Alive).unwrap();
    eventually("it answers", || user.status().nodes[2].silent_since_ms.is_none());
    drop(leaf1);
    eventually("it is gone", || !user.status().nodes[2].connected);
    let _leaf1 = fabric.node("leaf1", Manner::Installs);
    user.job(&["x", "x"], QuotaAsk::default()).unwrap();
}

#[test]
fn the_status_tells_nodes_counters_and_jobs() {
    let fabric = Fabric::start();
    let _leaf0 = fabric.node("leaf0", Manner::Installs);
    let user = fabric.user();
    let job = user.job(&["h0", "h0"], QuotaAsk::default()).unwrap().job;
    let report = fabric.user().status();
    assert_eq!(report.fabric, "test");
    let connected: Vec<(&str, bool)> = report.nodes.iter().map(|node| (node.name.as_str(), node.connected)).collect();
    assert_eq!(connected, [("root", false), ("leaf0", true), ("leaf1", false)]);
    let leaf = &report.nodes[1];
    assert_eq!((leaf.counters["frames"], leaf.address), (7, Some("127.0.0.1:4000".parse().unwrap())));
    assert!(leaf.version.starts_with("tributary "));
    let [status] = &report.jobs[..] else { panic!("{report:?}") };
    assert_eq!((status.id, status.ranks, status.name.as_str(), status.user.as_str()), (job, 2, "prog", "ann"));
    assert_eq!(status.nodes, ["leaf0"]);
    assert!(status.since > 1_600_000_000);
}
