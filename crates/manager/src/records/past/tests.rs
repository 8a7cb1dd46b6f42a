use proptest::prelude::*;
use trib_messages::reply::{Reply, Resource};
use trib_messages::request::QuotaAsk;

use super::*;
use crate::refuse::{lasting, refuse};

fn request(name: &str, hosts: usize) -> JobRequest {
    let hosts = (0..hosts).map(|n| format!("h{n}")).collect();
    JobRequest {
        hosts,
        pids: Vec::new(),
        deputies: Vec::new(),
        domains: Vec::new(),
        ask: QuotaAsk::default(),
        name: name.into(),
        user: "ann".into(),
        wait_ms: None,
        patience_ms: None,
    }
}

fn status(id: u32, name: &str) -> JobStatus {
    JobStatus {
        id: JobId(id),
        name: name.into(),
        user: "ann".into(),
        ranks: 2,
        nodes: vec!["a".into()],
        homes: vec![0],
        backups: Vec::new(),
        deputies: Vec::new(),
        in_ranks: Vec::new(),
        since: 1_700_000_000,
        hosts: Names { count: 2, list: "h[0-1]".into() },
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

#[test]
fn a_request_that_is_refused_again_counts_on_under_its_first_number() {
    let past = Past::default();
    let (away, full) = (refuse(Resource::Node, Some("spine0"), "away"), refuse(Resource::Memory, Some("a"), "full"));
    assert_eq!(past.refused(JobId(7), None, &request("train", 3), &lasting(away.clone(), 5)), JobId(7));
    assert_eq!(past.refused(JobId(8), None, &request("train", 3), &lasting(away.clone(), 5)), JobId(7));
    assert_eq!(past.refused(JobId(9), None, &request("train", 3), &full), JobId(9));
    assert_eq!(past.refused(JobId(10), None, &request("train", 4), &away), JobId(10));
    let times: Vec<(u32, u32)> = past.list().0.iter().map(|job| (job.id.0, job.times)).collect();
    assert_eq!(times, [(7, 2), (9, 1), (10, 1)]);
    assert_eq!(past.get(JobId(8)), None);
    assert_eq!(past.get(JobId(7)).unwrap().hosts, Names { count: 3, list: "h[0-2]".into() });
}

#[test]
fn the_last_of_a_program_is_found_whether_it_ended_or_was_refused() {
    let past = Past::default();
    past.ended(status(1, "train"), JobEnd::Ended);
    std::thread::sleep(std::time::Duration::from_millis(2));
    past.refused(JobId(2), None, &request("train", 1), &refuse(Resource::Host, None, "no"));
    past.refused(JobId(3), None, &request("other", 1), &refuse(Resource::Host, None, "no"));
    assert_eq!(past.last_of("train", &Sight::All).unwrap().id, JobId(2));
    assert_eq!(past.last_of("trai", &Sight::All), None);
    std::thread::sleep(std::time::Duration::from_millis(2));
    past.ended(status(4, "train"), JobEnd::Lost);
    assert_eq!(past.last_of("train", &Sight::All).unwrap().outcome, JobEnd::Lost);
}

#[test]
fn the_longest_answer_fits_a_message() {
    let past = Past::default();
    // Quotes grow when they are written, and control characters are replaced by longer ones.
    let wild: String = "\"\\\u{1}".repeat(5_000);
    for n in 0..2 * RING as u32 {
        let text = format!("{n}{wild}");
        let refusal = Refusal { holder: Some(text.clone()), ..refuse(Resource::Node, None, text.clone()) };
        let JobRequest { hosts, ask, .. } = request("", 1);
        let hosts = hosts.into_iter().chain([text.clone()]).collect();
        past.refused(
            JobId(n),
            None,
            &JobRequest {
                hosts,
                pids: Vec::new(),
                deputies: Vec::new(),
                domains: Vec::new(),
                ask,
                name: text.clone(),
                user: text.clone(),
                wait_ms: None,
                patience_ms: None,
            },
            &refusal,
        );
        let fallback = Some(trib_messages::jobs::Fallback { text: cut(&text, STORY_MAX), since_ms: 1 });
        past.ended(JobStatus { user: text.clone(), fallback, ..status(n, &text) }, JobEnd::GivenUp { why: text });
    }
    let (list, forgotten) = past.list();
    assert_eq!((list.len(), forgotten), (2 * RING, 2 * RING as u64));
    let report = trib_messages::jobs::JobsReport { past: list, ..Default::default() };
    let bytes = serde_json::to_vec(&Reply::Jobs(report)).unwrap().len();
    // The rest of a message is for the jobs that are admitted.
    assert!(bytes < trib_control::MESSAGE_MAX / 8 * 3, "{bytes}");
}

#[test]
fn a_health_check_of_many_hosts_drives_out_no_other_job() {
    let past = Past::default();
    let full = refuse(Resource::Jobs, None, "full");
    let trial = |n: u32| JobRequest { hosts: vec![format!("h{n}")], ..request("trib", 1) };
    past.ended(status(1, "train"), JobEnd::Ended);
    past.refused(JobId(2), None, &request("other", 3), &full);
    let trials = 3..3 + RING as u32 + 88;
    for n in trials.clone() {
        past.ended(JobStatus { ranks: 1, ..status(n, "trib") }, JobEnd::Ended);
        past.refused(JobId(10_000 + n), None, &trial(n), &full);
    }
    assert_eq!(past.get(JobId(1)).unwrap().name, "train");
    assert_eq!(past.get(JobId(2)).unwrap().name, "other");
    // The newest trials are known nevertheless.
    assert!([trials.end - 1, 10_000 + trials.end - 1].into_iter().all(|n| past.get(JobId(n)).is_some()));
    let (list, forgotten) = past.list();
    assert_eq!((list.len(), forgotten), (2 * (TRIALS + 1), 0));
    // A job of several ranks is none.
    (0..RING as u32).for_each(|n| drop(past.ended(status(20_000 + n, "trib"), JobEnd::Ended)));
    assert_eq!((past.get(JobId(1)), past.list().1), (None, TRIALS as u64 + 1));
}

/// What may happen to a ring.
#[derive(Clone, Debug)]
enum Event {
    Ended(u8),
    Refused(u8, u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        (0u8..3).prop_map(Event::Ended),
        (0u8..4, 0u8..3).prop_map(|(name, asked)| Event::Refused(name, asked)),
    ];
    proptest::collection::vec(event, 0..2_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    // The ring is compared with a plain reference: all that ever happened, in a list that is read
    // from its end.
    #[test]
    fn the_newest_of_each_kind_are_known_and_no_more(events in events()) {
        let past = Past::default();
        let mut ended: Vec<u32> = Vec::new();
        // Each has a name, an amount, its first number, and how many times it was refused.
        let mut refused: Vec<(u8, u8, u32, u32)> = Vec::new();
        for (n, event) in events.iter().enumerate() {
            let id = n as u32 + 1;
            match event {
                Event::Ended(name) => {
                    past.ended(status(id, &name.to_string()), JobEnd::Ended);
                    ended.push(id);
                }
                Event::Refused(name, asked) => {
                    let refusal = crate::refuse::too_much(Resource::Groups, u64::from(*asked), 0, format!("try {n}"));
                    let known = past.refused(JobId(id), None, &request(&name.to_string(), 1), &refusal);
                    let same = refused.iter().position(|(other, what, ..)| (other, what) == (name, asked));
                    let (first, times) = same.map_or((id, 0), |at| { let (.., first, times) = refused.remove(at); (first, times) });
                    prop_assert_eq!(known, JobId(first));
                    refused.push((*name, *asked, first, times + 1));
                }
            }
        }
        let newest = &ended[ended.len().saturating_sub(RING)..];
        let (list, forgotten) = past.list();
        let mut told: Vec<u32> = list.iter().filter(|job| job.outcome == JobEnd::Ended).map(|job| job.id.0).collect();
        told.sort_unstable();
        prop_assert_eq!(told, newest.to_vec());
        let counted: u32 = list.iter().filter(|job| job.outcome != JobEnd::Ended).map(|job| job.times).sum();
        prop_assert_eq!(counted as usize, events.iter().filter(|event| matches!(event, Event::Refused(..))).count());
        prop_assert_eq!(forgotten as usize, ended.len() - newest.len());
    }
}

#[test]
fn what_was_is_known_to_the_next_manager_and_no_more_of_it_than_before() {
    let path = std::env::temp_dir().join(format!("trib-past-{}", std::process::id()));
    let open = || {
        let store = Arc::new(Store::open(&path).unwrap());
        let kept = store.load().unwrap();
        let (past, old) = Past::new(kept.past, Some(&store)).unwrap();
        store.trim(&old).unwrap();
        (store, past)
    };
    let told = {
        let (store, past) = open();
        // These are more than fit. Some of them are refused again and so are the newest.
        for n in 1..=RING as u32 + 9 {
            past.refused(JobId(n), None, &request(&n.to_string(), 1), &refuse(Resource::Host, None, "no"));
        }
        past.refused(JobId(9_999), None, &request("11", 1), &refuse(Resource::Host, None, "no"));
        let entries =
            [(7_001, JobEnd::Ended), (7_002, JobEnd::Lost)].map(|(id, how)| past.ended(status(id, "train"), how));
        store.remember(&entries).unwrap();
        past.list().0
    };
    let ids =
        |list: &[PastJob]| list.iter().map(|job| (job.id.0, job.times)).collect::<std::collections::BTreeSet<_>>();
    let (_store, past) = open();
    assert_eq!(ids(&past.list().0), ids(&told));
    assert_eq!((past.list().0.len(), past.get(JobId(11)).unwrap().times), (RING + 2, 2));
    assert_eq!(past.get(JobId(7_002)).unwrap().outcome, JobEnd::Lost);
    drop(past);
    drop(_store);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_job_that_ended_without_a_word_has_failed_where_a_node_knows_why() {
    let past = Past::default();
    let fault = Some(trib_messages::jobs::JobFault { text: "rank 3 died".into(), since_ms: 1 });
    past.ended(JobStatus { fault: fault.clone(), ..status(1, "a") }, JobEnd::Lost);
    past.ended(JobStatus { fault, ..status(2, "a") }, JobEnd::Ended);
    past.ended(status(3, "a"), JobEnd::Lost);
    let failed = |fault: &str, launcher: Option<&str>| JobEnd::Failed {
        fault: Some(fault.into()),
        launcher: launcher.map(str::to_owned),
    };
    let outcome = |id: u32| past.get(JobId(id)).unwrap().outcome;
    assert_eq!([outcome(1), outcome(2), outcome(3)], [failed("rank 3 died", None), JobEnd::Ended, JobEnd::Lost]);
    // The node's reason may come after the connection's end. Only the first one counts.
    past.fault(JobId(3), "ranks disagree");
    past.fault(JobId(3), "rank 3 died");
    past.fault(JobId(2), "rank 3 died");
    past.fault(JobId(9), "rank 3 died");
    assert_eq!([outcome(3), outcome(2)], [failed("ranks disagree", None), JobEnd::Ended]);
    // So may the launcher's account, before or after the node's reason.
    let account = Account::Failed("rank 3 was ended by signal 9 (SIGKILL)".into());
    past.account(JobId(1), &account);
    past.ended(status(4, "a"), end_of(&account));
    past.fault(JobId(4), "rank 3 died");
    let both = failed("rank 3 died", Some("rank 3 was ended by signal 9 (SIGKILL)"));
    assert_eq!([outcome(1), outcome(4)], [both.clone(), both]);
    past.account(JobId(2), &Account::Interrupted("SIGINT".into()));
    past.account(JobId(3), &Account::Interrupted("SIGINT".into()));
    assert_eq!([outcome(2), outcome(3)], [JobEnd::Ended, JobEnd::Interrupted { signal: "SIGINT".into() }]);
}
