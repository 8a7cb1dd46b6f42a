//! Tenants and waiting jobs, as `trib status` shows them.

use std::fmt::Write as _;

use trib_messages::reply::StatusReport;
use trib_messages::tenant::{QueuedJob, TenantAmount, TenantAt, TenantStatus};

use crate::table::Table;

/// The tables, each after an empty line; empty if there are neither tenants nor jobs that wait.
pub(super) fn tables(report: &StatusReport) -> String {
    let mut text = String::new();
    if !report.tenants.is_empty() {
        let mut table =
            Table::new(["TENANT", "PRIORITY", "HOSTS", "JOBS", "WAITING", "GROUPS", "OSTS", "STREAMS", "MIB"]);
        report.tenants.iter().for_each(|tenant| table.row(row(tenant)));
        write!(text, "\n{table}(groups, osts, streams and buffers at the node where the tenant has the most, of what it could have there)\n")
            .expect("writing to memory cannot fail");
    }
    if !report.queue.is_empty() {
        let mut table = Table::new(["TURN", "PROGRAM", "USER", "TENANT", "PRIORITY", "RANKS", "SECONDS", "WAITS, FOR"]);
        let now = report.time_ms.unwrap_or(0) / 1000;
        for (at, job) in report.queue.iter().enumerate() {
            let QueuedJob { name, user, tenant, priority, ranks, since, reason } = job;
            table.row([
                (at + 1).to_string(),
                name.clone(),
                user.clone(),
                tenant.clone().unwrap_or_else(|| "-".to_owned()),
                priority.to_string(),
                ranks.to_string(),
                now.saturating_sub(*since).to_string(),
                reason.text.clone(),
            ]);
        }
        write!(text, "\n{table}").expect("writing to memory cannot fail");
    }
    text
}

fn row(tenant: &TenantStatus) -> [String; 9] {
    let TenantStatus { name, priority, hosts, jobs, waiting, nodes } = tenant;
    let most = |of: fn(&TenantAt) -> TenantAmount| {
        let none = TenantAmount { used: 0, limit: None, reserved: 0 };
        nodes.iter().map(of).max_by_key(|amount| amount.used).unwrap_or(none)
    };
    let memory = most(|at| at.memory_bytes);
    let mebibytes = TenantAmount { used: memory.used >> 20, limit: memory.limit.map(|limit| limit >> 20), ..memory };
    [
        name.clone(),
        priority.to_string(),
        hosts.to_string(),
        cell(*jobs),
        waiting.to_string(),
        cell(most(|at| at.groups)),
        cell(most(|at| at.osts)),
        cell(most(|at| at.streams)),
        cell(mebibytes),
    ]
}

fn cell(TenantAmount { used, limit, .. }: TenantAmount) -> String {
    limit.map_or_else(|| used.to_string(), |limit| format!("{used}/{limit}"))
}

#[cfg(test)]
mod tests {
    use trib_messages::reply::{Refusal, Resource};

    use super::*;

    #[test]
    fn a_tenant_is_shown_where_it_has_the_most_and_a_waiting_job_with_its_reason() {
        assert_eq!(tables(&StatusReport::default()), "");
        let amount = |used, limit| TenantAmount { used, limit, reserved: 0 };
        let at = |node: &str, streams| TenantAt {
            node: node.into(),
            groups: amount(streams * 100, None),
            osts: amount(0, None),
            streams: amount(streams, Some(16)),
            memory_bytes: amount(streams << 20, Some(64 << 20)),
        };
        let tenant = TenantStatus {
            name: "astro".into(),
            priority: 10,
            hosts: 4,
            jobs: amount(2, Some(8)),
            waiting: 1,
            nodes: vec![at("leaf0", 4), at("spine", 8)],
        };
        let reason = Refusal {
            resource: Resource::Jobs,
            asked: 1,
            available: 0,
            holder: None,
            since_ms: None,
            text: "jobs are lacking".into(),
        };
        let job = QueuedJob {
            name: "prog".into(),
            user: "ann".into(),
            tenant: None,
            priority: 0,
            ranks: 8,
            since: 100,
            reason,
        };
        let report =
            StatusReport { time_ms: Some(107_500), queue: vec![job], tenants: vec![tenant], ..StatusReport::default() };
        let text = tables(&report);
        let words = |start: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
            line.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(words("astro"), ["astro", "10", "4", "2/8", "1", "800", "0", "8/16", "8/64"]);
        assert_eq!(words("1 "), ["1", "prog", "ann", "-", "0", "8", "7", "jobs", "are", "lacking"]);
    }
}
