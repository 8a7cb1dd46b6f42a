//! The page of a node's metrics.

use trib_node::{Folded, GroupReport, JobReport, Latencies, NodeReport, Stages};

use super::page::Page;
use super::process::{self, About};
use super::table::METRICS;
use crate::settings::Daemon;

/// The page of a node and what is said `about` its process.
pub fn node_page(report: &NodeReport, about: About) -> String {
    let mut page = Page::default();
    process::add_to(&mut page, Daemon::Node, about);
    counters(&mut page, report);
    latencies(&mut page, &report.latencies);
    let jobs: Vec<Labelled<'_>> = report.jobs.iter().map(Labelled::new).collect();
    per_job(&mut page, &jobs);
    per_group(&mut page, &jobs);
    per_link(&mut page, &jobs);
    page.into_text()
}

fn counters(page: &mut Page, report: &NodeReport) {
    for metric in METRICS.iter().filter(|metric| !metric.counters.is_empty()) {
        let mut samples = page.metric(metric.name);
        for (counter, label) in metric.counters {
            let labels: &[&str] = if metric.labels.is_empty() { &[] } else { &[label] };
            // A worker without jobs has no entry.
            let count = report.counters.get(*counter).copied().unwrap_or(0);
            match counter.strip_suffix("_ns") {
                Some(_) => samples.sample(labels, count as f64 / 1e9),
                None => samples.sample(labels, count),
            };
        }
    }
}

fn latencies(page: &mut Page, latencies: &Latencies) {
    let mut gather = page.metric("tributary_node_gather_seconds");
    for (path, stages) in paths(latencies) {
        gather.histogram(&[path], &stages.gather);
    }
    let mut answer = page.metric("tributary_node_answer_seconds");
    for (path, stages) in paths(latencies) {
        answer.histogram(&[path], &stages.answer);
    }
}

fn paths(latencies: &Latencies) -> [(&'static str, &Stages); 2] {
    [(DATAGRAM, &latencies.datagrams), (STREAM, &latencies.streams)]
}

/// Values of the label `path`.
const DATAGRAM: &str = "datagram";
const STREAM: &str = "stream";

/// A job's report with the label values that name it.
struct Labelled<'a> {
    job: String,
    node: &'a str,
    lane: String,
    report: &'a JobReport,
}

impl<'a> Labelled<'a> {
    fn new(report: &'a JobReport) -> Self {
        Labelled { job: report.job.0.to_string(), node: &report.name, lane: report.lane.to_string(), report }
    }
}

