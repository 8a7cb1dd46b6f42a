//! Tenants by their certificates: limits, what is kept, waiting, and what a killed client leaves.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Fabric, LIMIT, Manner, Node, TWO_LEAVES, User, attachment, eventually, full, verdict};
use trib_messages::job::JobTicket;
use trib_messages::reply::{Refusal, Resource};
use trib_messages::request::{AttachRequest, JobRequest, QuotaAsk, Request};
use trib_messages::tenant::TenantStatus;

const TENANTS: &str = r#"
[node]
streams = 8
[root]
jobs = 3
[[tenant]]
name = "astro"
jobs = 2
reserve = "1/2"
hosts = ["h0"]
[[tenant]]
name = "bio"
priority = 7
streams = 4
"#;

fn start() -> (Fabric, Vec<Node>) {
    let fabric = Fabric::with_tenants(TWO_LEAVES, TENANTS, &["astro", "bio"]);
    let nodes = ["root", "leaf0", "leaf1"].map(|name| fabric.node(name, Manner::Installs));
    (fabric, nodes.into())
}

fn streams(streams: u32) -> QuotaAsk {
    QuotaAsk { streams: Some(streams), ..QuotaAsk::default() }
}

fn patient(user: &User, hosts: &[&str], ask: QuotaAsk, wait: Duration) -> Result<JobTicket, Refusal> {
    let hosts = hosts.iter().map(|host| host.to_string()).collect();
    let wait_ms = Some(wait.as_millis() as u32);
    let request = JobRequest {
        hosts,
        pids: Vec::new(),
        deputies: Vec::new(),
        domains: Vec::new(),
        ask,
        name: "prog".into(),
        user: "ann".into(),
        wait_ms,
        patience_ms: None,
    };
    verdict(user.ask(&Request::RequestJob(request)))
}

fn tenant(fabric: &Fabric, name: &str) -> TenantStatus {
    fabric.user().status().tenants.into_iter().find(|tenant| tenant.name == name).unwrap()
}

#[test]
fn a_greedy_tenant_leaves_others_what_is_kept_for_them() {
    let (fabric, _nodes) = start();
    let (greedy, astro) = (fabric.user(), fabric.tenant("astro"));
    // Half of a node's contexts is kept for astro, so no other tenant's default is more than the
    // other half.
    let ticket = greedy.job(&["x"], QuotaAsk::default()).unwrap();
    assert_eq!(ticket.limits.streams, 4);
    let refusal = greedy.job(&["x"], streams(1)).unwrap_err();
    assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Streams, 1, 0));
    let job = format!("{} has 4", ticket.job);
    for word in ["tenant *", "at node leaf0", "8 for all", "4 kept for tenant astro", &job] {
        assert!(refusal.text.contains(word), "{word}: {refusal}");
    }
    assert_eq!(refusal.holder.as_deref(), Some("tenant astro"));
    let kept = astro.job(&["x"], streams(4)).unwrap();
    let has = tenant(&fabric, "astro");
    assert_eq!((has.jobs.used, has.jobs.limit, has.hosts), (1, Some(2), 1));
    assert_eq!((has.nodes[0].node.as_str(), has.nodes[0].streams.used, has.nodes[0].streams.reserved), ("leaf0", 4, 4));
    astro.job(&["h0"], QuotaAsk::default()).map(drop).unwrap_err();
    assert_eq!(
        astro.ask(&Request::EndJob { job: kept.job, why: None }),
        trib_messages::reply::Reply::Ended { job: kept.job }
    );
    eventually("it is free", || tenant(&fabric, "astro").jobs.used == 0);
}

#[test]
fn limits_of_jobs_and_roots_and_kept_hosts_are_told_apart() {
    let (fabric, _nodes) = start();
    let (astro, bio) = (fabric.tenant("astro"), fabric.tenant("bio"));
    let refusal = bio.job(&["h0.cluster"], streams(1)).unwrap_err();
    assert_eq!((refusal.resource, refusal.holder.as_deref()), (Resource::Host, Some("another tenant")));
    assert!(refusal.text.contains("h0.cluster") && refusal.text.contains("tenant bio"), "{refusal}");
    let refusal = fabric.user().job(&["h0.cluster"], streams(1)).unwrap_err();
    assert_eq!(refusal.holder.as_deref(), Some("tenant astro"), "the fabric's own certificate is told of all");
    let _first = astro.job(&["h0"], streams(1)).unwrap();
    let _second = astro.job(&["h0"], streams(1)).unwrap();
    let refusal = astro.job(&["h0"], streams(1)).unwrap_err();
    assert_eq!((refusal.resource, refusal.available), (Resource::Jobs, 0));
    assert!(refusal.text.contains("in the fabric") && refusal.text.contains("tenant astro may have 2"), "{refusal}");
    // One of three jobs of each root is kept for astro, and leaf0 has two jobs.
    let _third = bio.job(&["x"], streams(1)).unwrap();
    let refusal = bio.job(&["x"], streams(1)).unwrap_err();
    assert!(refusal.text.contains("trees with their root at node leaf0"), "{refusal}");
    let refusal = bio.job(&["x"], streams(5)).unwrap_err();
    assert!(refusal.text.contains("tenant bio may have at most 4"), "{refusal}");
}

