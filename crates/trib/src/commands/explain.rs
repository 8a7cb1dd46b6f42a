//! `trib explain`: what a job does and what it waits for, how it ended, or why it was refused.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use trib_control::clock::{span, unix_ms};
use trib_wire::control::explanation::{
    ContextsPart, Explanation, GroupPart, HostedPart, LatePart, LeaseState, NodePart,
};
use trib_wire::control::job::{ChildKind, Limits};
use trib_wire::control::jobs::Fallback;
use trib_wire::control::reply::{JobStatus, Reply};
use trib_wire::control::request::Request;
use trib_wire::ids::JobId;

use super::lanes;
use super::manager_option::unexpected;
use super::query::Query;
use crate::failure::Failure;
use crate::log;
use crate::table::Table;

mod group;
mod past;

/// Show a job's tree, groups and locks and what it waits for, one group of it, or why it was refused
///
/// Asks the manager, which asks the job's aggregation nodes. The last lines say in words which ranks others wait for, at
/// which operation, and which groups wait for the right to stream, since when, and who has it. Of a job that has ended or was refused it
/// says how and why, as long as the manager remembers it. A program that never asked the manager is not known there.
///
/// Of one group it shows where it folds and where it is only passed on, how much was folded at each node and how far its ranks were apart
/// on average, who is late, and whether it streams or stands in line to.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The job's number, as any command shows it (`17`, `job 17`), or the name of its program: of the one that runs, or else the
    /// last that did not. With `/TAG` only the groups that were made with this tag
    #[arg(value_name = "JOB[/TAG]", required = true, num_args = 1..)]
    job: Vec<String>,
    #[command(flatten)]
    query: Query,
}

impl Arguments {
    /// Asks and prints.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_tool();
        let question = question(&self.job.join(" "));
        let group = match question {
            Request::Explain { group, .. } | Request::ExplainProgram { group, .. } => group,
            _ => None,
        };
        let now_ms = unix_ms();
        match self.query.ask(&question)? {
            Reply::Explanation(explanation) => self.query.print(&explanation, || match group {
                Some(tag) => group::text(&explanation, tag, now_ms),
                None => text(&explanation, now_ms),
            }),
            Reply::Past(job) => self.query.print(&job, || past::text(&job, now_ms)),
            other => Err(unexpected(other)),
        }
    }
}

/// What is asked for, in every form in which a job is named anywhere.
fn question(which: &str) -> Request {
    let (job, group) = names(which.trim());
    match number(job) {
        Some(number) => Request::Explain { job: JobId(number), group },
        None => Request::ExplainProgram { name: job.to_owned(), group },
    }
}

/// `17`, `job 17`, as sentences say it, or `job17` and `job=17`, as logs do.
fn number(job: &str) -> Option<u32> {
    let digits = job.strip_prefix("job").map_or(job, |rest| rest.trim_start_matches([' ', '=']));
    digits.parse().ok()
}

/// The job's number or its program's name, and the tag of a group of it.
fn names(which: &str) -> (&str, Option<u64>) {
    let group = which.rsplit_once('/').and_then(|(job, tag)| Some((job, tag.parse().ok()?)));
    group.filter(|(job, _)| !job.is_empty()).map_or((which, None), |(job, tag)| (job, Some(tag)))
}

fn text(explanation: &Explanation, now_ms: u64) -> String {
    let Explanation { job, parts, silent } = explanation;
    let mut text = head(job, now_ms);
    let mut line = |words: std::fmt::Arguments<'_>| writeln!(text, "{words}").expect("writing to memory cannot fail");
    let lanes = if job.lanes.len() > 1 { job.lanes.len() } else { 1 };
    for lane in 0..lanes {
        let own = || parts.iter().filter(|hosted| lanes == 1 || hosted.lane as usize == lane);
        if lanes > 1 {
            line(format_args!("\n{}", lanes::heading(lane, &job.lanes)));
        }
        if own().next().is_some() {
            line(format_args!("\n{}", tree(own())));
            line(format_args!("{}", groups(own())));
        }
    }
    for name in silent {
        line(format_args!("node {name} does not answer: what is there is not shown; see its log, or `trib doctor`"));
    }
    let waits = |hosted: &HostedPart| -> Vec<String> {
        let HostedPart { at, part, .. } = hosted;
        [lates(at, part, parts), lines(at, part), endings(at, part)].concat()
    };
    let causes: Vec<String> = parts.iter().flat_map(waits).collect();
    for cause in &causes {
        line(format_args!("{cause}"));
    }
    if causes.is_empty() && silent.is_empty() {
        line(format_args!("Nothing waits: no rank has begun an operation that others have not."));
    }
    text
}

