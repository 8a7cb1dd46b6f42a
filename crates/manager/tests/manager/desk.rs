//! A manager without connections, in a time that is played.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use trib_manager::{Asker, Caller, Connected, Desk, Kept, Played};
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::reply::{Reply, Resource};
use trib_messages::request::{JobRequest, Request};
use trib_topology::Topology;

use crate::common::{TWO_LEAVES, attachment, with_deputies};

/// A time that passes only in waits, each of which first calls `meanwhile`.
struct Stage {
    begin: Instant,
    passed_ms: AtomicU64,
    desk: OnceLock<Desk>,
    nodes: Mutex<Vec<Connected>>,
    /// What a rank asks while another one waits.
    next: Mutex<Option<Request>>,
    answered: Mutex<Vec<Reply>>,
}

impl Played for Stage {
    fn now(&self) -> Instant {
        self.begin + Duration::from_millis(self.passed_ms.load(Ordering::Relaxed))
    }

    fn unix_ms(&self) -> u64 {
        1_700_000_000_000 + self.passed_ms.load(Ordering::Relaxed)
    }

    fn pass(&self, most: Duration) {
        let next = self.next.lock().unwrap().take();
        match next {
            Some(request) => self.ask(request, &mut Vec::new()),
            None if self.nodes_answer() => {}
            None => drop(self.passed_ms.fetch_add(most.as_millis() as u64, Ordering::Relaxed)),
        }
    }
}

impl Stage {
    fn new() -> Arc<Stage> {
        let stage = Arc::new(Stage {
            begin: Instant::now(),
            passed_ms: AtomicU64::new(0),
            desk: OnceLock::new(),
            nodes: Mutex::default(),
            next: Mutex::default(),
            answered: Mutex::default(),
        });
        let topology = Topology::parse(TWO_LEAVES, "test.toml".as_ref()).unwrap();
        assert!(stage.desk.set(Desk::new(topology, None, stage.clone()).unwrap()).is_ok());
        stage
    }

    fn desk(&self) -> &Desk {
        self.desk.get().unwrap()
    }

    fn ask(&self, request: Request, held: &mut Vec<trib_wire::JobId>) {
        let reply = self.desk().ask(&Asker { tenant: None, is_gone: &|| false }, request, held);
        self.answered.lock().unwrap().extend(reply);
    }

    fn register(&self, name: &str) {
        let caller = Caller {
            address: ([10, 0, 0, 1], 9).into(),
            node: Some(name.into()),
            software: String::new(),
            certificate_ends: 0,
            hang_up: Box::new(|| {}),
        };
        let hello = NodeMessage::Register {
            name: name.into(),
            stream: ([10, 0, 0, 1], 4000).into(),
            further: Vec::new(),
            datagram_buffer_bytes: 8 << 20,
            workers: 1,
            jobs: Vec::new(),
        };
        // The nodes answer while this one waits.
        let connected = self.desk().register(caller, hello).unwrap();
        self.nodes.lock().unwrap().push(connected);
    }

    /// The nodes install what they are given. Returns whether there was anything.
    fn nodes_answer(&self) -> bool {
        let mut any = false;
        for node in &*self.nodes.lock().unwrap() {
            while let Some(message) = node.next() {
                any = true;
                if let ManagerMessage::Install(grant) = message {
                    self.desk().hear(node, NodeMessage::Installed { job: grant.job, node: grant.node });
                }
            }
        }
        any
    }
}

#[test]
fn ranks_meet_while_each_of_them_waits_and_nothing_is_left_of_their_job_when_all_are_gone() {
    let stage = Stage::new();
    ["root", "leaf0", "leaf1"].iter().for_each(|name| stage.register(name));
    let rank = |rank| Request::Attach(attachment("here", rank, 2, 60_000));
    *stage.next.lock().unwrap() = Some(rank(1));
    let mut held = Vec::new();
    stage.ask(rank(0), &mut held);
    let answered = std::mem::take(&mut *stage.answered.lock().unwrap());
    let [Reply::Granted(inner), Reply::Granted(outer)] = &answered[..] else { panic!("{answered:?}") };
    assert_eq!((inner.job, &held), (outer.job, &vec![outer.job]));
    let (kept, desk) = (stage.desk().kept(), stage.desk());
    assert_eq!((kept.jobs, kept.claims, kept.gathering), (1, 1, 0));
    desk.hang_up(&mut held);
    std::mem::take(&mut *stage.nodes.lock().unwrap()).into_iter().for_each(|node| desk.lose(node));
    for _ in 0..12 {
        stage.passed_ms.fetch_add(1000, Ordering::Relaxed);
        desk.glance();
    }
    assert_eq!(desk.kept(), Kept::default());
}