#[test]
fn who_waits_is_seen_and_gets_its_turn_when_a_client_is_killed() {
    let (fabric, nodes) = start();
    let greedy = fabric.user();
    let job = greedy.job(&["x", "x"], streams(4)).unwrap().job;
    thread::scope(|scope| {
        let low = scope.spawn(|| patient(&fabric.user(), &["x", "x"], streams(4), LIMIT));
        eventually("the first waits", || fabric.user().status().queue.len() == 1);
        let high = scope.spawn(|| patient(&fabric.tenant("bio"), &["x", "x"], streams(4), LIMIT));
        eventually("both wait", || fabric.user().status().queue.len() == 2);
        let queue = fabric.user().status().queue;
        assert_eq!(queue.iter().map(|job| job.tenant.as_deref()).collect::<Vec<_>>(), [Some("bio"), None]);
        assert_eq!((queue[0].priority, queue[0].ranks, queue[0].reason.resource), (7, 2, Resource::Streams));
        assert!(queue[0].reason.text.contains(&job.to_string()), "{}", queue[0].reason);
        assert_eq!(tenant(&fabric, "bio").waiting, 1);
        let killed = Instant::now();
        greedy.0.close();
        nodes.iter().for_each(|node| node.is_left_by_ranks_of(job));
        // Each job ends with its own ranks, and then the next has its turn.
        let next = high.join().unwrap().unwrap().job;
        nodes.iter().for_each(|node| node.is_left_by_ranks_of(next));
        low.join().unwrap().unwrap();
        assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    });
    eventually("nothing is held", || {
        let status = fabric.user().status();
        status.jobs.iter().for_each(|job| nodes.iter().for_each(|node| node.is_left_by_ranks_of(job.id)));
        status.tenants.iter().all(|tenant| tenant.nodes.is_empty())
    });
    drop(nodes);
}

#[test]
fn patience_ends_with_a_reason_and_with_the_client() {
    let (fabric, _nodes) = start();
    let holder = fabric.user();
    let _job = holder.job(&["x"], streams(4)).unwrap();
    let refusal = patient(&fabric.user(), &["x"], streams(2), Duration::from_millis(100)).unwrap_err();
    assert!(refusal.text.contains("number 1 of 1") && refusal.text.contains("100 ms"), "{refusal}");
    let impatient = fabric.user();
    let hosts = vec!["x".into()];
    let request = JobRequest {
        hosts,
        pids: Vec::new(),
        deputies: Vec::new(),
        domains: Vec::new(),
        ask: streams(2),
        name: "prog".into(),
        user: "ann".into(),
        wait_ms: Some(3_600_000),
        patience_ms: None,
    };
    impatient.0.send(&Request::RequestJob(request)).unwrap();
    eventually("it waits", || fabric.user().status().queue.len() == 1);
    drop(impatient);
    eventually("it is gone", || fabric.user().status().queue.is_empty());
}

#[test]
fn ranks_that_meet_at_the_manager_wait_together_and_count_for_rank_0() {
    let (fabric, _nodes) = start();
    let holder = fabric.tenant("bio");
    let job = holder.job(&["x"], streams(4)).unwrap().job;
    let rank = |number| AttachRequest {
        wait_ms: Some(20_000),
        host: "y".into(),
        ask: streams(1),
        ..attachment("meet", number, 2, 20_000)
    };
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..2)
            .map(|number| {
                let (fabric, rank) = (&fabric, &rank);
                scope.spawn(move || {
                    let user = fabric.tenant("bio");
                    let ticket = user.attach(rank(number)).unwrap();
                    (ticket, user)
                })
            })
            .collect();
        eventually("the job waits", || fabric.user().status().queue.iter().any(|job| job.ranks == 2));
        assert_eq!(tenant(&fabric, "bio").jobs.used, 1);
        holder.ask(&Request::EndJob { job, why: None });
        let tickets: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        assert_eq!(tickets[0].0, tickets[1].0);
        let told = fabric.user().status().jobs;
        let charge = told[0].charge.as_ref().unwrap();
        assert_eq!((charge.tenant.as_deref(), charge.roots[0].as_str()), (Some("bio"), "root"));
    });
}