fn head(job: &JobStatus, now_ms: u64) -> String {
    let JobStatus { id, name, user, ranks, since, hosts, around, limits, fallback, adopted, .. } = job;
    let age = span(now_ms.saturating_sub(*since * 1000));
    let by = if user.is_empty() { String::new() } else { format!(" of {user}") };
    let adopted = if *adopted { ", by an earlier manager" } else { "" };
    let on = if hosts.list.is_empty() { String::new() } else { format!(" on {}", hosts.list) };
    let mut text = format!("{id}: {name}{by}, {ranks} ranks{on}, admitted {age} ago{adopted}\n");
    if !around.is_empty() {
        writeln!(text, "Its tree goes around {}, away or silent when it was admitted.", around.join(", "))
            .expect("writing to memory cannot fail");
    }
    if let Some(Fallback { text: why, since_ms }) = fallback {
        let age = span(now_ms.saturating_sub(*since_ms));
        writeln!(text, "It has not used its tree for {age}: {why}").expect("writing to memory cannot fail");
    }
    if let Some(Limits { groups, window, osts, payload, streams, segment, staging, flight, stream_threshold, .. }) =
        limits
    {
        writeln!(
            text,
            "quota: groups {groups}, window {window}, osts {osts}, payload {payload}, streams {streams}, segment {segment}, \
             staging {staging}, flight {flight}; streamed above {stream_threshold} bytes"
        )
        .expect("writing to memory cannot fail");
    }
    text
}

fn tree<'a>(parts: impl Iterator<Item = &'a HostedPart>) -> Table {
    let mut table = Table::new(["NODE", "AT", "PARENT", "CHILD", "RANKS", "LINK", "BYTES IN", "BYTES OUT", "QUEUED"]);
    for HostedPart { at, part, .. } in parts {
        let parent = part.parent.map_or_else(|| "-".to_owned(), |parent| parent.to_string());
        for child in &part.children {
            let kind = match child.kind {
                ChildKind::Rank(rank) => format!("rank {}", rank.0),
                ChildKind::Node(node) => node.to_string(),
            };
            let link = if child.connected { "open" } else { "closed" };
            let numbers = [child.bytes_in, child.bytes_out, child.queued_bytes].map(|number| number.to_string());
            let [bytes_in, bytes_out, queued] = numbers;
            let (node, ranks) = (part.node.to_string(), child.ranks.to_string());
            table.row([node, at.clone(), parent.clone(), kind, ranks, link.to_owned(), bytes_in, bytes_out, queued]);
        }
    }
    table
}

fn groups<'a>(parts: impl Iterator<Item = &'a HostedPart>) -> Table {
    let mut table = Table::new(["NODE", "GROUP", "TAG", "MEMBERS", "STREAM", "LATE"]);
    for HostedPart { part, .. } in parts {
        for group in &part.groups {
            let late: Vec<String> = group.late.iter().map(|late| late.rank.0.to_string()).collect();
            let late = if late.is_empty() { "-".to_owned() } else { late.join(",") };
            table.row([
                part.node.to_string(),
                group.index.to_string(),
                group.tag.to_string(),
                group.members.to_string(),
                group.lease.word().to_owned(),
                late,
            ]);
        }
    }
    table
}

/// How people are told of a group.
fn name(group: &GroupPart) -> String {
    format!("group of ranks {} (tag {})", group.members, group.tag)
}

/// Whom the groups at one node wait for, a sentence each.
fn lates(at: &str, part: &NodePart, parts: &[HostedPart]) -> Vec<String> {
    let late = |group: &GroupPart| -> Vec<String> {
        let sentence = |LatePart { rank, ranks, operation, streamed, .. }: &LatePart| {
            let who = match ranks {
                1 => format!("rank {}", rank.0),
                _ => format!("some of the {ranks} ranks from {} on", rank.0),
            };
            let how = if *streamed { "streamed " } else { "" };
            format!("{at}: the {} waits for {who} to come to its {how}operation {operation}", name(group))
        };
        group.late.iter().filter(|late| !is_told_below(part, group, late, parts)).map(sentence).collect()
    };
    part.groups.iter().flat_map(late).collect()
}

/// Which groups wait at one node for the right to stream, and who has it.
fn lines(at: &str, part: &NodePart) -> Vec<String> {
    let contexts = part.contexts.iter().filter(|contexts| !contexts.line.is_empty());
    let sentence = |contexts: &ContextsPart| {
        format!(
            "{at}: in line for one of {} stream contexts: {}; they are held by {} (more at once: TRIB_QUOTA=streams=N)",
            contexts.capacity,
            listed(&contexts.line, &contexts.line_tags, &contexts.line_ms),
            listed(&contexts.held, &contexts.held_tags, &contexts.held_ms)
        )
    };
    contexts.map(sentence).collect()
}

