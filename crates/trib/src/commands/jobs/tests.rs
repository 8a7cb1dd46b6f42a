use trib_messages::jobs::{Activity, JobFault, Names};
use trib_messages::recovery::Replayed;
use trib_wire::ids::JobId;

use super::*;
use crate::commands::manager_option::ManagerOption;

fn arguments(all: bool, ended: bool, refused: bool, user: Option<&str>) -> Arguments {
    let query =
        Query { json: false, timeout: std::time::Duration::from_secs(5), manager: ManagerOption { manager: None } };
    Arguments { all, ended, refused, user: user.map(str::to_owned), program: None, query }
}

fn live(id: u32, user: &str, activity: Option<Activity>) -> LiveJob {
    LiveJob {
        backups: None,
        recovery: None,
        id: JobId(id),
        name: "train".into(),
        user: user.into(),
        ranks: 8,
        hosts: Names { count: 8, list: "h[0-7]".into() },
        root: "spine".into(),
        nodes: Names { count: 2, list: "spine,leaf".into() },
        since_ms: 1_000,
        adopted: false,
        lost_ms: None,
        activity,
        fallback: None,
        fault: None,
        epochs: 0,
        moved: Vec::new(),
        replayed: Replayed::default(),
    }
}

fn past(id: u32, outcome: JobEnd) -> PastJob {
    PastJob {
        id: JobId(id),
        name: "train".into(),
        user: "ann".into(),
        tenant: None,
        ranks: 8,
        hosts: Names { count: 8, list: "h[0-7]".into() },
        root: String::new(),
        began_ms: 1_000,
        ended_ms: 61_000,
        times: 3,
        outcome,
        fallback: None,
    }
}

fn report() -> JobsReport {
    let refusal = Refusal {
        resource: Resource::StreamThreshold,
        asked: 9,
        available: 7,
        holder: Some("bob".into()),
        since_ms: Some(31_000),
        text: "no".into(),
    };
    JobsReport {
        fabric: "f".into(),
        time_ms: 91_000,
        started_ms: 0,
        live: vec![
            live(1, "ann", Some(Activity { groups: 2, ranks: 8, idle_ms: 0 })),
            live(2, "bob", Some(Activity { groups: 0, ranks: 6, idle_ms: 10_000 })),
        ],
        past: vec![past(3, JobEnd::Ended), past(4, JobEnd::Refused(refusal))],
        forgotten: 0,
    }
}

#[test]
fn what_was_asked_for_is_listed_and_what_was_left_out_counted() {
    let select = |all, ended, refused, user| {
        let mut report = report();
        let left_out = arguments(all, ended, refused, user).select(&mut report);
        let live: Vec<u32> = report.live.iter().map(|job| job.id.0).collect();
        let past: Vec<u32> = report.past.iter().map(|job| job.id.0).collect();
        (live, past, left_out)
    };
    assert_eq!(select(false, false, false, None), (vec![1, 2], vec![], 2));
    assert_eq!(select(true, false, false, None), (vec![1, 2], vec![3, 4], 0));
    assert_eq!(select(false, true, false, None), (vec![], vec![3], 0));
    assert_eq!(select(false, false, true, None), (vec![], vec![4], 0));
    assert_eq!(select(false, true, true, None), (vec![], vec![3, 4], 0));
    assert_eq!(select(true, false, false, Some("bob")), (vec![2], vec![], 0));
}

#[test]
fn states_follow_from_what_nodes_and_the_program_say() {
    let doing = |ranks, idle_ms| Some(Activity { groups: 0, ranks, idle_ms });
    assert_eq!(state(&live(1, "a", None)), "unknown");
    assert_eq!(state(&live(1, "a", doing(0, 0))), "waiting");
    assert_eq!(state(&live(1, "a", doing(1, 9_999))), "running");
    assert_eq!(state(&live(1, "a", doing(1, 10_000))), "idle");
    let fallback = Some(Fallback { text: "its node died".into(), since_ms: 0 });
    assert_eq!(state(&LiveJob { fallback, ..live(1, "a", doing(1, 0)) }), "fallback");
    let fault = Some(JobFault { text: "rank 3 died".into(), since_ms: 0 });
    assert_eq!(state(&LiveJob { fault, ..live(1, "a", doing(1, 0)) }), "faulty");
}

#[test]
fn tables_say_who_does_what_and_why_not() {
    let text = tables(&report(), 0);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let line =
        |id: &str| lines.iter().find(|line| line.first() == Some(&id)).unwrap_or_else(|| panic!("{text}")).join(" ");
    assert_eq!(line("1"), "1 running train ann 8 h[0-7] spine spine,leaf 2 1 min 30 s 0 ms");
    assert_eq!(line("2"), "2 idle train bob 6/8 h[0-7] spine spine,leaf 0 1 min 30 s 10 s");
    assert_eq!(line("3"), "3 ended train ann 8 h[0-7] 1 min 30 s ago -");
    assert_eq!(line("4"), "4 refused train ann 8 h[0-7] 30 s ago 3 stream_threshold 9 7 bob 1 min ago");
    let fault = Some(JobFault { text: "rank 3 died".into(), since_ms: 0 });
    let faulty = JobsReport { live: vec![LiveJob { fault, ..live(1, "ann", None) }], ..report() };
    assert!(tables(&faulty, 0).contains("\njob 1, faulty: rank 3 died\n"), "{}", tables(&faulty, 0));
    let lost =
        JobsReport { time_ms: 9_000, live: vec![LiveJob { lost_ms: Some(4_000), ..live(1, "ann", None) }], ..report() };
    assert!(tables(&lost, 0).contains("\njob 1 goes on without its rank 0 for 5 s\n"), "{}", tables(&lost, 0));
    let empty = tables(&JobsReport { fabric: "f".into(), time_ms: 5_000, ..JobsReport::default() }, 7);
    assert!(empty.starts_with("no such jobs on f; its manager has run for 5 s\n(7 more"), "{empty}");
}

#[test]
fn json_tells_the_state_too() {
    let value = with_states(&report());
    assert_eq!(value["live"][1]["state"], "idle");
    assert_eq!(value["past"][1]["state"], "refused");
    assert_eq!(value["past"][1]["outcome"]["refused"]["since_ms"], 31_000);
}

#[test]
fn every_state_is_documented() {
    let page = include_str!("../../../../../docs/jobs.md");
    let states = ["running", "idle", "waiting", "fallback", "faulty", "unknown"].map(str::to_owned);
    let why = String::new();
    let [given_up, failed, interrupted] = [
        JobEnd::GivenUp { why: why.clone() },
        JobEnd::Failed { fault: None, launcher: Some(why.clone()) },
        JobEnd::Interrupted { signal: why },
    ];
    let JobEnd::Refused(refusal) = report().past.remove(1).outcome else { panic!("it was refused") };
    let ends = [JobEnd::Ended, JobEnd::Lost, JobEnd::Left, given_up, failed, interrupted, JobEnd::Refused(refusal)];
    for word in states.into_iter().chain(ends.map(|end| end.word().to_owned())) {
        assert!(page.contains(&format!("| `{word}` |")), "{word}");
    }
}
