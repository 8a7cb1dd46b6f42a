//! Ranks that find each other at the manager.

use std::thread;

use crate::common::{Fabric, LIMIT, User, attachment, eventually, verdict};
use trib_messages::job::JobTicket;
use trib_messages::node::ManagerMessage;
use trib_messages::reply::{Refusal, Resource};
use trib_messages::request::Request;

type Verdicts = Vec<Result<JobTicket, Refusal>>;

/// Attaches all of these ranks at once, each given as `(rank, size)`. Connections stay open until
/// all have their answer.
fn attach_all(fabric: &Fabric, ranks: &[(u32, u32)], patience_ms: u32) -> Verdicts {
    let users: Vec<_> = ranks.iter().map(|_| fabric.user()).collect();
    thread::scope(|scope| {
        let attach = |(user, (rank, size)): (_, &(u32, u32))| {
            let request = attachment("r", *rank, *size, patience_ms);
            scope.spawn(move || User::attach(user, request))
        };
        let threads: Vec<_> = users.iter().zip(ranks).map(attach).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn eight_ranks_get_one_ticket() {
    let (fabric, nodes) = Fabric::with_nodes();
    let ranks: Vec<(u32, u32)> = (0..8).rev().map(|rank| (rank, 8)).collect();
    let verdicts = attach_all(&fabric, &ranks, 15_000);
    let first = verdicts[0].as_ref().unwrap();
    assert!(verdicts.iter().all(|verdict| verdict.as_ref() == Ok(first)));
    assert_eq!((first.lanes[0].leaves.len(), first.nodes.len()), (8, 3));
    // All connections are closed. The job ends with its ranks, and the name is free again.
    let root = &nodes["root"];
    assert_eq!(root.grant().job, first.job);
    nodes.values().for_each(|node| node.is_left_by_ranks_of(first.job));
    assert_eq!(root.next(), ManagerMessage::End { job: first.job });
    let again = attach_all(&fabric, &[(0, 2), (1, 2)], 15_000);
    assert!(again.iter().all(|verdict| verdict.is_ok()));
}

#[test]
fn a_job_ends_with_its_last_rank() {
    let (fabric, nodes) = Fabric::with_nodes();
    let (zero, one) = (fabric.user(), fabric.user());
    zero.0.send(&Request::Attach(attachment("r", 0, 2, 15_000))).unwrap();
    let job = one.attach(attachment("r", 1, 2, 15_000)).unwrap().job;
    assert_eq!(verdict(zero.0.recv(Some(LIMIT)).unwrap()).unwrap().job, job);
    drop(one);
    assert_eq!(fabric.user().status().jobs.len(), 1);
    drop(zero);
    eventually("rank 0 is missed", || fabric.user().jobs().live[0].lost_ms.is_some());
    nodes.values().for_each(|node| node.is_left_by_ranks_of(job));
    let root = &nodes["root"];
    eventually("the nodes are told", || root.next() == ManagerMessage::End { job });
}

#[test]
fn missing_ranks_are_named_to_all_who_came() {
    let (fabric, _nodes) = Fabric::with_nodes();
    for verdict in attach_all(&fabric, &[(0, 6), (2, 6), (3, 6)], 1_500) {
        let refusal = verdict.unwrap_err();
        assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Rendezvous, 6, 3));
        assert!(
            refusal.text.contains("missing: rank 1,4-5") || refusal.text.contains("missing: rank 1-4/3,5"),
            "{refusal}"
        );
    }
}

#[test]
fn contradictions_are_refused_to_all() {
    let (fabric, _nodes) = Fabric::with_nodes();
    let verdicts = attach_all(&fabric, &[(0, 3), (0, 3)], 15_000);
    for verdict in verdicts {
        assert!(verdict.unwrap_err().text.contains("say they are rank 0"));
    }
    let verdicts = attach_all(&fabric, &[(0, 3), (1, 4)], 15_000);
    for verdict in verdicts {
        assert!(verdict.unwrap_err().text.contains("disagree"));
    }
    let refusal = fabric.user().attach(attachment("r", 3, 3, 15_000)).unwrap_err();
    assert!(refusal.text.contains("rank 3 of 3"), "{refusal}");
}

#[test]
fn a_refused_job_is_refused_to_all_ranks() {
    let fabric = Fabric::start();
    for verdict in attach_all(&fabric, &[(0, 2), (1, 2)], 15_000) {
        assert_eq!(verdict.unwrap_err().resource, Resource::Node);
    }
}

#[test]
fn a_rank_that_left_may_come_again() {
    let (fabric, _nodes) = Fabric::with_nodes();
    let (stays, leaves, comes) = (fabric.user(), fabric.user(), fabric.user());
    stays.0.send(&Request::Attach(attachment("r", 0, 2, 15_000))).unwrap();
    // The rank comes and goes before its program is complete. The manager looks every quarter of a
    // second.
    leaves.0.send(&Request::Attach(attachment("s", 1, 2, 15_000))).unwrap();
    drop(leaves);
    thread::sleep(std::time::Duration::from_millis(1_500));
    comes.0.send(&Request::Attach(attachment("s", 1, 2, 15_000))).unwrap();
    let other = fabric.user();
    other.attach(attachment("s", 0, 2, 15_000)).unwrap();
    verdict(comes.0.recv(Some(LIMIT)).unwrap()).unwrap();
    fabric.user().attach(attachment("r", 1, 2, 15_000)).unwrap();
    verdict(stays.0.recv(Some(LIMIT)).unwrap()).unwrap();
}
