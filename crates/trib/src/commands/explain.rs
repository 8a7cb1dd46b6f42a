//! `trib explain`: what a job does and what it waits for, how it ended, or why it was refused.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::thread;

use clap::Args;
use trib_control::clock::{span, unix_ms};
use trib_messages::explanation::{
    ContextsPart, Explanation, GroupPart, HostedPart, LatePart, LeaseState, NodePart, Protection,
};
use trib_messages::job::Limits;
use trib_messages::jobs::{Fallback, JobFault, PastJob};
use trib_messages::reply::{JobStatus, NodeStatus, Reply};
use trib_messages::request::Request;
use trib_wire::Directory as _;
use trib_wire::ids::{ChildKind, JobId};

use super::lanes;
use super::manager_option::{ManagerOption, unexpected};
use super::query::Query;
use super::watching::Watching;
use crate::failure::Failure;
use crate::log;
use crate::table::Table;
use crate::view::{self, Canvas, Line, Tone, View};

mod group;
pub(in crate::commands) mod homes;
mod moves;
mod naming;
mod node;
mod past;
pub(in crate::commands) mod prediction;
mod rates;
mod tree;

use naming::{Naming, listed, name, operation, stream_cell};
use rates::Rates;

/// Draw a job's tree, show its groups and locks and what it waits for, one group of it, or why it
/// was refused
///
/// Asks the manager, which asks the job's aggregation nodes: twice, half a second apart, to tell
/// how full links are and what moves. The last lines say in words which ranks others wait for, at
/// which operation, and which groups wait for the right to stream, since when, and which have it.
/// Of a job that has ended or was refused it says how and why, as long as the manager remembers it.
/// A program that never asked the manager is not known there.
///
/// Of one group it shows where it folds and where it is only passed on, how much was folded at each
/// node and how far its ranks were apart on average, who is late, and whether it streams or stands
/// in line to.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The job's number, as any command shows it (`17`, `job 17`), or the name of its program: of
    /// the one that runs, or else the last that did not. With `/TAG` only the groups that were made
    /// with this tag, with `/NAME` only the communicator of this name. Or an aggregation node's
    /// name: then its jobs
    #[arg(value_name = "JOB[/GROUP]", required = true, num_args = 1..)]
    job: Vec<String>,
    #[command(flatten)]
    watching: Watching,
    #[command(flatten)]
    query: Query,
}

impl Arguments {
    /// Where it asks.
    pub(super) fn manager(&self) -> &ManagerOption {
        &self.query.manager
    }

