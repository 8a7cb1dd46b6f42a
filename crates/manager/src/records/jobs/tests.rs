//! The table of jobs: numbers, names, adoption.

use trib_messages::jobs::Names;
use trib_wire::ids::NodeId;

use super::*;

fn job(name: &str) -> JobStatus {
    JobStatus {
        id: JobId(0),
        name: name.into(),
        user: "u".into(),
        ranks: 1,
        nodes: vec!["a".into(), "b".into()],
        homes: vec![0, 1],
        backups: Vec::new(),
        deputies: Vec::new(),
        in_ranks: Vec::new(),
        since: 1_700_000_000,
        hosts: Names { count: 1, list: "h0".into() },
        root: "a".into(),
        around: Vec::new(),
        fallback: None,
        fault: None,
        limits: None,
        adopted: false,
        lost_ms: None,
        charge: None,
        lanes: Vec::new(),
        prediction: None,
    }
}

fn enter(jobs: &Jobs, name: &str) -> Result<JobId, Refusal> {
    let id = jobs.number();
    let belongings = Belongings { footprint: None, pass: &Pass([1; 32]) };
    jobs.enter(JobStatus { id, ..job(name) }, &belongings, Processes::default(), Ways::default()).map(|()| id)
}

#[test]
fn numbers_differ_are_never_zero_and_wrap() {
    let jobs = Jobs::new(None, Kept::default());
    assert_eq!(enter(&jobs, "first").unwrap(), JobId(1));
    jobs.leave(JobId(1), |_| None).unwrap();
    jobs.lock().last = u32::MAX - 1;
    let ids: Vec<u32> = (0..3).map(|_| enter(&jobs, "a").unwrap().0).collect();
    assert_eq!(ids, [u32::MAX, 1, 2]);
    let order: Vec<u32> = jobs.list().iter().map(|job| job.id.0).collect();
    assert_eq!(order, ids);
    assert_eq!(jobs.leave(JobId(1), |_| None).unwrap().id, JobId(1));
    assert_eq!(jobs.leave(JobId(1), |_| None), None);
    assert_eq!(jobs.list().len(), 2);
}

#[test]
fn a_request_that_was_refused_keeps_its_number_over_a_restart() {
    assert_eq!([later(7, JobId(9)), later(9, JobId(7)), later(0, JobId(5))], [9, 9, 5]);
    assert_eq!([later(u32::MAX, JobId(2)), later(2, JobId(u32::MAX))], [2, 2]);
}

#[test]
fn a_number_that_a_node_still_holds_from_an_earlier_manager_is_not_given_again() {
    let jobs = Jobs::new(None, Kept::default());
    assert_eq!(jobs.hosted("b", &[JobId(1), JobId(2), JobId(4)]), []);
    assert_eq!([jobs.number(), jobs.number()], [JobId(3), JobId(5)]);
    jobs.lock().last = 0;
    jobs.left("b", JobId(1));
    assert_eq!([jobs.number(), jobs.number()], [JobId(1), JobId(3)]);
    // The node comes back with none of them: they are gone with its process.
    jobs.hosted("b", &[]);
    jobs.lock().last = 0;
    assert_eq!([jobs.number(), jobs.number()], [JobId(1), JobId(2)]);
    // What this manager itself has sent there is not an earlier manager's.
    let own = enter(&jobs, "a").unwrap();
    jobs.hosted("b", &[own]);
    assert!(jobs.lock().foreign.is_empty());
}

fn dead_node(node: u16) -> Fault {
    let rank = Rank(0);
    Fault { reason: trib_wire::Reason::NodeDead, node: NodeId(node), rank_a: rank, rank_b: rank, signatures: None }
}

