//! A job that has ended, or that was refused, in words.

use trib_control::clock::span;
use trib_messages::jobs::{Fallback, JobEnd, PastJob};
use trib_messages::reply::Refusal;

use crate::commands::jobs::word;

/// How it ended, or why it was refused.
pub(super) fn text(job: &PastJob, now_ms: u64) -> String {
    let PastJob { id, name, user, tenant, ranks, hosts, root, began_ms, ended_ms, times, outcome, fallback } = job;
    let ago = |ms: u64| span(now_ms.saturating_sub(ms));
    let by = if user.is_empty() { String::new() } else { format!(" of {user}") };
    let of = tenant.as_ref().map_or_else(String::new, |tenant| format!(" (tenant {tenant})"));
    let who = format!("{id}: {name}{by}{of}, {ranks} ranks on {}", hosts.list);
    let ended = || {
        let ran = span(ended_ms.saturating_sub(*began_ms));
        format!("{who}, root {root}, ended {} ago after {ran}", ago(*ended_ms))
    };
    let mut lines = match outcome {
        JobEnd::Ended => vec![ended(), "Its program said that it is done.".to_owned()],
        JobEnd::Lost => vec![
            ended(),
            "The connection that held it closed without a word: its rank 0 was killed or crashed, or its host or network failed."
                .to_owned(),
        ],
        JobEnd::Failed { .. } => {
            vec![ended(), format!("It could not go on: {}.", outcome.why().unwrap_or_default())]
        }
        JobEnd::Interrupted { signal } => {
            vec![ended(), format!("Its launcher was told to end it, by {signal}.")]
        }
        JobEnd::Left => {
            vec![ended(), "An earlier manager admitted it, and its nodes have it no more: its ranks are gone.".to_owned()]
        }
        JobEnd::GivenUp { why } => vec![ended(), format!("It was admitted, but its program could not use it: {why}")],
        JobEnd::Refused(Refusal { resource, asked, available, holder, since_ms, text }) => {
            let when = match times {
                1 => format!("refused {} ago", ago(*ended_ms)),
                _ => format!("refused {times} times, first {} and last {} ago", ago(*began_ms), ago(*ended_ms)),
            };
            let holder = holder.as_ref().map_or_else(String::new, |holder| format!(", holder {holder}"));
            let since = since_ms.map_or_else(String::new, |since| format!(", so for {}", ago(since)));
            vec![
                format!("{who}, {when}"),
                format!("resource {}: asked {asked}, available {available}{holder}{since}", word(*resource)),
                text.clone(),
                "It has no tree: what its program did without one, its own stderr says.".to_owned(),
            ]
        }
    };
    if let Some(Fallback { text, since_ms }) = fallback {
        lines.push(format!("It had not used its tree for {}: {text}", span(ended_ms.saturating_sub(*since_ms))));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use trib_messages::jobs::Names;
    use trib_messages::reply::Resource;
    use trib_wire::ids::JobId;

    use super::*;

    fn job(times: u32, outcome: JobEnd) -> PastJob {
        PastJob {
            id: JobId(17),
            name: "train".into(),
            user: "ann".into(),
            tenant: None,
            ranks: 8,
            hosts: Names { count: 4, list: "h[0-3]".into() },
            root: "spine".into(),
            began_ms: 10_000,
            ended_ms: 20_000,
            times,
            outcome,
            fallback: None,
        }
    }

    #[test]
    fn a_refusal_is_told_with_all_that_is_known_of_it() {
        let refusal = Refusal {
            resource: Resource::Node,
            asked: 3,
            available: 2,
            holder: Some("spine1".into()),
            since_ms: Some(5_000),
            text: "spine1 is away".into(),
        };
        let told = text(&job(4, JobEnd::Refused(refusal)), 25_000);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], "job 17: train of ann, 8 ranks on h[0-3], refused 4 times, first 15 s and last 5 s ago");
        assert_eq!(lines[1], "resource node: asked 3, available 2, holder spine1, so for 20 s");
        assert_eq!(lines[2], "spine1 is away");
    }

    #[test]
    fn an_end_is_told_with_its_cause() {
        let told = text(&job(1, JobEnd::Lost), 25_000);
        assert!(
            told.starts_with("job 17: train of ann, 8 ranks on h[0-3], root spine, ended 5 s ago after 10 s\n"),
            "{told}"
        );
        assert!(told.contains("closed without a word"), "{told}");
        let fallback = Some(Fallback { text: "its node died".into(), since_ms: 13_000 });
        let told = text(&PastJob { fallback, ..job(1, JobEnd::Ended) }, 25_000);
        assert!(told.ends_with("It had not used its tree for 7 s: its node died\n"), "{told}");
        let told = text(&job(1, JobEnd::GivenUp { why: "rank 3: no way to leaf0".into() }), 25_000);
        assert!(told.contains("could not use it: rank 3: no way to leaf0"), "{told}");
    }
}