    /// Asks and prints, once or again and again.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_tool();
        if let Some(interval) = self.watching.interval() {
            return view::watch(&self, interval, self.query.json);
        }
        let (mut before, mut now) = (None, self.look()?);
        if !self.query.json && matches!(now, Answer::Job(_)) {
            thread::sleep(view::FIRST_SPAN);
            // A job that has ended meanwhile is told as it was when it was asked about.
            if let Ok(next @ Answer::Job(_)) = self.look() {
                before = Some(std::mem::replace(&mut now, next));
            }
        }
        let canvas = Canvas::of_stdout();
        let text = || view::text(&drawn(before.as_ref(), &now, canvas, Extent::Whole), canvas);
        match &now {
            Answer::Job(explanation) | Answer::Group(explanation, _) => self.query.print(explanation, text),
            Answer::Past(job) => self.query.print(job, text),
            Answer::Node(node, _) => self.query.print(node, text),
        }
    }

    fn answer(&self, asked: &Asked<'_>) -> Result<Answer, Failure> {
        let group = match asked.group {
            Some(Which::Tag(tag)) => Some(tag),
            Some(Which::Name(name)) => Some(self.tag_of(asked, name)?),
            None => None,
        };
        match self.query.ask(&asked.question(group))? {
            Reply::Explanation(explanation) => Ok(match group {
                Some(tag) => Answer::Group(explanation, tag),
                None => Answer::Job(explanation),
            }),
            Reply::Past(job) => Ok(Answer::Past(Box::new(job))),
            other => Err(unexpected(other)),
        }
    }

    /// The tag of the job's groups that have this name.
    fn tag_of(&self, asked: &Asked<'_>, name: &str) -> Result<u64, Failure> {
        let explanation = match self.query.ask(&asked.question(None))? {
            Reply::Explanation(explanation) => explanation,
            Reply::Past(job) => return Err(Failure::Operation(format!("{} is over, and its groups with it", job.id))),
            other => return Err(unexpected(other)),
        };
        let groups = || explanation.parts.iter().flat_map(|hosted| &hosted.part.groups);
        let tags: BTreeSet<u64> = groups().filter(|group| group.name == name).map(|group| group.tag).collect();
        let id = explanation.job.id;
        match tags.iter().collect::<Vec<_>>()[..] {
            [tag] => Ok(*tag),
            [] => {
                let text = format!(
                    "{id} has no group `{name}` among those that its nodes name: `trib explain {}` lists them",
                    id.0
                );
                Err(Failure::Operation(text))
            }
            _ => {
                let tags: Vec<String> = tags.iter().map(|tag| format!("{}/{tag}", id.0)).collect();
                Err(Failure::Operation(format!("{id} has several groups `{name}`: name one as {}", tags.join(" or "))))
            }
        }
    }

    /// The answer about an aggregation node, if the name is one's; else the error that the manager
    /// gave.
    fn answer_of_node(&self, asked: &Asked<'_>, unknown: Failure) -> Result<Answer, Failure> {
        let Asked { job: name, group: None } = asked else { return Err(unknown) };
        let Ok(Reply::Status(report)) = self.query.ask(&Request::Status) else { return Err(unknown) };
        let Some((node, jobs)) = node::find(&report, name) else { return Err(unknown) };
        Ok(Answer::Node(Box::new(node.clone()), jobs.into_iter().cloned().collect()))
    }
}

/// What is known of the thing that was named.
pub enum Answer {
    /// A job that runs.
    Job(Box<Explanation>),
    /// The groups of a running job with one tag.
    Group(Box<Explanation>, u64),
    /// A job that has ended, or was refused.
    Past(Box<PastJob>),
    /// An aggregation node, and the jobs that have it in their trees.
    Node(Box<NodeStatus>, Vec<JobStatus>),
}

impl View for Arguments {
    type Look = Answer;

    fn look(&self) -> Result<Answer, Failure> {
        let which = self.job.join(" ");
        let asked = Asked::of(&which);
        match self.answer(&asked) {
            Err(unknown) => match asked.as_group_of_program() {
                Some(group) => self.answer(&group).map_err(|_| unknown),
                None => self.answer_of_node(&asked, unknown),
            },
            answered => answered,
        }
    }

    fn draw(&self, before: Option<&Answer>, now: &Answer, canvas: Canvas) -> Vec<Line> {
        let extent = if canvas == Canvas::Pipe { Extent::Whole } else { Extent::Glance };
        drawn(before, now, canvas, extent)
    }

    fn json(&self, now: &Answer) -> String {
        match now {
            Answer::Job(explanation) | Answer::Group(explanation, _) => serde_json::to_string(explanation),
            Answer::Past(job) => serde_json::to_string(job),
            Answer::Node(node, _) => serde_json::to_string(node),
        }
        .expect("an answer has string keys only")
    }

    fn is_last(&self, now: &Answer) -> bool {
        matches!(now, Answer::Past(_))
    }
}

/// How much of a job is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Extent {
    /// Everything.
    Whole,
    /// What changes, so that it can be read at a glance.
    Glance,
}

