//! An aggregation node: whether it is up, and the jobs that have it in their trees.

use std::fmt::Write as _;

use trib_messages::reply::{JobStatus, NodeStatus, StatusReport};

use crate::table::Table;

/// The node of this name, and its jobs.
pub(super) fn find<'a>(report: &'a StatusReport, name: &str) -> Option<(&'a NodeStatus, Vec<&'a JobStatus>)> {
    let named = |name: &str| report.nodes.iter().find(|node| node.name == name);
    // `leaf1#2` is a logical node that it hosts.
    let node = named(name).or_else(|| named(name.rsplit_once('#')?.0))?;
    let name = node.name.as_str();
    Some((node, report.jobs.iter().filter(|job| job.nodes.iter().any(|at| at == name)).collect()))
}

pub(super) fn text(node: &NodeStatus, jobs: &[&JobStatus]) -> String {
    let NodeStatus { name, address, version, connected, silent_since_ms, .. } = node;
    let state = match (connected, silent_since_ms) {
        (false, _) => "not connected to the manager: start or restart `trib an` there",
        (true, Some(_)) => "connected to the manager, but it does not answer: see its log, or `trib doctor`",
        (true, None) => "connected to the manager",
    };
    let at = address.map_or_else(String::new, |address| format!(", takes streams at {address}"));
    let version = if version.is_empty() { String::new() } else { format!(", version {version}") };
    let mut text = format!("aggregation node {name}: {state}{at}{version}\n");
    if jobs.is_empty() {
        text += "No job has it in its tree.\n";
        return text;
    }
    let mut table = Table::new(["JOB", "PROGRAM", "USER", "RANKS", "ROOT"]);
    for job in jobs {
        let JobStatus { id, name, user, ranks, root, .. } = job;
        table.row([id.0.to_string(), name.clone(), user.clone(), ranks.to_string(), root.clone()]);
    }
    write!(text, "\n{table}\n`trib explain JOB` says whom each of them waits for.\n")
        .expect("writing to memory cannot fail");
    text
}