#[test]
fn a_fault_is_told_with_the_names_of_the_job_and_by_its_own_nodes_only() {
    let jobs = Jobs::new(None, Kept::default());
    let id = jobs.number();
    let processes = Processes::new(&["h0".to_owned()], vec![42]);
    let belongings = Belongings { footprint: None, pass: &Pass([1; 32]) };
    jobs.enter(JobStatus { id, ..job("train") }, &belongings, processes, Ways::default()).unwrap();
    let rank = Fault { reason: trib_wire::Reason::MemberDead, ..dead_node(1) };
    let by_name = |node: &str, fault: &Fault| jobs.told(id, node, Some(fault), "in the node's words");
    let dead = "node b of the reduction tree is gone or does not answer";
    let died = "rank 0 on h0 (PID 42) died or lost its connection to node b";
    let left = Fault { reason: trib_wire::Reason::MemberLeft, ..dead_node(1) };
    let by_itself = "rank 0 on h0 (PID 42) left the group while it was in use";
    let check = || {
        assert_eq!(by_name("a", &dead_node(1)).as_deref(), Some(dead));
        assert_eq!(by_name("b", &rank).as_deref(), Some(died));
        assert_eq!(by_name("b", &left).as_deref(), Some(by_itself), "no rank stands on its other side");
        assert!(by_name("a", &dead_node(7)).unwrap().contains("node (unknown) of"), "a node that the job has not");
        let own = jobs.told(id, "b", None, "an error\u{1b}[2J").unwrap();
        assert_eq!(own, "b: an error\u{fffd}[2J");
        assert_eq!(jobs.told(id, "b", None, &"x".repeat(9_000)).unwrap().len(), STORY_MAX);
        assert_eq!(by_name("c", &dead_node(1)), None, "it is no node of the job's");
        assert_eq!(jobs.told(JobId(id.0 + 1), "a", Some(&rank), ""), None);
    };
    check();
    assert!(jobs.fault(id, died.into()) && jobs.fault(id, dead.into()));
    assert_eq!(jobs.get(id).unwrap().fault.unwrap().text, died, "the first word counts");
    // What a node says may come after the end of the connection that held the job.
    jobs.leave(id, |_| None).unwrap();
    check();
    jobs.left("a", id);
    assert_eq!((by_name("a", &rank), by_name("b", &rank).as_deref()), (None, Some(died)));
    jobs.hosted("b", &[]);
    assert_eq!(by_name("b", &rank), None, "the node has said that it is over");
}

#[test]
fn a_job_without_its_connection_ends_when_all_its_nodes_have_lost_it() {
    let jobs = Jobs::new(None, Kept::default());
    let [held, lost, hosted_by_ranks] = [0; 3].map(|_| enter(&jobs, "a").unwrap());
    jobs.lock().live.get_mut(&hosted_by_ranks).unwrap().status.deputies = vec![vec![0]];
    let both = [held, lost, hosted_by_ranks];
    assert_eq!((jobs.left("a", held), jobs.unheld().len()), (Vec::new(), 0), "it is held");
    jobs.lose(lost);
    jobs.lose(hosted_by_ranks);
    assert_eq!(jobs.unheld().iter().map(|job| job.status.id).collect::<Vec<_>>(), both[1..]);
    assert!(jobs.get(lost).unwrap().lost_ms.is_some() && jobs.get(held).unwrap().is_held());
    both.iter().for_each(|job| assert_eq!(jobs.left("a", *job), []));
    assert_eq!(jobs.give_up(&BTreeSet::from(["b".into()])), [lost], "ranks may host what no node does");
    // One that has ended is not there to be lost.
    assert!(jobs.leave(lost, |_| None).is_some());
    jobs.lose(lost);
    assert_eq!(jobs.list().len(), 2);
}

#[test]
fn there_is_an_end_to_jobs() {
    let jobs = Jobs::new(None, Kept::default());
    for _ in 0..JOBS_MAX {
        enter(&jobs, "a").unwrap();
    }
    let refusal = enter(&jobs, "b").unwrap_err();
    assert_eq!((refusal.resource, refusal.available), (Resource::Jobs, JOBS_MAX as u64));
    assert_eq!((refusal.holder.as_deref(), refusal.since_ms), (Some("u"), Some(1_700_000_000_000)));
    assert_eq!(jobs.list().len(), JOBS_MAX);
}

#[test]
fn an_adopted_job_ends_when_no_node_has_it_and_others_do_not_mind() {
    let path = std::env::temp_dir().join(format!("trib-jobs-{}", std::process::id()));
    let open = || {
        let store = Store::open(&path).unwrap();
        let kept = store.load().unwrap();
        Jobs::new(Some(Arc::new(store)), kept)
    };
    let ids: Vec<JobId> = {
        let jobs = open();
        (0..3).map(|_| enter(&jobs, "a").unwrap()).collect()
    };
    let jobs = open();
    assert!(jobs.list().iter().all(|job| job.adopted) && jobs.unheld().len() == 3);
    assert_eq!(
        jobs.told(ids[0], "a", Some(&dead_node(1)), "").as_deref(),
        Some("node b of the reduction tree is gone or does not answer")
    );
    let own = enter(&jobs, "b").unwrap();
    assert_eq!(own.0, ids[2].0.wrapping_add(1));
    assert_eq!(jobs.hosted("a", &ids[..2]), []);
    assert_eq!(jobs.hosted("b", &ids[..1]), [ids[2]]);
    assert!(jobs.leave(ids[2], |_| None).is_some());
    assert_eq!(jobs.left("a", ids[1]), [ids[1]]);
    assert!(jobs.leave(ids[1], |_| None).is_some());
    assert_eq!(jobs.left("a", own), []);
    assert_eq!(jobs.give_up(&BTreeSet::from(["b".into()])), []);
    drop(jobs);
    let left: Vec<JobId> = open().list().iter().map(|job| job.id).collect();
    assert_eq!(left, [ids[0], own]);
    std::fs::remove_file(path).unwrap();
}