fn drawn(before: Option<&Answer>, now: &Answer, canvas: Canvas, extent: Extent) -> Vec<Line> {
    let now_ms = unix_ms();
    match now {
        Answer::Job(explanation) => {
            let before = match before {
                Some(Answer::Job(before)) => Some(&**before),
                _ => None,
            };
            lines(before, explanation, now_ms, canvas, extent)
        }
        Answer::Group(explanation, tag) => Line::all_of(&group::text(explanation, *tag, now_ms)),
        Answer::Past(job) => Line::all_of(&past::text(job, now_ms)),
        Answer::Node(node, jobs) => Line::all_of(&node::text(node, &jobs.iter().collect::<Vec<_>>())),
    }
}

/// The job or group that is asked for.
struct Asked<'a> {
    job: &'a str,
    group: Option<Which<'a>>,
}

/// A group of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Which<'a> {
    Tag(u64),
    Name(&'a str),
}

impl<'a> Asked<'a> {
    /// Reads every form in which any output names a job or a group of one. A program's name may
    /// have a slash.
    fn of(which: &'a str) -> Asked<'a> {
        let which = which.trim();
        if let Some((job, group)) = which.rsplit_once('/').filter(|(job, _)| !job.is_empty())
            && let Ok(tag) = group.parse()
        {
            return Asked { job, group: Some(Which::Tag(tag)) };
        }
        match which.split_once('/') {
            Some((job, group)) if number(job).is_some() => Asked { job, group: Some(Which::Name(group)) },
            _ => Asked { job: which, group: None },
        }
    }

    /// The same, if what follows the last slash is a group and not part of the program's name.
    fn as_group_of_program(&self) -> Option<Asked<'a>> {
        let (job, group) = self.job.rsplit_once('/').filter(|(job, _)| self.group.is_none() && !job.is_empty())?;
        Some(Asked { job, group: Some(Which::Name(group)) })
    }

    fn question(&self, group: Option<u64>) -> Request {
        match number(self.job) {
            Some(number) => Request::Explain { job: JobId(number), group },
            None => Request::ExplainProgram { name: self.job.to_owned(), group },
        }
    }
}

/// Reads `17`, `job 17`, as sentences say it, or `job17` and `job=17`, as logs do.
fn number(job: &str) -> Option<u32> {
    let digits = job.strip_prefix("job").map_or(job, |rest| rest.trim_start_matches([' ', '=']));
    digits.parse().ok()
}

/// The lines of a job, compared with what it was before.
pub(in crate::commands) fn lines(
    before: Option<&Explanation>,
    now: &Explanation,
    now_ms: u64,
    canvas: Canvas,
    extent: Extent,
) -> Vec<Line> {
    let Explanation { job, parts, silent, .. } = now;
    let naming = Naming::of(now);
    let rates = before.map_or_else(Rates::default, |before| Rates::between(before, now));
    let mut lines = match extent {
        Extent::Whole => Line::all_of(&(head(job, now_ms) + &data_path(now))),
        Extent::Glance => {
            let troubles = Line::all_of(&troubles(job, now_ms)).into_iter().flat_map(|line| canvas.sentence(line));
            std::iter::once(Line::new(Tone::Strong, first_line(job, now_ms))).chain(troubles).collect()
        }
    };
    let lanes = if job.lanes.len() > 1 { job.lanes.len() } else { 1 };
    for lane in 0..lanes {
        let own: Vec<&HostedPart> = parts.iter().filter(|hosted| lanes == 1 || hosted.lane as usize == lane).collect();
        lines.push(Line::default());
        if lanes > 1 {
            lines.push(Line::new(Tone::Plain, lanes::heading(lane, &job.lanes)));
            lines.push(Line::default());
        }
        lines.extend(tree::lines(&own, parts, &naming, &rates, canvas));
        if extent == Extent::Whole && tree::knows_rates(&own) {
            lines.extend(canvas.sentence(Line::new(Tone::Faint, LEGEND)));
        }
        if extent == Extent::Whole {
            lines.push(Line::default());
            lines.extend(Line::all_of(&groups(own.into_iter(), &naming).to_string()));
        }
    }
    lines.push(Line::default());
    let mut say = |line: Line| lines.extend(canvas.sentence(line));
    let most = if extent == Extent::Whole { usize::MAX } else { 1 };
    homes::lines(now, &naming, now_ms).into_iter().take(most).for_each(&mut say);
    moves::lines(parts, &rates).into_iter().for_each(&mut say);
    for name in silent {
        let words = format!("node {name} does not answer: what is there is not shown; see its log, or `trib doctor`");
        say(Line::new(Tone::Alarm, words));
    }
    let waits = |hosted: &HostedPart| -> Vec<String> {
        let HostedPart { at, part, .. } = hosted;
        let is_told =
            |group: &GroupPart, late: &LatePart| extent == Extent::Whole || rates.is_noticed(part.node, group, late);
        [lates(at, part, parts, &naming, &is_told), in_line(at, part), endings(at, part)].concat()
    };
    let causes: Vec<String> = parts.iter().flat_map(waits).collect();
    if causes.is_empty() && silent.is_empty() && extent == Extent::Whole {
        say(Line::new(Tone::Plain, "Nothing waits: no rank has begun an operation that others have not."));
    }
    causes.into_iter().map(|cause| Line::new(Tone::Plain, cause)).for_each(say);
    lines
}

