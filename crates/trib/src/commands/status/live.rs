//! The fabric as it works: nodes that are not well, and for each job its tree, which ranks are
//! late, how full links are, and what moves.

use serde::Serialize;
use trib_control::clock::unix_ms;
use trib_messages::explanation::Explanation;
use trib_messages::reply::{NodeStatus, Reply, StatusReport};
use trib_messages::request::Request;

use super::{addresses, state};
use crate::commands::explain::{Extent, lines};
use crate::commands::manager_option::unexpected;
use crate::commands::query::Query;
use crate::failure::Failure;
use crate::table::Table;
use crate::view::{Canvas, Line, Tone, View};

/// The fabric of the manager that is asked through this query.
pub(super) struct Live<'a> {
    pub(super) query: &'a Query,
}

/// The fabric at one moment: what `trib status --json` says, and the oldest jobs as `trib explain
/// --json` does.
#[derive(Serialize)]
pub(super) struct Look {
    #[serde(flatten)]
    report: StatusReport,
    explanations: Vec<Explanation>,
}

impl View for Live<'_> {
    type Look = Look;

    fn look(&self) -> Result<Look, Failure> {
        let channel = self.query.connect()?;
        let ask = |question: &Request| channel.ask(question, self.query.timeout);
        let report = match ask(&Request::Status)? {
            Reply::Status(report) => report,
            other => return Err(unexpected(other)),
        };
        let mut explanations = Vec::new();
        for job in report.jobs.iter().take(JOBS_DRAWN) {
            // A job that has ended since is not drawn.
            if let Reply::Explanation(explanation) = ask(&Request::Explain { job: job.id, group: None })? {
                explanations.push(*explanation);
            }
        }
        Ok(Look { report, explanations })
    }

    fn draw(&self, before: Option<&Look>, now: &Look, canvas: Canvas) -> Vec<Line> {
        let Look { report, explanations } = now;
        let StatusReport { fabric, nodes, jobs, queue, time_ms, .. } = report;
        let up = nodes.iter().filter(|node| is_up(node)).count();
        let waiting = if queue.is_empty() { String::new() } else { format!(", {} waiting", queue.len()) };
        let jobs_word = if jobs.len() == 1 { "job" } else { "jobs" };
        let counts = format!(": {up} of {} nodes up, {} {jobs_word}{waiting}", nodes.len(), jobs.len());
        let mut lines = vec![Line::new(Tone::Strong, format!("Fabric {fabric}")).and(Tone::Plain, counts)];
        for node in nodes.iter().filter(|node| !is_up(node)) {
            lines.push(Line::new(Tone::Alarm, format!("node {} is {}", node.name, state(node, *time_ms))));
        }
        if jobs.is_empty() {
            lines.push(Line::default());
            lines.extend(Line::all_of(&table(nodes, *time_ms).to_string()));
        }
        for explanation in explanations {
            let same = |before: &&Explanation| before.job.id == explanation.job.id;
            let before = before.and_then(|before| before.explanations.iter().find(same));
            lines.push(Line::default());
            lines.extend(self::lines(before, explanation, unix_ms(), canvas, Extent::Glance));
        }
        let left_out = jobs.len().saturating_sub(JOBS_DRAWN);
        if left_out > 0 {
            let words = format!("({left_out} more jobs: `trib jobs` lists them, `trib explain JOB --watch` draws one)");
            lines.extend([Line::default(), Line::new(Tone::Faint, words)]);
        }
        lines
    }

    fn json(&self, now: &Look) -> String {
        serde_json::to_string(now).expect("a report has string keys only")
    }

    fn is_last(&self, _: &Look) -> bool {
        false
    }
}

fn is_up(node: &NodeStatus) -> bool {
    node.connected && node.silent_since_ms.is_none()
}

fn table(nodes: &[NodeStatus], now_ms: Option<u64>) -> Table {
    let mut table = Table::new(["NODE", "STATE", "ADDRESS"]);
    for node in nodes {
        table.row([node.name.clone(), state(node, now_ms), addresses(node)]);
    }
    table
}

/// For each job all its nodes are asked, and a reader sees no more of them at a glance.
const JOBS_DRAWN: usize = 16;