#[test]
fn every_lane_counts() {
    let (fabric, _nodes) = start();
    let bio = fabric.tenant("bio");
    let lanes = |streams| QuotaAsk { lanes: Some(2), streams: Some(streams), ..QuotaAsk::default() };
    let refusal = bio.job(&["x"], lanes(3)).unwrap_err();
    assert_eq!((refusal.resource, refusal.asked, refusal.available), (Resource::Streams, 6, 4), "{refusal}");
    bio.job(&["x"], lanes(2)).unwrap();
    assert_eq!(tenant(&fabric, "bio").nodes[0].streams.used, 4);
    let status = fabric.user().status();
    let charge = status.jobs[0].charge.as_ref().unwrap();
    assert_eq!((&charge.lanes[..], &charge.roots[..]), (&[2][..], &["leaf0".to_owned(), "leaf0".to_owned()][..]));
}

#[test]
fn a_job_that_drains_counts_until_its_nodes_have_lost_it() {
    let fabric = Fabric::with_tenants(TWO_LEAVES, TENANTS, &["astro", "bio"]);
    // This node installs jobs, and says nothing of jobs that end.
    let node = fabric.node("leaf0", Manner::Drains);
    let bio = fabric.tenant("bio");
    let job = bio.job(&["x"], streams(4)).unwrap().job;
    bio.ask(&Request::EndJob { job, why: None });
    assert!(fabric.user().status().jobs.is_empty());
    let refusal = bio.job(&["x"], streams(4)).unwrap_err();
    assert!(refusal.text.contains(&format!("{job} (ended, but ranks of it are still at a node) has 4")), "{refusal}");
    node.channel.send(&trib_messages::node::NodeMessage::Left { job }).unwrap();
    eventually("it is free", || tenant(&fabric, "bio").jobs.used == 0);
    let job = bio.job(&["x"], streams(4)).unwrap().job;
    // When a node goes, the claims there of jobs that have ended are given back.
    bio.ask(&Request::EndJob { job, why: None });
    assert_eq!(tenant(&fabric, "bio").jobs.used, 1);
    drop(node);
    eventually("it is free", || tenant(&fabric, "bio").jobs.used == 0);
}

#[test]
fn a_job_that_is_not_installed_leaves_nothing() {
    let fabric = Fabric::with_tenants(TWO_LEAVES, TENANTS, &["astro", "bio"]);
    let _node = fabric.node("leaf0", Manner::Rejects(full()));
    fabric.tenant("bio").job(&["x"], streams(4)).unwrap_err();
    let bio = tenant(&fabric, "bio");
    assert!(bio.jobs.used == 0 && bio.nodes.is_empty(), "{bio:?}");
}

#[test]
fn another_manager_counts_what_its_predecessor_admitted() {
    let (mut fabric, nodes) = start();
    let astro = fabric.tenant("astro");
    let job = astro.job(&["x"], streams(3)).unwrap().job;
    let before = tenant(&fabric, "astro");
    fabric.stop_manager();
    drop(nodes);
    fabric.start_manager();
    assert_eq!(tenant(&fabric, "astro"), before);
    let nodes: Vec<Node> = ["root", "leaf0", "leaf1"].map(|name| fabric.node(name, Manner::Installs)).into();
    let refusal = fabric.tenant("astro").job(&["x"], streams(6)).unwrap_err();
    assert_eq!((refusal.resource, refusal.available), (Resource::Streams, 5), "{refusal}");
    assert!(refusal.text.contains(&format!("{job} has 3")), "{refusal}");
    // The node says that the job is gone, so its claims are given back.
    for node in &nodes {
        node.channel.send(&trib_messages::node::NodeMessage::Hosts { jobs: Vec::new() }).unwrap();
    }
    eventually("the job is forgotten", || fabric.user().status().jobs.iter().all(|other| other.id != job));
    assert_eq!(tenant(&fabric, "astro").jobs.used, 0);
}

#[test]
fn ranks_of_two_tenants_do_not_meet_whatever_text_they_name() {
    let (fabric, _nodes) = start();
    let (astro, bio) = (fabric.tenant("astro"), fabric.tenant("bio"));
    let verdicts = thread::scope(|scope| {
        let zero = scope.spawn(|| astro.attach(attachment("r", 0, 2, 1_500)));
        let one = scope.spawn(|| bio.attach(attachment("r", 1, 2, 1_500)));
        [zero.join().unwrap(), one.join().unwrap()]
    });
    let refusals = verdicts.map(|verdict| verdict.expect_err("another tenant is no rank of the program"));
    assert!(
        refusals.iter().any(|refusal| refusal.text.contains("with the certificate of another tenant")),
        "{refusals:?}"
    );
}