const LEGEND: &str =
    "(what this job moves, as a share of what the slowest link on the way carries; of several links the fullest)";

fn head(job: &JobStatus, now_ms: u64) -> String {
    let JobStatus { limits, prediction, .. } = job;
    let mut text = format!("{}\n{}", first_line(job, now_ms), troubles(job, now_ms));
    let candidates = [
        Some(format!("backups: {}", job.backups_told())).filter(|_| !job.backups.is_empty()),
        Some(format!("ranks that may host its nodes: {}", job.deputies())).filter(|_| !job.deputies.is_empty()),
    ];
    let candidates: Vec<String> = candidates.into_iter().flatten().collect();
    if !candidates.is_empty() {
        writeln!(text, "goes on when a node dies; {}", candidates.join("; ")).expect("writing to memory cannot fail");
    }
    if let Some(limits) = limits {
        let Limits { groups, window, osts, payload, streams, segment, staging, flight, stream_threshold, .. } = limits;
        writeln!(
            text,
            "quota: groups {groups}, window {window}, osts {osts}, payload {payload}, streams {streams}, segment {segment}, \
             staging {staging}, flight {flight}, recovery {}; streamed above {stream_threshold} bytes",
            limits.recovery.name()
        )
        .expect("writing to memory cannot fail");
    }
    if let Some(prediction) = prediction {
        text += &prediction::text(prediction);
    }
    text
}

/// What protects payloads, and on how many edges which protection is at work.
fn data_path(now: &Explanation) -> String {
    let Some(limits) = &now.job.limits else { return String::new() };
    let children = || now.parts.iter().flat_map(|hosted| &hosted.part.children);
    let ways = [
        (Protection::Checked, "checked"),
        (Protection::Signed, "signed"),
        (Protection::Encrypted, "encrypted"),
        (Protection::Memory, "in memory of the host"),
    ];
    let counted = ways.into_iter().filter_map(|(protection, words)| {
        let count = children().filter(|child| child.protection == Some(protection)).count();
        (count > 0).then(|| format!("{count} edge{} {words}", if count == 1 { "" } else { "s" }))
    });
    let counted: Vec<String> = counted.collect();
    let edges = if counted.is_empty() { String::new() } else { format!(": {}", counted.join(", ")) };
    format!("data path {}{edges}\n", limits.mode)
}

/// What it is.
fn first_line(job: &JobStatus, now_ms: u64) -> String {
    let JobStatus { id, name, user, ranks, since, hosts, adopted, lost_ms, .. } = job;
    let age = span(now_ms.saturating_sub(*since * 1000));
    let by = if user.is_empty() { String::new() } else { format!(" of {user}") };
    let adopted = if *adopted { ", by an earlier manager" } else { "" };
    let on = if hosts.list.is_empty() { String::new() } else { format!(" on {}", hosts.list) };
    let lost = lost_ms.map(|since| format!(", without its rank 0 for {}", span(now_ms.saturating_sub(since))));
    format!("{id}: {name}{by}, {ranks} ranks{on}, admitted {age} ago{adopted}{}", lost.unwrap_or_default())
}