#[test]
fn a_rank_that_nobody_joins_is_refused_when_its_patience_is_over() {
    let stage = Stage::new();
    stage.ask(Request::Attach(attachment("here", 0, 2, 60_000)), &mut Vec::new());
    let answered = stage.answered.lock().unwrap();
    assert!(
        matches!(&answered[..], [Reply::Refused(refusal)] if refusal.resource == Resource::Rendezvous),
        "{answered:?}"
    );
    assert_eq!(stage.passed_ms.load(Ordering::Relaxed), 60_000);
}

#[test]
fn a_process_that_was_replaced_takes_nothing_from_jobs_of_the_one_in_its_stead_when_its_connection_ends() {
    let stage = Stage::new();
    ["root", "leaf0", "leaf1"].iter().for_each(|name| stage.register(name));
    // The leaf nodes do not answer, and others come in their stead.
    ["leaf0", "leaf1"].iter().for_each(|name| stage.register(name));
    let mut held = Vec::new();
    stage.ask(Request::Attach(attachment("here", 0, 1, 60_000)), &mut held);
    let job = held[0];
    let replaced: Vec<_> = stage.nodes.lock().unwrap().drain(1..3).collect();
    replaced.into_iter().for_each(|node| stage.desk().lose(node));
    stage.ask(Request::EndJob { job, why: None }, &mut held);
    assert_eq!((stage.desk().kept().jobs, stage.desk().kept().claims), (0, 1), "it is still at its nodes");
    for node in &*stage.nodes.lock().unwrap() {
        stage.desk().hear(node, NodeMessage::Left { job });
    }
    assert_eq!(stage.desk().kept(), Kept::default());
}

#[test]
fn a_node_that_is_stopped_keeps_nothing_of_jobs_that_have_ended() {
    let stage = Stage::new();
    ["root", "leaf0", "leaf1"].iter().for_each(|name| stage.register(name));
    let request = || Request::RequestJob(JobRequest { hosts: vec!["x".into(); 2], ..with_deputies([]) });
    let mut held = Vec::new();
    stage.ask(request(), &mut held);
    stage.ask(request(), &mut held);
    let [ended, running] = held[..] else { panic!("{:?}", stage.answered.lock().unwrap()) };
    let (nodes, desk) = (stage.nodes.lock().unwrap(), stage.desk());
    let [.., stopped] = &nodes[..] else { panic!("three nodes") };
    let others = &nodes[..2];
    // The time of a second passes, and all but one node answer.
    let second = || {
        stage.passed_ms.fetch_add(1000, Ordering::Relaxed);
        desk.beat();
        others.iter().for_each(|node| assert!(desk.hear(node, NodeMessage::Alive)));
        desk.glance();
    };
    let end = |job, held: &mut Vec<_>| {
        stage.ask(Request::EndJob { job, why: None }, held);
        others.iter().for_each(|node| assert!(desk.hear(node, NodeMessage::Left { job })));
    };
    end(ended, &mut held);
    (0..60).for_each(|_| second());
    assert_eq!((desk.kept().jobs, desk.kept().claims), (1, 2), "it may go on");
    (0..2).for_each(|_| second());
    assert_eq!((desk.kept().jobs, desk.kept().claims), (1, 1), "the other job runs");
    // It goes on, and has what it was told.
    desk.hear(stopped, NodeMessage::Left { job: ended });
    second();
    end(running, &mut held);
    second();
    assert_eq!(desk.kept().claims, 1, "it answers, and has not said that the job has left");
    desk.hear(stopped, NodeMessage::Left { job: running });
    assert_eq!(desk.kept(), Kept::default());
}
