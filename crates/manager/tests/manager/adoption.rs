//! Jobs outlive the manager that admitted them, and end when their nodes have lost them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Fabric, LIMIT, Manner, Node, eventually, with_deputies};
use trib_control::Channel;
use trib_messages::hello::Role;
use trib_messages::job::{JobTicket, Pass};
use trib_messages::jobs::{Activity, JobActivity};
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::processes::Process;
use trib_messages::recovery::Replayed;
use trib_messages::reply::Reply;
use trib_messages::request::{JobRequest, QuotaAsk, Request, ServeRequest};
use trib_wire::ids::{JobId, NodeId};

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
        let node = Node::hosting(&fabric, name, jobs);
        assert_eq!(node.next(), ManagerMessage::Registered);
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
    leaf0.is_left_by_ranks_of(fourth);
    eventually("the fourth job ends with its ranks", || jobs(&fabric) == [(first, true)]);
}

#[test]
fn an_adopted_job_ends_when_all_its_nodes_say_that_its_ranks_have_come_and_gone() {
    let (mut fabric, nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let [over, other] = [0; 2].map(|_| user.job(&["x", "x"], QuotaAsk::default()).unwrap().job);
    drop(nodes);
    fabric.stop_manager();
    fabric.start_manager();
    let nodes = ["root", "leaf0", "leaf1"].map(|name| {
        let node = Node::hosting(&fabric, name, &[over, other]);
        assert_eq!(node.next(), ManagerMessage::Registered);
        node.channel.send(&NodeMessage::Hosts { jobs: vec![over, other] }).unwrap();
        node
    });
    // The nodes keep both jobs, and say so. Of one of them no rank is left.
    (0..).zip(&nodes).for_each(|(number, node)| node.has_ranks(over, 0, &[number]));
    eventually("the job whose ranks are gone ends", || jobs(&fabric) == [(other, true)]);
    for node in &nodes {
        assert_eq!(node.next(), ManagerMessage::End { job: over });
    }
}

/// What a deputy says first.
fn serve(ticket: &JobTicket, rank: u32, pass: Pass) -> Request {
    let process = Process { host: "h7".into(), pid: 42 };
    let stream = "127.0.0.1:4700".parse().unwrap();
    Request::Serve(ServeRequest { job: ticket.job, pass, rank, process, stream })
}

/// What such a rank has replayed.
const REPLAYED: Replayed = Replayed { fragments: 3, segments: 2, bytes: 1_000 };

/// A rank that hosts all nodes of its job: the connection over which it answers.
fn deputy(fabric: &Fabric, ticket: &JobTicket) -> Arc<Channel> {
    let channel = Arc::new(Channel::connect(&fabric.url(), Role::User, LIMIT).unwrap());
    channel.send(&serve(ticket, 0, ticket.pass.clone())).unwrap();
    assert_eq!(channel.recv::<ManagerMessage>(Some(LIMIT)).unwrap(), ManagerMessage::Registered);
    let (inner, job) = (channel.clone(), ticket.job);
    thread::spawn(move || {
        while let Ok(message) = inner.recv::<ManagerMessage>(None) {
            let activity = Activity { groups: 1, ranks: 2, idle_ms: 0 };
            let moves = vec![(NodeId(0), 1), (NodeId(1), 1)];
            let answer = match message {
                ManagerMessage::Ping => NodeMessage::Alive,
                ManagerMessage::QueryActivity => NodeMessage::Activity(vec![JobActivity {
                    job,
                    activity,
                    nodes_in_ranks: 0,
                    moves,
                    spent: Vec::new(),
                    replayed: REPLAYED,
                }]),
                other => panic!("{other:?}"),
            };
            let _ = inner.send(&answer);
        }
    });
    channel
}

#[test]
fn a_job_whose_nodes_are_at_ranks_of_its_own_goes_on_until_they_have_gone() {
    let (mut fabric, nodes) = Fabric::with_nodes();
    let user = fabric.user();
    let request = JobRequest { pids: vec![41, 42], ..with_deputies([4700, 4700]) };
    let Reply::Granted(ticket) = user.0.ask(&Request::RequestJob(request), LIMIT).unwrap() else { panic!("refused") };
    assert!(ticket.recovers && ticket.nodes.iter().all(|node| node.candidates.len() > 1));
    let guess = fabric.user().0.ask::<_, Reply>(&serve(&ticket, 0, Pass([0; 32])), LIMIT).unwrap();
    let refusal = |reply: Reply| match reply {
        Reply::Refused(refusal) => refusal.text,
        other => panic!("{other:?}"),
    };
    assert!(refusal(guess).contains("shows its pass"));
    let stranger = fabric.user().0.ask::<_, Reply>(&serve(&ticket, 7, ticket.pass.clone()), LIMIT).unwrap();
    assert!(refusal(stranger).contains("no rank 7"));

    drop(nodes);
    fabric.stop_manager();
    drop(user);
    fabric.start_manager();
    let began = Instant::now();
    let rank = deputy(&fabric, &ticket);
    let _nodes = ["root", "leaf0", "leaf1"].map(|name| {
        let node = fabric.node(name, Manner::Installs);
        node.channel.send(&NodeMessage::Hosts { jobs: Vec::new() }).unwrap();
        node
    });
    // No node has it, and it runs. It is looked for at nodes and ranks all the time.
    while began.elapsed() < Duration::from_secs(16) {
        let told = fabric.user().jobs().live;
        let [job] = &told[..] else { panic!("{told:?}") };
        assert_eq!((job.id, job.adopted, job.activity.map(|doing| doing.ranks)), (ticket.job, true, Some(2)));
        let moved: Vec<String> = job.moved.iter().map(|home| format!("{} {}", home.name, home.at)).collect();
        let is_at_a_rank = |home: &String| home.ends_with(" rank 0 on h7") || home.ends_with(" rank 1");
        assert!(job.epochs == 2 && moved.len() == 2 && moved.iter().all(is_at_a_rank), "{moved:?}");
        let status = fabric.user().status();
        assert_eq!((&status.homes[0].moved, status.homes[0].replayed, job.replayed), (&job.moved, REPLAYED, REPLAYED));
        thread::sleep(Duration::from_millis(500));
    }
    rank.close();
    eventually("the job is forgotten", || jobs(&fabric).is_empty());
}