/// What is wrong with the job as a whole.
fn troubles(job: &JobStatus, now_ms: u64) -> String {
    let JobStatus { around, fallback, fault, .. } = job;
    let mut text = String::new();
    if !around.is_empty() {
        writeln!(text, "Its tree goes around {}, away or silent when it was admitted.", around.join(", "))
            .expect("writing to memory cannot fail");
    }
    if let Some(Fallback { text: why, since_ms }) = fallback {
        let age = span(now_ms.saturating_sub(*since_ms));
        writeln!(text, "It has not used its tree for {age}: {why}").expect("writing to memory cannot fail");
    }
    if let Some(JobFault { text: why, since_ms }) = fault {
        let age = span(now_ms.saturating_sub(*since_ms));
        writeln!(text, "It, or a group of it, could not go on {age} ago: {why}")
            .expect("writing to memory cannot fail");
    }
    text
}

fn groups<'a>(parts: impl Iterator<Item = &'a HostedPart>, naming: &Naming) -> Table {
    let mut table = Table::new(["NODE", "GROUP", "TAG", "MEMBERS", "STREAM", "LATE"]);
    for HostedPart { part, .. } in parts {
        for group in &part.groups {
            table.row([
                naming.node(part.node),
                if group.name.is_empty() { "-".to_owned() } else { group.name.clone() },
                group.tag.to_string(),
                group.members.to_string(),
                stream_cell(group),
                naming.late_cell(group),
            ]);
        }
    }
    table
}

/// For which children the groups at one node wait, a sentence each, as far as they are to be told.
fn lates(
    at: &str,
    part: &NodePart,
    parts: &[HostedPart],
    naming: &Naming,
    is_told: &dyn Fn(&GroupPart, &LatePart) -> bool,
) -> Vec<String> {
    let late = |group: &GroupPart| -> Vec<String> {
        let sentence = |late: &LatePart| {
            format!("{at}: {} waits for {} to come to {}", name(group), naming.late(late), operation(late))
        };
        let told = group.late.iter().filter(|late| is_told(group, late) && !is_told_below(part, group, late, parts));
        told.map(sentence).collect()
    };
    part.groups.iter().flat_map(late).collect()
}

/// Which groups wait at one node for the right to stream, and which groups have it.
fn in_line(at: &str, part: &NodePart) -> Vec<String> {
    let contexts = part.contexts.iter().filter(|contexts| !contexts.line.is_empty());
    let sentence = |contexts: &ContextsPart| {
        format!(
            "{at}: in line for one of {} stream contexts: {}; they are held by {} (more at once: TRIB_QUOTA=streams=N)",
            contexts.capacity,
            listed(part, &contexts.line, &contexts.line_tags, &contexts.line_ms),
            listed(part, &contexts.held, &contexts.held_tags, &contexts.held_ms)
        )
    };
    contexts.map(sentence).collect()
}

/// Which groups at one node are about to give their right to stream back.
fn endings(at: &str, part: &NodePart) -> Vec<String> {
    let ending = part.groups.iter().filter(|group| group.lease == LeaseState::Ending);
    ending.map(|group| format!("{at}: {} finishes, then gives its stream context back", name(group))).collect()
}

/// Whether the late child is a node that itself tells for which child it waits in this group, and
/// so says more.
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
  trib explain 17 --watch
  trib explain train.py
  trib explain train.py/42
  trib explain 17/MPI_COMM_WORLD
  trib explain leaf1
  trib explain 17 --json | jq '.parts[].part.groups[] | select(.late != [])'";

#[cfg(test)]
mod tests {
    use trib_messages::explanation::FoldsPart;
    use trib_messages::processes::Process;
    use trib_messages::recovery::Replayed;
    use trib_wire::RankList;
    use trib_wire::ids::{ChildIndex, NodeId, Rank};

