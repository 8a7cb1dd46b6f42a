//! What would be longer than a message may be.

use std::net::SocketAddr;

use trib_messages::policy::Recovery;
use trib_messages::reply::{Reply, Resource};
use trib_messages::request::{JobRequest, QuotaAsk, Request};

use crate::common::{Fabric, LIMIT, User, verdict, with_deputies};

/// A job whose ranks all listen, so many on each of these hosts.
fn request(hosts: impl IntoIterator<Item = String>, each: usize, ask: QuotaAsk) -> JobRequest {
    let hosts: Vec<String> = hosts.into_iter().flat_map(|host| std::iter::repeat_n(host, each)).collect();
    let deputies = (0..hosts.len()).map(|_| Some(SocketAddr::from(([127, 0, 0, 1], 9)))).collect();
    JobRequest { hosts, deputies, ask, ..with_deputies([]) }
}

fn ask_for(user: &User, request: JobRequest) -> Reply {
    user.0.ask(&Request::RequestJob(request), LIMIT).unwrap()
}

#[test]
fn a_job_whose_ticket_would_be_too_long_goes_without_nodes_in_its_ranks() {
    let (fabric, _nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let hosts = |count: usize| (0..count).map(|host| format!("x{host}"));
    let lanes = |lanes| QuotaAsk { lanes: Some(lanes), ..QuotaAsk::default() };
    let few = verdict(ask_for(&user, request(hosts(HOSTS), 8, lanes(1)))).unwrap();
    assert!(few.nodes.iter().any(|node| node.in_ranks) && few.recovers);
    let many = verdict(ask_for(&user, request(hosts(HOSTS), 8, lanes(8)))).unwrap();
    assert!(!many.nodes.iter().any(|node| node.in_ranks), "the nodes in ranks are most of the ticket");
    assert!(many.recovers && many.lanes.len() == 8, "the rest is what it asked for");
    // Nothing is left of the attempt that was too long.
    let live: Vec<_> = user.jobs().live.into_iter().map(|job| job.id).collect();
    assert_eq!(live, [few.job, many.job]);
}

/// The name of a host, so long.
fn long(host: u32, bytes: usize) -> String {
    format!("{host}{}", "x".repeat(bytes))
}

#[test]
fn a_job_that_can_do_without_nothing_more_is_refused_in_words() {
    let (fabric, _nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let asking = |recovery| {
        let ask = QuotaAsk { recovery: Some(recovery), ..QuotaAsk::default() };
        verdict(ask_for(&user, request([0, 1].map(|host| long(host, 5 << 20)), 1, ask)))
    };
    let refusal = asking(Recovery::Strict).unwrap_err();
    assert_eq!((refusal.resource, refusal.available), (Resource::Ranks, 16 << 20));
    assert!(refusal.text.contains("the job's ticket would have "), "{refusal}");
    assert!(user.jobs().live.is_empty());
    assert!(!asking(Recovery::Retry).unwrap().recovers, "it goes without deputies");
}

#[test]
fn an_answer_that_is_too_long_is_a_refusal_in_words_and_the_connection_stays() {
    let fabric = Fabric::start();
    let user = fabric.user();
    // The status names the node in the ranks of a job, and the root of its tree, by the host.
    for host in 0..6 {
        verdict(ask_for(&user, request([long(host, 3 << 19)], 2, QuotaAsk::default()))).unwrap();
    }
    let Reply::Refused(refusal) = user.ask(&Request::Status) else { panic!("the status is not that long") };
    assert!(refusal.asked > refusal.available && refusal.text.contains("ask for one job"), "{refusal}");
    assert_eq!(user.jobs().live.len(), 6);
}

/// With so many hosts the nodes in their ranks fit into the ticket of a job with one lane, and not
/// into that of one with eight.
const HOSTS: usize = 300;
