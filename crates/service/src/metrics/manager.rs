//! The page of a manager's metrics.

use trib_manager::{Doors, ManagerReport};
use trib_messages::tenant::{TenantAmount, TenantAt, TenantStatus};

use super::page::Page;
use super::process::{self, About};
use crate::settings::Daemon;

/// The page of a manager and what is said `about` its process.
pub fn manager_page(report: &ManagerReport, about: About) -> String {
    let mut page = Page::default();
    process::add_to(&mut page, Daemon::Manager, about);
    let ManagerReport {
        fabric,
        nodes,
        jobs,
        tenants,
        waiting,
        refusals,
        admitted,
        refused,
        doors: Doors { established, handshaking, rejected, withdrawn },
    } = report;
    page.metric("tributary_fabric_info").sample(&[fabric], 1);
    let mut up = page.metric("tributary_node_up");
    for (name, connected) in nodes {
        up.sample(&[name], u8::from(*connected));
    }
    page.metric("tributary_jobs").sample(&[], jobs.len());
    page.metric("tributary_jobs_adopted").sample(&[], jobs.iter().filter(|job| job.adopted).count());
    page.metric("tributary_jobs_orphaned").sample(&[], jobs.iter().filter(|job| job.lost_ms.is_some()).count());
    let numbers: Vec<String> = jobs.iter().map(|job| job.id.0.to_string()).collect();
    let numbered = || jobs.iter().zip(&numbers);
    let mut ranks = page.metric("tributary_job_ranks");
    for (job, number) in numbered() {
        ranks.sample(&[number, &job.name, &job.user], job.ranks);
    }
    let mut since = page.metric("tributary_job_admitted_timestamp_seconds");
    for (job, number) in numbered() {
        since.sample(&[number, &job.name, &job.user], job.since);
    }
    let mut used = page.metric("tributary_job_node_info");
    for (job, number) in numbered() {
        for node in job.primaries() {
            used.sample(&[number, node], 1);
        }
    }
    page.metric("tributary_jobs_waiting").sample(&[], waiting);
    add_tenants(&mut page, tenants);
    page.metric("tributary_admission_seconds").histogram(&["admitted"], admitted).histogram(&["refused"], refused);
    let mut refusals_total = page.metric("tributary_refusals_total");
    for (resource, count) in refusals {
        refusals_total.sample(&[word(*resource).as_str()], count);
    }
    page.metric("tributary_connections").sample(&["established"], established).sample(&["handshake"], handshaking);
    let mut refused_total = page.metric("tributary_handshakes_refused_total");
    for (kind, count) in rejected {
        refused_total.sample(&[&kind.replace(' ', "_")], count);
    }
    page.metric("tributary_certificates_withdrawn").sample(&[], withdrawn);
    page.into_text()
}

fn add_tenants(page: &mut Page, tenants: &[TenantStatus]) {
    let mut jobs = page.metric("tributary_tenant_jobs");
    for tenant in tenants {
        jobs.sample(&[&tenant.name, "running"], tenant.jobs.used).sample(&[&tenant.name, "waiting"], tenant.waiting);
    }
    let amounts = |tenant: &TenantStatus| -> Vec<(String, &'static str, TenantAmount)> {
        let at = |at: &TenantAt| {
            let rows = [("groups", at.groups), ("osts", at.osts), ("streams", at.streams), ("memory", at.memory_bytes)];
            rows.map(|(resource, amount)| (at.node.clone(), resource, amount))
        };
        tenant.nodes.iter().flat_map(at).collect()
    };
    let mut used = page.metric("tributary_tenant_used");
    for tenant in tenants {
        for (node, resource, amount) in amounts(tenant) {
            used.sample(&[&tenant.name, &node, resource], amount.used);
        }
    }
    let mut limits = page.metric("tributary_tenant_limit");
    for tenant in tenants {
        for (node, resource, amount) in amounts(tenant) {
            if let Some(limit) = amount.limit {
                limits.sample(&[&tenant.name, &node, resource], limit);
            }
        }
    }
}