    use super::*;

    #[test]
    fn who_is_waited_for_and_who_is_in_line_is_said_in_words() {
        let late = LatePart {
            child: ChildIndex(1),
            rank: Rank(3),
            ranks: 1,
            operation: 57,
            streamed: false,
            what: "allreduce of 1024 float64 (sum)".into(),
            waited_ms: Some(12_000),
        };
        let group = |index, lease, late| GroupPart {
            index,
            tag: 7,
            name: if index == 0 { "MPI_COMM_WORLD".into() } else { String::new() },
            members: RankList::world(4),
            lease,
            relayed: false,
            board: false,
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
            moves: Vec::new(),
            first_fold_ms: None,
            replayed: Replayed::default(),
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
        let job = serde_json::json!({ "id": 7, "name": "p", "user": "u", "ranks": 4, "nodes": [], "since": 0 });
        let explanation = Explanation {
            job: serde_json::from_value(job).unwrap(),
            parts: vec![HostedPart {
                at: "leaf0".into(),
                lane: 0,
                part: part.clone(),
                traffic: None,
                ways: Vec::new(),
            }],
            silent: Vec::new(),
            processes: vec![(Rank(3), Process { host: "h3".into(), pid: 4242 })],
            homes: Vec::new(),
            epochs: Vec::new(),
        };
        let naming = Naming::of(&explanation);
        let said =
            [lates("leaf0", &part, &[], &naming, &|_, _| true), in_line("leaf0", &part), endings("leaf0", &part)]
                .concat();
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(
            said[0],
            "leaf0: MPI_COMM_WORLD (ranks 0-3) waits for rank 3 on h3 (PID 4242) to come to its 57th operation, allreduce of 1024 \
             float64 (sum), for 12 s"
        );
        let table = groups(explanation.parts.iter(), &naming).to_string();
        assert!(table.contains("rank 3 on h3") && !table.contains("n0"), "{table}");
        assert!(
            said[1].contains(
                "of 1 stream contexts: the group of ranks 0-3 (tag 7) for 1 min 5 s, a group with the tag 12 for 300 ms; they are held by \
                 MPI_COMM_WORLD (ranks 0-3) for 7 s"
            ),
            "{said:?}"
        );
    }

    fn asked(which: &str) -> (&str, Option<Which<'_>>) {
        let Asked { job, group } = Asked::of(which);
        (job, group)
    }

    #[test]
    fn a_number_is_taken_in_every_form_that_a_command_prints() {
        for form in ["17", "job 17", "job17", "job=17", " job 17 "] {
            let question = Asked::of(form).question(None);
            assert_eq!(question, Request::Explain { job: JobId(17), group: None }, "{form}");
        }
        for program in ["job", "job seventeen", "jobber", "17.py", "my program"] {
            let question = Asked::of(program).question(None);
            assert_eq!(question, Request::ExplainProgram { name: program.to_owned(), group: None });
        }
    }

    #[test]
    fn a_job_is_named_alone_or_with_a_group_of_it() {
        assert_eq!(asked("17"), ("17", None));
        assert_eq!(asked("17/42"), ("17", Some(Which::Tag(42))));
        assert_eq!(asked("job 17/42"), ("job 17", Some(Which::Tag(42))));
        assert_eq!(asked("17/MPI_COMM_WORLD"), ("17", Some(Which::Name("MPI_COMM_WORLD"))));
        assert_eq!(asked("bin/train.py/42"), ("bin/train.py", Some(Which::Tag(42))));
        assert_eq!(asked("bin/train.py"), ("bin/train.py", None));
        let group = Asked::of("train.py/MPI_COMM_WORLD").as_group_of_program().unwrap();
        assert_eq!((group.job, group.group), ("train.py", Some(Which::Name("MPI_COMM_WORLD"))));
        assert_eq!(asked("/42"), ("/42", None));
        assert!(Asked::of("/42").as_group_of_program().is_none());
    }
}
