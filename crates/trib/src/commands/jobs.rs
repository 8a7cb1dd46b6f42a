//! `trib jobs`: a line for every job, also for those that ended and those that were refused.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use trib_control::clock::span;
use trib_messages::jobs::{Fallback, JobEnd, JobsReport, LiveJob, PastJob};
use trib_messages::reply::{Refusal, Reply, Resource};
use trib_messages::request::Request;

use super::explain::homes::whereabouts;
use super::manager_option::{ManagerOption, unexpected};
use super::query::Query;
use crate::failure::Failure;
use crate::log;
use crate::table::Table;

/// List the jobs: those that run, and on demand those that ended or were refused, with the reason
///
/// States: `running`; `idle`, nothing was folded for ten seconds; `waiting`, no rank is connected;
/// `fallback`, its program says that it goes on without the tree; `faulty`, a node says why a group
/// of it, or all of it, cannot go on; `unknown`, none of its nodes answers. Of the past: `ended`;
/// `failed`, it could not go on, and that is known why; `interrupted`, its launcher was told to end
/// it; `lost`, rank 0's connection closed without a word; `left`, an earlier manager's that its
/// nodes have no more; `given_up`, admitted but its ranks could not use it; and `refused`. The
/// manager remembers the last 512 that ended and the last 512 that were refused; with --state the
/// next one does, too. A program that never asked it is in no list.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Also list those that ended and those that were refused
    #[arg(short, long, conflicts_with_all = ["ended", "refused"])]
    all: bool,
    /// List those that ended instead
    #[arg(long)]
    ended: bool,
    /// List those that were refused instead, with the reason
    #[arg(long)]
    refused: bool,
    /// Only jobs of this user
    #[arg(short, long, value_name = "NAME")]
    user: Option<String>,
    /// Only jobs of this program
    #[arg(short, long, value_name = "PROGRAM")]
    program: Option<String>,
    #[command(flatten)]
    query: Query,
}

impl Arguments {
    /// The manager that it asks.
    pub(super) fn manager(&self) -> &ManagerOption {
        &self.query.manager
    }

    /// Asks the manager and prints the jobs.
    pub fn run(self) -> Result<ExitCode, Failure> {
        log::init_tool();
        let mut report = match self.query.ask(&Request::Jobs)? {
            Reply::Jobs(report) => report,
            other => return Err(unexpected(other)),
        };
        let left_out = self.select(&mut report);
        self.query.print(&with_states(&report), || tables(&report, left_out))
    }

    /// Keeps the jobs that were asked for. Returns how many jobs of the past were left out, as they
    /// are by default.
    fn select(&self, report: &mut JobsReport) -> usize {
        let is_wanted = |name: &str, user: &str| {
            self.program.as_deref().is_none_or(|wanted| wanted == name)
                && self.user.as_deref().is_none_or(|wanted| wanted == user)
        };
        report.live.retain(|job| is_wanted(&job.name, &job.user));
        report.past.retain(|job| is_wanted(&job.name, &job.user));
        if self.all {
            return 0;
        }
        if !self.ended && !self.refused {
            let count = report.past.len();
            report.past.clear();
            return count;
        }
        report.live.clear();
        report.past.retain(|job| if is_refused(job) { self.refused } else { self.ended });
        0
    }
}

fn is_refused(job: &PastJob) -> bool {
    matches!(job.outcome, JobEnd::Refused(_))
}

/// What a job does, in one word.
fn state(job: &LiveJob) -> &'static str {
    match &job.activity {
        _ if job.fallback.is_some() => "fallback",
        _ if job.fault.is_some() => "faulty",
        None => "unknown",
        Some(activity) if activity.ranks == 0 => "waiting",
        Some(activity) if activity.idle_ms >= IDLE_MS => "idle",
        Some(_) => "running",
    }
}

/// The report, with the state of each job that the table shows.
fn with_states(report: &JobsReport) -> Value {
    let mut value = serde_json::to_value(report).expect("a report has string keys only");
    let mut say = |list: &str, words: Vec<&'static str>| {
        for (job, word) in value[list].as_array_mut().into_iter().flatten().zip(words) {
            job["state"] = Value::from(word);
        }
    };
    say("live", report.live.iter().map(state).collect());
    say("past", report.past.iter().map(|job| job.outcome.word()).collect());
    value
}

fn tables(report: &JobsReport, left_out: usize) -> String {
    let JobsReport { fabric, time_ms, started_ms, live, past, forgotten } = report;
    let ago = |ms: u64| span(time_ms.saturating_sub(ms));
    let mut text = String::new();
    if !live.is_empty() {
        write!(text, "{}{}{}{}", running(live, &ago), reasons(live), lost(live, &ago), moved(live))
            .expect("writing to memory cannot fail");
    }
    let (refused, ended): (Vec<&PastJob>, Vec<&PastJob>) = past.iter().partition(|job| is_refused(job));
    for (jobs, table) in [(&ended, over(&ended, &ago)), (&refused, turned_away(&refused, &ago))] {
        if !jobs.is_empty() {
            let gap = if text.is_empty() { "" } else { "\n" };
            write!(text, "{gap}{table}").expect("writing to memory cannot fail");
        }
    }
    if text.is_empty() {
        writeln!(text, "no such jobs on {fabric}; its manager has run for {}", ago(*started_ms))
            .expect("writing to memory cannot fail");
    }
    if left_out > 0 {
        writeln!(text, "({left_out} more ended or were refused; --all shows them)")
            .expect("writing to memory cannot fail");
    }
    if *forgotten > 0 && left_out == 0 && !past.is_empty() {
        writeln!(text, "({forgotten} that are longer ago are forgotten)").expect("writing to memory cannot fail");
    }
    text
}