fn per_job(page: &mut Page, jobs: &[Labelled<'_>]) {
    let mut epochs = page.metric("tributary_job_epochs");
    for Labelled { job, node, lane, report } in jobs {
        epochs.sample(&[job, node, lane], report.epochs);
    }
    let mut first_fold = page.metric("tributary_job_first_fold_seconds");
    for Labelled { job, node, lane, report } in jobs {
        if let Some(span) = report.first_fold {
            first_fold.sample(&[job, node, lane], span.as_secs_f64());
        }
    }
    let mut replayed = page.metric("tributary_job_replayed_total");
    for Labelled { job, node, lane, report } in jobs {
        replayed.sample(&[job, node, lane, DATAGRAM], report.replayed.fragments);
        replayed.sample(&[job, node, lane, STREAM], report.replayed.segments);
    }
    let mut replayed = page.metric("tributary_job_replayed_bytes_total");
    for Labelled { job, node, lane, report } in jobs {
        replayed.sample(&[job, node, lane], report.replayed.bytes);
    }
    let mut groups = page.metric("tributary_job_groups");
    for Labelled { job, node, lane, report } in jobs {
        groups.sample(&[job, node, lane], report.groups_alive);
    }
    let mut buffers = page.metric("tributary_job_buffers");
    for Labelled { job, node, lane, report } in jobs {
        buffers.sample(&[job, node, lane], report.buffers_held);
    }
    let mut folds = page.metric("tributary_job_folds_total");
    for Labelled { job, node, lane, report } in jobs {
        for (path, stages) in paths(&report.latencies) {
            folds.sample(&[job, node, lane, path], stages.gather.count());
        }
    }
    let mut bytes = page.metric("tributary_job_folded_bytes_total");
    for Labelled { job, node, lane, report } in jobs {
        bytes.sample(&[job, node, lane], report.payload_bytes_folded);
    }
    let mut gather = page.metric("tributary_job_gather_seconds");
    for Labelled { job, node, lane, report } in jobs {
        for (path, stages) in paths(&report.latencies).into_iter().filter(|(_, stages)| stages.gather.count() > 0) {
            gather.histogram(&[job, node, lane, path], &stages.gather);
        }
    }
    let mut answer = page.metric("tributary_job_answer_seconds");
    for Labelled { job, node, lane, report } in jobs {
        for (path, stages) in paths(&report.latencies).into_iter().filter(|(_, stages)| stages.answer.count() > 0) {
            answer.histogram(&[job, node, lane, path], &stages.answer);
        }
    }
}

fn per_group(page: &mut Page, jobs: &[Labelled<'_>]) {
    let groups = || {
        jobs.iter().flat_map(|labelled| {
            labelled.report.groups.iter().map(move |group| (labelled, group.index.0.to_string(), group))
        })
    };
    let mut ranks = page.metric("tributary_group_ranks");
    for (Labelled { job, node, lane, .. }, index, group) in groups() {
        ranks.sample(&[job, node, lane, &index], group.ranks);
    }
    let mut folds = page.metric("tributary_group_folds_total");
    for (Labelled { job, node, lane, .. }, index, group) in groups() {
        for (path, folded) in folded(group) {
            folds.sample(&[job, node, lane, &index, path], folded.count);
        }
    }
    let mut bytes = page.metric("tributary_group_folded_bytes_total");
    for (Labelled { job, node, lane, .. }, index, group) in groups() {
        for (path, folded) in folded(group) {
            bytes.sample(&[job, node, lane, &index, path], folded.bytes);
        }
    }
    let mut gathering = page.metric("tributary_group_gather_seconds_total");
    for (Labelled { job, node, lane, .. }, index, group) in groups() {
        for (path, folded) in folded(group) {
            gathering.sample(&[job, node, lane, &index, path], folded.gathering.0 as f64 / 1e9);
        }
    }
}

fn folded(group: &GroupReport) -> [(&'static str, &Folded); 2] {
    [(DATAGRAM, &group.datagrams), (STREAM, &group.streams)]
}

fn per_link(page: &mut Page, jobs: &[Labelled<'_>]) {
    let links = || jobs.iter().flat_map(|labelled| labelled.report.links.iter().map(move |link| (labelled, link)));
    let mut bytes = page.metric("tributary_link_bytes_total");
    for (Labelled { job, node, lane, .. }, link) in links() {
        bytes.sample(&[job, node, lane, &link.name, "in"], link.bytes_in);
        bytes.sample(&[job, node, lane, &link.name, "out"], link.bytes_out);
    }
    let mut queued = page.metric("tributary_link_queued_bytes");
    for (Labelled { job, node, lane, .. }, link) in links() {
        queued.sample(&[job, node, lane, &link.name], link.queued_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;
    use std::time::SystemTime;
    use trib_control::ManagerUrl;
    use trib_messages::recovery::Replayed;
    use trib_node::{LinkReport, Node, Options};
    use trib_wire::{GroupIndex, JobId, NodeId};

    fn report_of_a_node_without_jobs() -> NodeReport {
        let manager = ManagerUrl::new("127.0.0.1", 1, "/nonexistent");
        let listen = vec!["127.0.0.1:0".parse().unwrap()];
        let node = Node::start(Options { name: "n".into(), manager, listen, workers: 2, memory: None }).unwrap();
        let report = node.observer().report(Duration::from_secs(20)).unwrap();
        node.shutdown();
        report
    }

    #[test]
    fn every_counter_of_a_node_has_a_metric_and_every_metric_is_on_the_page() {
        let mut report = report_of_a_node_without_jobs();
        let shown: BTreeSet<&str> = METRICS.iter().flat_map(|metric| metric.counters).map(|(name, _)| *name).collect();
        for name in report.counters.keys() {
            assert!(shown.contains(name.as_str()), "no metric shows the counter {name}");
        }
        // These metrics exist only while there are jobs.
        for name in ["jobs", "groups", "links", "buffers_held"] {
            report.counters.entry(name.into()).or_insert(1);
        }
        for name in shown {
            assert!(report.counters.contains_key(name), "no node counts {name}");
        }
        report.counters.insert("cpu_ns".into(), 1_500_000_000);
        let mut latencies = Latencies::default();
        for stages in [&mut latencies.datagrams, &mut latencies.streams] {
            stages.gather.observe(Duration::from_micros(15));
            stages.answer.observe(Duration::from_micros(40));
        }
        latencies.streams.gather.observe(Duration::from_millis(1));
        report.latencies = latencies.clone();
        let streams = Folded { count: 2, bytes: 64, ..Folded::default() };
        report.jobs.push(JobReport {
            job: JobId(7),
            node: NodeId(1),
            name: "leaf1".into(),
            lane: 0,
            epochs: 3,
            first_fold: Some(Duration::from_millis(250)),
            replayed: Replayed { fragments: 12, segments: 1, bytes: 480 },
            groups_alive: 2,
            buffers_held: 3,
            payload_bytes_folded: 6,
            latencies,
            groups: vec![GroupReport { index: GroupIndex(0), ranks: 5, datagrams: Folded::default(), streams }],
            links: vec![LinkReport { name: "child0".into(), bytes_in: 8, bytes_out: 9, queued_bytes: 10 }],
        });
        let text = node_page(&report, About { began: SystemTime::now(), certificate_seconds: None });
        for line in [
            "tributary_node_workers 2",
            "tributary_job_epochs{job_id=\"7\",node=\"leaf1\",lane=\"0\"} 3",
            "tributary_job_first_fold_seconds{job_id=\"7\",node=\"leaf1\",lane=\"0\"} 0.25",
            "tributary_job_replayed_total{job_id=\"7\",node=\"leaf1\",lane=\"0\",path=\"datagram\"} 12",
            "tributary_job_replayed_total{job_id=\"7\",node=\"leaf1\",lane=\"0\",path=\"stream\"} 1",
            "tributary_job_replayed_bytes_total{job_id=\"7\",node=\"leaf1\",lane=\"0\"} 480",
            "tributary_node_replayed_total{path=\"datagram\"} 0",
            "tributary_node_worker_cpu_seconds_total 1.5",
            "tributary_node_folds_total{path=\"stream\"} 0",
            "tributary_job_groups{job_id=\"7\",node=\"leaf1\",lane=\"0\"} 2",
            "tributary_job_folds_total{job_id=\"7\",node=\"leaf1\",lane=\"0\",path=\"stream\"} 2",
            "tributary_node_gather_seconds_bucket{path=\"stream\",le=\"0.000016384\"} 1",
            "tributary_node_gather_seconds_count{path=\"stream\"} 2",
            "tributary_job_gather_seconds_sum{job_id=\"7\",node=\"leaf1\",lane=\"0\",path=\"stream\"} 0.001015",
            "tributary_job_answer_seconds_count{job_id=\"7\",node=\"leaf1\",lane=\"0\",path=\"datagram\"} 1",
            "tributary_group_ranks{job_id=\"7\",node=\"leaf1\",lane=\"0\",group=\"0\"} 5",
            "tributary_group_folded_bytes_total{job_id=\"7\",node=\"leaf1\",lane=\"0\",group=\"0\",path=\"stream\"} 64",
            "tributary_link_bytes_total{job_id=\"7\",node=\"leaf1\",lane=\"0\",link=\"child0\",direction=\"out\"} 9",
            "tributary_link_queued_bytes{job_id=\"7\",node=\"leaf1\",lane=\"0\",link=\"child0\"} 10",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        for metric in METRICS.iter().filter(|metric| metric.daemon != Some(Daemon::Manager)) {
            assert!(text.contains(&format!("# TYPE {} {}\n", metric.name, metric.kind.word())), "{}", metric.name);
        }
    }
}
