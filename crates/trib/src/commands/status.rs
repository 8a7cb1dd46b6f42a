//! `trib status`: the fabric at this moment, or again and again with the trees of its jobs
//! (`live`).

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use trib_control::clock::span;
use trib_messages::recovery::Dwelling;
use trib_messages::reply::{NodeStatus, Reply, StatusReport};
use trib_messages::request::Request;

use super::manager_option::{ManagerOption, unexpected};
use super::query::Query;
use super::watching::Watching;
use super::{lanes, tenants};
use crate::failure::Failure;
use crate::log;
use crate::table::Table;
use crate::view;

mod live;

/// Show the fabric's nodes, jobs, tenants and counters
///
/// Asks the manager, which asks its nodes; a node that does not answer within a second is shown
/// without counters. With --watch it draws the trees of the jobs instead: who is late, how full
/// links are, what moves.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Show counters too that are zero at every node
    #[arg(long, conflicts_with = "watch")]
    all: bool,
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
            return view::watch(&live::Live { query: &self.query }, interval, self.query.json);
        }
        let report = match self.query.ask(&Request::Status)? {
            Reply::Status(report) => report,
            other => return Err(unexpected(other)),
        };
        self.query.print(&report, || tables(&report, self.all))
    }
}

fn tables(report: &StatusReport, all: bool) -> String {
    let StatusReport { fabric, nodes, jobs, time_ms, .. } = report;
    let mut text = format!("Fabric {fabric}: {} nodes, {} jobs\n\n", nodes.len(), jobs.len());

    let mut table = Table::new(["NODE", "STATE", "ADDRESS", "VERSION"]);
    for node in nodes {
        let NodeStatus { name, version, .. } = node;
        let version = if version.is_empty() { "-" } else { version };
        table.row([name.as_str(), &state(node, *time_ms), &addresses(node), version]);
    }
    write!(text, "{table}").expect("writing to memory cannot fail");

    if !jobs.is_empty() {
        let backed = jobs.iter().any(|job| !job.backups.is_empty());
        let heads = ["JOB", "PROGRAM", "USER", "RANKS", "LANES", "ROOTS", "NODES"];
        let mut table = Table::new(heads.into_iter().chain(backed.then_some("BACKUPS")));
        for job in jobs {
            let (id, ranks, nodes) = (job.id.0.to_string(), job.ranks.to_string(), job.primaries().join(","));
            let backups = Some(job.backups_told()).filter(|told| !told.is_empty()).unwrap_or_else(|| "-".to_owned());
            let (lanes, roots) = lanes::cells(job);
            let cells = [&id, &job.name, &job.user, &ranks, &lanes, &roots, &nodes];
            table.row(cells.into_iter().chain(backed.then_some(&backups)));
        }
        write!(text, "\n{table}").expect("writing to memory cannot fail");
    }
    text += &moved(report);
    text += &tenants::tables(report);
    if let Some((table, hidden)) = counters(nodes, all) {
        write!(text, "\n{table}").expect("writing to memory cannot fail");
        if hidden > 0 {
            writeln!(text, "({hidden} more are zero at every node; --all shows them)")
                .expect("writing to memory cannot fail");
        }
    }
    text
}

/// Where the nodes of jobs are that have moved.
fn moved(report: &StatusReport) -> String {
    let homes = report.homes.iter().flat_map(|job| job.moved.iter().map(move |home| (job.job, home)));
    let mut table = Table::new(["JOB", "LANE", "NODE", "NOW AT", "MOVES"]);
    let mut rows = 0;
    for (job, home) in homes {
        let Dwelling { name, lane, at, moves, .. } = home;
        table.row([&job.0.to_string(), &lane.to_string(), name, at, &moves.to_string()]);
        rows += 1;
    }
    if rows == 0 { String::new() } else { format!("\n{table}") }
}

/// The addresses at which a node takes streams.
fn addresses(node: &NodeStatus) -> String {
    let all: Vec<String> = node.address.iter().chain(&node.further).map(|address| address.to_string()).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(",") }
}

fn state(node: &NodeStatus, now_ms: Option<u64>) -> String {
    match (node.connected, node.silent_since_ms, now_ms) {
        (false, ..) => "away".to_owned(),
        (true, Some(since_ms), Some(now_ms)) => format!("silent for {}", span(now_ms.saturating_sub(since_ms))),
        (true, Some(_), None) => "silent".to_owned(),
        (true, None, _) => "up".to_owned(),
    }
}

/// One row for each counter and one column for each node, and how many rows are left out because
/// they hold only zeros. `None` if no node told any counter.
fn counters(nodes: &[NodeStatus], all: bool) -> Option<(Table, usize)> {
    let told: Vec<&NodeStatus> = nodes.iter().filter(|node| !node.counters.is_empty()).collect();
    let mut names: Vec<&str> = told.iter().flat_map(|node| node.counters.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return None;
    }
    let is_shown =
        |name: &&str| all || told.iter().any(|node| node.counters.get(*name).is_some_and(|&value| value > 0));
    let (shown, hidden): (Vec<&str>, Vec<&str>) = names.into_iter().partition(is_shown);
    let heads = std::iter::once("COUNTER").chain(told.iter().map(|node| node.name.as_str()));
    let mut table = Table::new(heads);
    for name in shown {
        let values = told.iter().map(|node| node.counters.get(name).map_or_else(|| "-".to_owned(), u64::to_string));
        table.row(std::iter::once(name.to_owned()).chain(values));
    }
    Some((table, hidden.len()))
}

const EXAMPLES: &str = "\
Examples:
  trib status
  trib status --watch
  trib status --watch --interval 5 | tee fabric.log
  trib status --json | jq '.nodes[].counters'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_connected_and_does_not_answer_is_not_up() {
        let node = NodeStatus {
            name: "a".into(),
            address: None,
            further: Vec::new(),
            version: String::new(),
            connected: true,
            silent_since_ms: Some(5_000),
            datagram_buffer_bytes: None,
            certificate_ends: None,
            counters: [].into(),
        };
        assert_eq!(state(&node, Some(12_000)), "silent for 7 s");
        assert_eq!(addresses(&node), "-");
        let [address, further] = ["10.0.0.1:5", "10.1.0.1:6"].map(|address| address.parse().unwrap());
        let ports = NodeStatus { address: Some(address), further: vec![further], ..node.clone() };
        assert_eq!(addresses(&ports), "10.0.0.1:5,10.1.0.1:6");
        assert_eq!(state(&NodeStatus { silent_since_ms: None, ..node.clone() }, Some(12_000)), "up");
        assert_eq!(state(&NodeStatus { connected: false, ..node }, Some(12_000)), "away");
    }

    #[test]
    fn counters_that_are_zero_everywhere_are_counted_and_not_shown() {
        let node = |name: &str, counters: &[(&str, u64)]| NodeStatus {
            name: name.to_owned(),
            address: None,
            further: Vec::new(),
            version: String::new(),
            connected: true,
            silent_since_ms: None,
            datagram_buffer_bytes: None,
            certificate_ends: None,
            counters: counters.iter().map(|&(name, value)| (name.to_owned(), value)).collect(),
        };
        let nodes = [node("a", &[("in", 1), ("lost", 0)]), node("b", &[("in", 0), ("lost", 0)]), node("away", &[])];
        let (table, hidden) = counters(&nodes, false).unwrap();
        assert_eq!((table.to_string().as_str(), hidden), ("COUNTER  a  b\nin       1  0\n", 1));
        assert_eq!(counters(&nodes, true).unwrap().1, 0);
        assert!(counters(&nodes[2..], true).is_none());
    }
}