/// Why jobs that run are in a state that has a reason, a line each.
fn reasons(jobs: &[LiveJob]) -> String {
    let why = |job: &LiveJob| {
        let fallback = job.fallback.as_ref().map(|fallback| &fallback.text);
        let why = fallback.or(job.fault.as_ref().map(|fault| &fault.text))?;
        Some(format!("{}, {}: {why}\n", job.id, state(job)))
    };
    jobs.iter().filter_map(why).collect()
}

/// Which jobs go on without their rank 0, a line each.
fn lost(jobs: &[LiveJob], ago: &impl Fn(u64) -> String) -> String {
    let told = |job: &LiveJob| Some(format!("{} goes on without its rank 0 for {}\n", job.id, ago(job.lost_ms?)));
    jobs.iter().filter_map(told).collect()
}

/// Where the nodes of jobs are that have gone on without some of them, a line each.
fn moved(jobs: &[LiveJob]) -> String {
    let told = |job: &LiveJob| {
        let homes: Vec<String> = job.moved.iter().map(whereabouts).collect();
        let epochs = if job.epochs == 1 { "epoch" } else { "epochs" };
        format!("{}, {} {epochs} later: {}\n", job.id, job.epochs, homes.join("; "))
    };
    jobs.iter().filter(|job| !job.moved.is_empty()).map(told).collect()
}

fn running(jobs: &[LiveJob], ago: &impl Fn(u64) -> String) -> Table {
    let heads = ["JOB", "STATE", "PROGRAM", "USER", "RANKS", "HOSTS", "ROOT", "NODES", "GROUPS", "AGE", "IDLE"];
    let mut table = Table::new(heads);
    for job in jobs {
        let LiveJob { id, name, user, ranks, hosts, root, nodes, since_ms, activity, .. } = job;
        let connected = match activity {
            Some(activity) if activity.ranks < *ranks => format!("{}/{ranks}", activity.ranks),
            _ => ranks.to_string(),
        };
        let groups = activity.map_or_else(|| "-".to_owned(), |activity| activity.groups.to_string());
        let idle = activity.map_or_else(|| "-".to_owned(), |activity| span(activity.idle_ms));
        table.row([
            id.0.to_string(),
            state(job).to_owned(),
            name.clone(),
            user.clone(),
            connected,
            hosts.list.clone(),
            root.clone(),
            nodes.list.clone(),
            groups,
            ago(*since_ms),
            idle,
        ]);
    }
    table
}

fn over(jobs: &[&PastJob], ago: &impl Fn(u64) -> String) -> Table {
    let mut table = Table::new(["JOB", "STATE", "PROGRAM", "USER", "RANKS", "HOSTS", "ROOT", "RAN", "ENDED", "WHY"]);
    for job in jobs {
        let PastJob { id, name, user, ranks, hosts, root, began_ms, ended_ms, outcome, fallback, .. } = job;
        let said = fallback.as_ref().map(|Fallback { text, .. }| text.clone());
        let why = outcome.why().or(said).unwrap_or_else(|| "-".to_owned());
        table.row([
            id.0.to_string(),
            outcome.word().to_owned(),
            name.clone(),
            user.clone(),
            ranks.to_string(),
            hosts.list.clone(),
            root.clone(),
            span(ended_ms.saturating_sub(*began_ms)),
            format!("{} ago", ago(*ended_ms)),
            why,
        ]);
    }
    table
}

fn turned_away(jobs: &[&PastJob], ago: &impl Fn(u64) -> String) -> Table {
    let mut table = Table::new([
        "JOB",
        "STATE",
        "PROGRAM",
        "USER",
        "RANKS",
        "HOSTS",
        "REFUSED",
        "TIMES",
        "RESOURCE",
        "ASKED",
        "AVAILABLE",
        "HOLDER",
        "SINCE",
    ]);
    for job in jobs {
        let PastJob { id, name, user, ranks, hosts, ended_ms, times, outcome, .. } = job;
        let JobEnd::Refused(refusal) = outcome else { continue };
        let Refusal { resource, asked, available, holder, since_ms, .. } = refusal;
        table.row([
            id.0.to_string(),
            outcome.word().to_owned(),
            name.clone(),
            user.clone(),
            ranks.to_string(),
            hosts.list.clone(),
            format!("{} ago", ago(*ended_ms)),
            times.to_string(),
            word(*resource),
            asked.to_string(),
            available.to_string(),
            holder.clone().unwrap_or_else(|| "-".to_owned()),
            since_ms.map_or_else(|| "-".to_owned(), |since| format!("{} ago", ago(since))),
        ]);
    }
    table
}

/// The resource's name in control messages.
pub(super) fn word(resource: Resource) -> String {
    match serde_json::to_value(resource) {
        Ok(Value::String(word)) => word,
        other => unreachable!("a resource is a word, not {other:?}"),
    }
}

/// A job that has folded nothing for this long is idle.
const IDLE_MS: u64 = 10_000;

const EXAMPLES: &str = "\
Examples:
  trib jobs
  trib jobs --all --user ann
  trib jobs --refused
  trib jobs --all --json | jq '.past[] | select(.state == \"refused\") | .outcome.refused'";

#[cfg(test)]
mod tests;
