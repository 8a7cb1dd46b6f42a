//! All jobs, whether they run, have ended or were refused, and why.

use std::thread;

use crate::common::{Fabric, LIMIT, Manner, attachment, eventually, verdict};
use trib_control::clock::unix_ms;
use trib_messages::explanation::{FoldsPart, GroupPart, LeaseState, NodePart};
use trib_messages::jobs::{Activity, JobEnd, Names, PastJob};
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::recovery::{EpochCause, EpochPart, Replayed};
use trib_messages::reply::{Reply, Resource};
use trib_messages::request::{JobRequest, QuotaAsk, Request};
use trib_wire::RankList;
use trib_wire::ids::NodeId;

fn past(fabric: &Fabric) -> Vec<PastJob> {
    fabric.user().jobs().past
}

#[test]
fn a_job_stands_in_the_list_with_what_its_nodes_say_of_it() {
    let (fabric, _nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let first = user.job(&["x", "h0", "x"], QuotaAsk::default()).unwrap().job;
    let second = user.job(&["h0", "h0"], QuotaAsk::default()).unwrap().job;
    let report = fabric.user().jobs();
    let ids: Vec<_> = report.live.iter().map(|job| job.id).collect();
    assert_eq!(ids, [first, second]);
    let job = &report.live[0];
    assert_eq!((job.name.as_str(), job.user.as_str(), job.ranks), ("prog", "ann", 3));
    assert_eq!(job.hosts, Names { count: 2, list: "x,h0".into() });
    assert_eq!((job.root.as_str(), job.nodes.count), ("root", 3));
    // Each of the three nodes has one rank and two groups.
    assert_eq!(job.activity, Some(Activity { groups: 2, ranks: 3, idle_ms: 5 }));
    assert_eq!((report.live[1].root.as_str(), report.live[1].nodes.list.as_str()), ("leaf0", "leaf0"));
    assert!(report.time_ms >= report.started_ms && report.past.is_empty());
}

#[test]
fn a_job_whose_nodes_are_silent_is_listed_without_activity() {
    let fabric = Fabric::start();
    let leaf0 = fabric.node("leaf0", Manner::Installs);
    let user = fabric.user();
    user.job(&["h0"], QuotaAsk::default()).unwrap();
    drop(leaf0);
    eventually("leaf0 is away", || !user.status().nodes[1].connected);
    assert_eq!(fabric.user().jobs().live[0].activity, None);
}

#[test]
fn how_a_job_ended_is_remembered() {
    let (fabric, nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let jobs: Vec<_> = (0..3).map(|_| user.job(&["h0"], QuotaAsk::default()).unwrap().job).collect();
    user.ask(&Request::EndJob { job: jobs[0], why: None });
    user.ask(&Request::EndJob { job: jobs[1], why: Some("rank 3: no way to leaf0".into()) });
    drop(user);
    nodes["leaf0"].is_left_by_ranks_of(jobs[2]);
    eventually("the third job has ended", || past(&fabric).len() == 3);
    let told = past(&fabric);
    let ends: Vec<_> = told.iter().map(|job| (job.id, job.outcome.clone())).collect();
    let given_up = JobEnd::GivenUp { why: "rank 3: no way to leaf0".into() };
    assert_eq!(ends, [(jobs[0], JobEnd::Ended), (jobs[1], given_up), (jobs[2], JobEnd::Lost)]);
    assert!(told.iter().all(|job| job.root == "leaf0" && job.began_ms <= job.ended_ms && job.ended_ms <= unix_ms()));
    // Every user that asks about it is told the same.
    match fabric.user().ask(&Request::Explain { job: jobs[2], group: None }) {
        Reply::Past(job) => assert_eq!(job, told[2]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_refused_job_is_explained_by_number_and_by_name() {
    let fabric = Fabric::start();
    let _root = fabric.node("root", Manner::Installs);
    let _leaf0 = fabric.node("leaf0", Manner::Installs);
    for _ in 0..3 {
        fabric.user().job(&["x", "h0", "x"], QuotaAsk::default()).unwrap_err();
    }
    let told = past(&fabric);
    let [job] = &told[..] else { panic!("{told:?}") };
    assert_eq!((job.times, job.ranks, job.hosts.list.as_str()), (3, 3, "x,h0"));
    let JobEnd::Refused(refusal) = &job.outcome else { panic!("{job:?}") };
    assert_eq!((refusal.resource, refusal.holder.as_deref()), (Resource::Node, Some("leaf1")));
    assert!(refusal.since_ms.is_some_and(|since| since <= unix_ms()));
    let by_number = fabric.user().ask(&Request::Explain { job: job.id, group: None });
    let by_name = fabric.user().ask(&Request::ExplainProgram { name: "prog".into(), group: None });
    assert_eq!((&by_number, &by_name), (&Reply::Past(job.clone()), &by_number));
    // A job that runs goes before one that is over.
    let user = fabric.user();
    let running = user.job(&["h0"], QuotaAsk::default()).unwrap().job;
    assert_ne!(running, job.id);
    match fabric.user().ask(&Request::ExplainProgram { name: "prog".into(), group: None }) {
        Reply::Explanation(explanation) => assert_eq!(explanation.job.id, running),
        other => panic!("{other:?}"),
    }
    user.job(&["h0"], QuotaAsk::default()).unwrap();
    match fabric.user().ask(&Request::ExplainProgram { name: "prog".into(), group: None }) {
        Reply::Refused(refusal) => assert!(refusal.text.contains("several jobs of `prog`"), "{refusal}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_never_asked_is_not_known_and_that_is_said() {
    let fabric = Fabric::start();
    match fabric.user().ask(&Request::ExplainProgram { name: "other".into(), group: None }) {
        Reply::Refused(refusal) => {
            assert_eq!(refusal.resource, Resource::Job);
            assert!(refusal.text.contains("without TRIB_MANAGER"), "{refusal}");
            assert!(refusal.since_ms.is_some(), "the manager knows nothing of what was before it");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_whose_ranks_do_not_meet_is_remembered_once() {
    let (fabric, _nodes) = Fabric::with_nodes();
    let users: Vec<_> = (0..3).map(|_| fabric.user()).collect();
    thread::scope(|scope| {
        for (rank, user) in users.iter().enumerate() {
            scope.spawn(move || user.attach(attachment("r", rank as u32, 5, 700)).unwrap_err());
        }
    });
    let told = past(&fabric);
    let [job] = &told[..] else { panic!("{told:?}") };
    assert_eq!((job.times, job.ranks, job.hosts.list.as_str()), (1, 5, "x"));
    let JobEnd::Refused(refusal) = &job.outcome else { panic!("{job:?}") };
    assert_eq!(refusal.resource, Resource::Rendezvous);
    let waited = job.ended_ms - refusal.since_ms.unwrap();
    assert!((600..20_000).contains(&waited), "since the first rank came, {waited} ms ago");
}

#[test]
fn what_a_program_says_of_its_fallback_is_shown_while_it_runs_and_afterwards() {
    let (fabric, _nodes) = Fabric::with_nodes();
    let (user, other) = (fabric.user(), fabric.user());
    let job = user.job(&["h0"], QuotaAsk::default()).unwrap().job;
    let note = Request::Fallback { job, why: "its node died\u{7}".into() };
    assert!(matches!(other.ask(&note), Reply::Refused(refusal) if refusal.resource == Resource::Job));
    assert_eq!(fabric.user().jobs().live[0].fallback, None);
    assert_eq!(user.ask(&note), Reply::Noted { job });
    let told = fabric.user().jobs().live.remove(0).fallback.unwrap();
    assert_eq!(told.text, "its node died\u{fffd}");
    user.ask(&Request::EndJob { job, why: None });
    assert_eq!(past(&fabric)[0].fallback, Some(told));
}

#[test]
fn hostile_requests_take_bounded_room() {
    let (fabric, _nodes) = Fabric::with_nodes();
    let user = fabric.user();
    for n in 0..600u32 {
        let name = format!("{n}{}", "\u{1b}[2J\"".repeat(150));
        let request = JobRequest {
            hosts: vec!["y".repeat(9_000); 2],
            pids: Vec::new(),
            deputies: Vec::new(),
            domains: Vec::new(),
            ask: QuotaAsk::default(),
            name,
            user: "u".repeat(900),
            wait_ms: None,
            patience_ms: None,
        };
        user.0
            .send(&Request::RequestJob(JobRequest {
                ask: QuotaAsk { groups: Some(21), ..QuotaAsk::default() },
                ..request
            }))
            .unwrap();
        verdict(user.0.recv(Some(LIMIT)).unwrap()).unwrap_err();
    }
    let report = fabric.user().jobs();
    assert_eq!((report.past.len(), report.forgotten), (512, 88));
    assert!(
        report.past.iter().all(|job| job.name.len() <= 128 && job.user.len() <= 128 && job.hosts.list.len() <= 256)
    );
    assert!(report.past.iter().all(|job| !job.name.contains('\u{1b}')));
}

#[test]
fn one_group_is_asked_for_by_its_tag_and_an_unknown_one_is_refused() {
    let fabric = Fabric::start();
    let leaf0 = fabric.node("leaf0", Manner::Installs);
    let user = fabric.user();
    let job = user.job(&["h0"], QuotaAsk::default()).unwrap().job;
    leaf0.grant();
    let ask = |tag| {
        let asked = std::thread::scope(|scope| {
            let asking = scope.spawn(|| fabric.user().ask(&Request::Explain { job, group: Some(tag) }));
            assert_eq!(leaf0.next(), ManagerMessage::Explain { job, group: Some(tag) });
            let parts = if tag == 7 { vec![part_with_group(7)] } else { Vec::new() };
            leaf0
                .channel
                .send(&NodeMessage::Explained { job, group: Some(tag), parts, traffic: Vec::new(), epochs: Vec::new() })
                .unwrap();
            asking.join()
        });
        asked.unwrap()
    };
    match ask(7) {
        Reply::Explanation(explanation) => {
            assert_eq!((explanation.parts.len(), explanation.parts[0].lane), (1, 0));
            assert_eq!(explanation.job.lanes.len(), 1);
            assert_eq!(explanation.job.lanes[0].root, "leaf0");
        }
        other => panic!("{other:?}"),
    }
    match ask(8) {
        Reply::Refused(refusal) => {
            assert_eq!(refusal.resource, Resource::Groups);
            assert!(refusal.text.contains(&format!("{job} has no group with the tag 8")), "{refusal}");
            assert!(refusal.text.contains(&format!("`trib explain {}`", job.0)), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_node_replays_is_told_with_the_epoch_in_which_it_does() {
    let fabric = Fabric::start();
    let leaf0 = fabric.node("leaf0", Manner::Installs);
    let user = fabric.user();
    let job = user.job(&["h0"], QuotaAsk::default()).unwrap().job;
    leaf0.grant();
    let replayed = |fragments: u64| Replayed { fragments, segments: 0, bytes: 8 * fragments };
    let epoch = |moves: u64, fragments: u64| {
        let replayed = replayed(fragments);
        EpochPart { lane: 0, moves, moved: vec![NodeId(0)], cause: EpochCause::Told, at_ms: moves, replayed }
    };
    let told = std::thread::scope(|scope| {
        let asking = scope.spawn(|| fabric.user().ask(&Request::Explain { job, group: None }));
        assert_eq!(leaf0.next(), ManagerMessage::Explain { job, group: None });
        let parts = vec![NodePart { moves: vec![(NodeId(0), 2)], replayed: replayed(5), ..part_with_group(7) }];
        let (traffic, epochs) = (Vec::new(), vec![epoch(1, 3), epoch(2, 0)]);
        leaf0.channel.send(&NodeMessage::Explained { job, group: None, parts, traffic, epochs }).unwrap();
        asking.join()
    });
    let Reply::Explanation(explanation) = told.unwrap() else { panic!("it runs") };
    let told: Vec<Replayed> = explanation.epochs.iter().map(|told| told.epoch.replayed).collect();
    assert_eq!(told, [replayed(3), replayed(5)]);
}

#[test]
fn the_next_manager_remembers_what_was() {
    let (mut fabric, nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let job = user.job(&["h0"], QuotaAsk::default()).unwrap().job;
    user.ask(&Request::EndJob { job, why: None });
    let too_much = QuotaAsk { groups: Some(21), ..QuotaAsk::default() };
    (0..2).for_each(|_| drop(user.job(&["h0"], too_much.clone()).unwrap_err()));
    let told = past(&fabric);
    assert_eq!((told.len(), told[1].times), (2, 2));
    drop((user, nodes));
    fabric.stop_manager();
    fabric.start_manager();
    assert_eq!(past(&fabric), told);
    // No job gets a number that stands for something else.
    let _leaf0 = fabric.node("leaf0", Manner::Installs);
    let next = fabric.user().job(&["h0"], QuotaAsk::default()).unwrap().job;
    assert!(told.iter().all(|known| known.id != next), "{next}");
}

fn part_with_group(tag: u64) -> NodePart {
    let group = GroupPart {
        index: 3,
        tag,
        name: String::new(),
        members: RankList::world(1),
        lease: LeaseState::None,
        relayed: false,
        board: false,
        datagrams: FoldsPart::default(),
        streams: FoldsPart::default(),
        late: Vec::new(),
    };
    NodePart {
        node: NodeId(0),
        parent: None,
        children: Vec::new(),
        groups_alive: 1,
        buffers_held: 0,
        payload_bytes_folded: 0,
        moves: Vec::new(),
        first_fold_ms: None,
        replayed: Replayed::default(),
        contexts: None,
        groups: vec![group],
    }
}
