use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::super::amounts::{Amounts, Kind};
use super::super::book::{Claim, Scope};
use super::super::line::{Applicant, Line};
use super::super::policy::{OTHERS, Policy};
use super::*;

const NODES: [&str; 3] = ["root", "leaf0", "leaf1"];

fn charge(line: &Arc<Line>, streams: u64) -> Option<Charge> {
    let wants = vec![(Scope::Node("root".into()), Amounts::of(&[(Kind::Streams, streams)]))];
    let applicant = Applicant { name: "prog", user: "ann", tenant: None, ranks: 1, is_gone: &|| false };
    line.enter(Claim { tenant: OTHERS.into(), wants }, &applicant, Duration::ZERO).ok().map(|(charge, _)| charge)
}

/// What happens to jobs: they are admitted or refused, end, leave nodes, are lost with nodes, are
/// at nodes that do not answer, or were never installed.
#[derive(Clone, Debug)]
enum Event {
    Admit { streams: u64, nodes: usize },
    End(usize),
    Left { job: usize, node: usize },
    Lost(usize),
    Silent(usize),
    Failed(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1u64..6, 1usize..8).prop_map(|(streams, nodes)| Event::Admit { streams, nodes }),
        3 => (0usize..24).prop_map(Event::End),
        4 => (0usize..24, 0usize..3).prop_map(|(job, node)| Event::Left { job, node }),
        1 => (0usize..3).prop_map(Event::Lost),
        1 => (0usize..3).prop_map(Event::Silent),
        1 => (0usize..24).prop_map(Event::Failed),
    ]
}

/// The reference: a job as it was admitted.
struct Plain {
    streams: u64,
    at: Vec<&'static str>,
    ended: bool,
    gone: bool,
}

proptest! {
    #[test]
    fn whatever_becomes_of_jobs_their_claims_end_with_them(events in proptest::collection::vec(event(), 1..60)) {
        let mut policy = Policy::default();
        policy.node.set(Kind::Streams, Some(12));
        let line = Arc::new(Line::new(Arc::new(policy), Time::default()));
        let holdings = Holdings::default();
        let mut plain: Vec<Plain> = Vec::new();
        for event in events {
            match event {
                Event::Admit { streams, nodes } => {
                    let used: u64 = plain.iter().filter(|job| !job.gone).map(|job| job.streams).sum();
                    let charge = charge(&line, streams);
                    prop_assert_eq!(charge.is_some(), used + streams <= 12);
                    let Some(charge) = charge else { continue };
                    let at: Vec<&str> = (0..3).filter(|node| nodes & (1 << node) != 0).map(|node| NODES[node]).collect();
                    let names: Vec<String> = at.iter().map(|name| (*name).to_owned()).collect();
                    holdings.add(JobId(plain.len() as u32), charge, &names);
                    plain.push(Plain { streams, at, ended: false, gone: false });
                }
                Event::End(job) if job < plain.len() => {
                    holdings.end(JobId(job as u32));
                    plain[job].ended = true;
                }
                Event::Left { job, node } if job < plain.len() => {
                    holdings.left(NODES[node], JobId(job as u32));
                    plain[job].at.retain(|name| *name != NODES[node]);
                }
                Event::Lost(node) => {
                    holdings.lost(NODES[node]);
                    plain.iter_mut().for_each(|job| job.at.retain(|name| *name != NODES[node]));
                }
                Event::Silent(node) => {
                    holdings.silent(NODES[node]);
                    let ended = plain.iter_mut().filter(|job| job.ended);
                    ended.for_each(|job| job.at.retain(|name| *name != NODES[node]));
                }
                Event::Failed(job) if job < plain.len() => {
                    holdings.release(JobId(job as u32));
                    plain[job].gone = true;
                }
                _ => {}
            }
            plain.iter_mut().filter(|job| job.ended && job.at.is_empty()).for_each(|job| job.gone = true);
            let expected: u64 = plain.iter().filter(|job| !job.gone).map(|job| job.streams).sum();
            let used = line.with(|state| state.book.has(OTHERS, &Scope::Node("root".into())).get(Kind::Streams));
            prop_assert_eq!(used, expected);
        }
        (0..plain.len()).for_each(|job| holdings.end(JobId(job as u32)));
        NODES.iter().for_each(|node| holdings.lost(node));
        prop_assert!(holdings.lock().is_empty());
        line.with(|state| assert!(state.charged.is_empty() && state.book.scopes_of(OTHERS).next().is_none()));
    }
}