/// The resource's name in control messages.
fn word(resource: trib_messages::reply::Resource) -> String {
    match serde_json::to_value(resource) {
        Ok(serde_json::Value::String(word)) => word,
        other => unreachable!("a resource is a word, not {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;
    use std::time::SystemTime;
    use trib_control::Histogram;
    use trib_messages::jobs::Names;
    use trib_messages::reply::{JobStatus, Resource};
    use trib_wire::ids::JobId;

    #[test]
    fn every_metric_of_the_manager_is_on_its_page() {
        let mut admitted = Histogram::default();
        admitted.observe(Duration::from_millis(3));
        let report = ManagerReport {
            fabric: "cluster".into(),
            nodes: vec![("spine".into(), true), ("leaf0".into(), false)],
            jobs: vec![JobStatus {
                id: JobId(7),
                name: "train".into(),
                user: "ann".into(),
                ranks: 8,
                nodes: vec!["spine".into()],
                homes: vec![0],
                backups: Vec::new(),
                deputies: Vec::new(),
                in_ranks: Vec::new(),
                since: 1_700_000_000,
                hosts: Names { count: 2, list: "h[0-1]".into() },
                root: "spine".into(),
                around: Vec::new(),
                fallback: None,
                fault: None,
                limits: None,
                adopted: true,
                lost_ms: Some(1_700_000_000_000),
                charge: None,
                lanes: Vec::new(),
                prediction: None,
            }],
            tenants: vec![TenantStatus {
                name: "astro".into(),
                priority: 0,
                hosts: 0,
                jobs: TenantAmount { used: 1, limit: Some(8), reserved: 0 },
                waiting: 3,
                nodes: vec![TenantAt {
                    node: "spine".into(),
                    groups: TenantAmount { used: 5, limit: None, reserved: 0 },
                    osts: TenantAmount { used: 0, limit: None, reserved: 0 },
                    streams: TenantAmount { used: 4, limit: Some(16), reserved: 2 },
                    memory_bytes: TenantAmount { used: 1 << 30, limit: None, reserved: 0 },
                }],
            }],
            waiting: 3,
            refusals: BTreeMap::from([(Resource::StreamThreshold, 2)]),
            admitted,
            refused: Histogram::default(),
            doors: Doors {
                established: 5,
                handshaking: 1,
                rejected: BTreeMap::from([("certificate that has ended", 4), ("version", 0)]),
                withdrawn: 2,
            },
        };
        let text = manager_page(&report, About { began: SystemTime::now(), certificate_seconds: None });
        for line in [
            "tributary_fabric_info{fabric=\"cluster\"} 1",
            "tributary_node_up{node=\"spine\"} 1",
            "tributary_node_up{node=\"leaf0\"} 0",
            "tributary_jobs 1",
            "tributary_jobs_adopted 1",
            "tributary_jobs_orphaned 1",
            "tributary_job_ranks{job_id=\"7\",program=\"train\",user=\"ann\"} 8",
            "tributary_job_admitted_timestamp_seconds{job_id=\"7\",program=\"train\",user=\"ann\"} 1700000000",
            "tributary_job_node_info{job_id=\"7\",node=\"spine\"} 1",
            "tributary_refusals_total{resource=\"stream_threshold\"} 2",
            "tributary_jobs_waiting 3",
            "tributary_tenant_jobs{tenant=\"astro\",state=\"running\"} 1",
            "tributary_tenant_jobs{tenant=\"astro\",state=\"waiting\"} 3",
            "tributary_tenant_used{tenant=\"astro\",node=\"spine\",resource=\"memory\"} 1073741824",
            "tributary_tenant_limit{tenant=\"astro\",node=\"spine\",resource=\"streams\"} 16",
            "tributary_connections{state=\"established\"} 5",
            "tributary_handshakes_refused_total{reason=\"certificate_that_has_ended\"} 4",
            "tributary_handshakes_refused_total{reason=\"version\"} 0",
            "tributary_certificates_withdrawn 2",
            "tributary_admission_seconds_count{result=\"admitted\"} 1",
            "tributary_admission_seconds_count{result=\"refused\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        for metric in super::super::METRICS.iter().filter(|metric| metric.daemon != Some(Daemon::Node)) {
            assert!(text.contains(&format!("# TYPE {} {}\n", metric.name, metric.kind.word())), "{}", metric.name);
        }
    }
}