/// Groups by their indices at a node, with their tags, and for how long already, where that is known.
fn listed(indices: &[u32], tags: &[u64], ages: &[u64]) -> String {
    let entry = |(at, index): (usize, &u32)| {
        let tag = tags.get(at).map_or_else(String::new, |tag| format!(" (tag {tag})"));
        let age = ages.get(at).map_or_else(String::new, |ms| format!(" for {}", span(*ms)));
        format!("group {index}{tag}{age}")
    };
    indices.iter().enumerate().map(entry).collect::<Vec<_>>().join(", ")
}

/// Which groups at one node are about to give their right to stream back.
fn endings(at: &str, part: &NodePart) -> Vec<String> {
    let ending = part.groups.iter().filter(|group| group.lease == LeaseState::Ending);
    ending.map(|group| format!("{at}: the {} finishes, then gives its stream context back", name(group))).collect()
}

/// Whether the late child is a node that itself says whom it waits for in this group, and so says more.
fn is_told_below(part: &NodePart, group: &GroupPart, late: &LatePart, parts: &[HostedPart]) -> bool {
    let Some(ChildKind::Node(below)) = part.children.get(usize::from(late.child.0)).map(|child| child.kind) else {
        return false;
    };
    let same = |other: &&GroupPart| (other.tag, &other.members) == (group.tag, &group.members);
    let its_groups = parts.iter().filter(|hosted| hosted.part.node == below).flat_map(|hosted| &hosted.part.groups);
    its_groups.filter(same).any(|other| !other.late.is_empty())
}

const EXAMPLES: &str = "\
Examples:
  trib explain 17
  trib explain train.py
  trib explain train.py/42
  trib explain 17 --json | jq '.parts[].part.groups[] | select(.late != [])'";

#[cfg(test)]
mod tests {
    use trib_wire::RankList;
    use trib_wire::control::explanation::FoldsPart;
    use trib_wire::ids::{ChildIndex, NodeId, Rank};

    use super::*;

    #[test]
    fn who_is_waited_for_and_who_is_in_line_is_said_in_words() {
        let late = LatePart { child: ChildIndex(1), rank: Rank(3), ranks: 1, operation: 57, streamed: false };
        let group = |index, lease, late| GroupPart {
            index,
            tag: 7,
            members: RankList::world(4),
            lease,
            relayed: false,
            datagrams: FoldsPart::default(),
            streams: FoldsPart::default(),
            late,
        };
        let part = NodePart {
            node: NodeId(0),
            parent: None,
            children: Vec::new(),
            groups_alive: 2,
            buffers_held: 0,
            payload_bytes_folded: 0,
            contexts: Some(ContextsPart {
                capacity: 1,
                held: vec![0],
                line: vec![1, 9],
                held_ms: vec![7_000],
                line_ms: vec![65_000, 300],
                held_tags: vec![7],
                line_tags: vec![7, 12],
            }),
            groups: vec![group(0, LeaseState::Streams, vec![late]), group(1, LeaseState::Waiting, Vec::new())],
        };
        let said = [lates("leaf0", &part, &[]), lines("leaf0", &part), endings("leaf0", &part)].concat();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].ends_with("(tag 7) waits for rank 3 to come to its operation 57"), "{said:?}");
        assert!(
            said[1].contains(
                "of 1 stream contexts: group 1 (tag 7) for 1 min 5 s, group 9 (tag 12) for 300 ms; they are held by group 0 (tag 7) for 7 s"
            ),
            "{said:?}"
        );
    }

    #[test]
    fn a_number_is_taken_in_every_form_that_a_command_prints() {
        for form in ["17", "job 17", "job17", "job=17", " job 17 "] {
            assert_eq!(question(form), Request::Explain { job: JobId(17), group: None }, "{form}");
        }
        assert_eq!(question("job 17/42"), Request::Explain { job: JobId(17), group: Some(42) });
        for program in ["job", "job seventeen", "jobber", "17.py", "my program"] {
            assert_eq!(question(program), Request::ExplainProgram { name: program.to_owned(), group: None });
        }
    }

    #[test]
    fn a_job_is_named_alone_or_with_a_tag_of_its_groups() {
        assert_eq!(names("17"), ("17", None));
        assert_eq!(names("17/42"), ("17", Some(42)));
        assert_eq!(names("bin/train.py/42"), ("bin/train.py", Some(42)));
        assert_eq!(names("bin/train.py"), ("bin/train.py", None));
        assert_eq!(names("/42"), ("/42", None));
    }
}
