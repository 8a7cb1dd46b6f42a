//! Every metric.

use crate::settings::Daemon;

/// One metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Type,
    /// Its labels, in the order in which samples give them.
    pub labels: &'static [&'static str],
    /// Which daemon has it; `None`: both.
    pub daemon: Option<Daemon>,
    /// What it means, in a sentence without its full stop.
    pub meaning: &'static str,
    /// The counters of `trib status` that it shows, each with the value of the first label, which
    /// is empty if there is no label.
    pub counters: &'static [(&'static str, &'static str)],
}

/// The type of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Grows until the daemon ends.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Counts of observations, by upper bounds.
    Histogram,
}

impl Type {
    /// Its word in the exposition format.
    pub const fn word(self) -> &'static str {
        match self {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
            Type::Histogram => "histogram",
        }
    }
}

impl Metric {
    /// The metric of this name.
    ///
    /// # Panics
    /// If there is none, which is a bug of this program.
    pub(super) fn named(name: &str) -> &'static Metric {
        METRICS.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("no metric is named {name}"))
    }
}

const fn of_both(name: &'static str, kind: Type, labels: &'static [&'static str], meaning: &'static str) -> Metric {
    Metric { name, kind, labels, daemon: None, meaning, counters: &[] }
}

const fn of_manager(name: &'static str, kind: Type, labels: &'static [&'static str], meaning: &'static str) -> Metric {
    Metric { name, kind, labels, daemon: Some(Daemon::Manager), meaning, counters: &[] }
}

const fn of_node(name: &'static str, kind: Type, labels: &'static [&'static str], meaning: &'static str) -> Metric {
    Metric { name, kind, labels, daemon: Some(Daemon::Node), meaning, counters: &[] }
}

const fn counted(
    name: &'static str,
    kind: Type,
    labels: &'static [&'static str],
    meaning: &'static str,
    counters: &'static [(&'static str, &'static str)],
) -> Metric {
    Metric { name, kind, labels, daemon: Some(Daemon::Node), meaning, counters }
}

/// The table.
pub const METRICS: &[Metric] = &[
    of_both(
        "tributary_build_info",
        Type::Gauge,
        &["daemon", "version"],
        "Always 1; the daemon and its software version",
    ),
    of_both(
        "tributary_certificate_seconds",
        Type::Gauge,
        &[],
        "Seconds until the certificate of the daemon ends that could be used last of those in its folder, negative after that",
    ),
    of_both("process_cpu_seconds_total", Type::Counter, &[], "CPU time of the process, seconds"),
    of_both("process_resident_memory_bytes", Type::Gauge, &[], "Memory of the process that is in RAM"),
    of_both("process_open_fds", Type::Gauge, &[], "Open file descriptors of the process"),
    of_both("process_start_time_seconds", Type::Gauge, &[], "When the process began, seconds since 1970-01-01 UTC"),
    of_manager("tributary_fabric_info", Type::Gauge, &["fabric"], "Always 1; the fabric's name"),
    of_manager(
        "tributary_node_up",
        Type::Gauge,
        &["node"],
        "1 while this node of the topology is connected to the manager, else 0",
    ),
    of_manager("tributary_jobs", Type::Gauge, &[], "Jobs that are admitted now"),
    of_manager(
        "tributary_jobs_adopted",
        Type::Gauge,
        &[],
        "Those of them that an earlier manager admitted; each ends with its last rank",
    ),
    of_manager(
        "tributary_jobs_orphaned",
        Type::Gauge,
        &[],
        "Those of them whose rank 0 lost its connection to the manager without a word; each ends with its last rank",
    ),
    of_manager("tributary_job_ranks", Type::Gauge, &["job_id", "program", "user"], "Ranks of an admitted job"),
    of_manager(
        "tributary_job_admitted_timestamp_seconds",
        Type::Gauge,
        &["job_id", "program", "user"],
        "When a job was admitted, seconds since 1970-01-01 UTC",
    ),
    of_manager(
        "tributary_job_node_info",
        Type::Gauge,
        &["job_id", "node"],
        "Always 1; an aggregation node that an admitted job uses",
    ),
    of_manager("tributary_jobs_waiting", Type::Gauge, &[], "Jobs that wait for quota that others have"),
    of_manager(
        "tributary_tenant_jobs",
        Type::Gauge,
        &["tenant", "state"],
        "Jobs of a tenant of the tenants file, `running` or `waiting`; `*` is all that the file does not name",
    ),
    of_manager(
        "tributary_tenant_used",
        Type::Gauge,
        &["tenant", "node", "resource"],
        "What a tenant's jobs have at an aggregation node: `groups`, `osts`, `streams`, or bytes of buffers (`memory`)",
    ),
    of_manager(
        "tributary_tenant_limit",
        Type::Gauge,
        &["tenant", "node", "resource"],
        "The most of it that the tenant could have there, where that is bounded",
    ),
    of_manager(
        "tributary_admission_seconds",
        Type::Histogram,
        &["result"],
        "How long a request for a job took from its plan to its last installation, with what it waited for quota, by whether it was `admitted` or `refused`",
    ),
    of_manager(
        "tributary_refusals_total",
        Type::Counter,
        &["resource"],
        "Refusals told to programs and nodes, by the resource that there was not enough of; a program's ranks are told one by one",
    ),
    of_manager(
        "tributary_connections",
        Type::Gauge,
        &["state"],
        "Connections to the manager: `established`, or still in their `handshake`",
    ),
    of_manager(
        "tributary_handshakes_refused_total",
        Type::Counter,
        &["reason"],
        "Connections to the manager that were not let in: by a `certificate` of another fabric or role, a `certificate_that_has_ended` or a `withdrawn_certificate`, by another `version`, since they were `too_slow`, `closed` or `malformed`, or `refused` for the role that they claimed",
    ),
    of_manager(
        "tributary_certificates_withdrawn",
        Type::Gauge,
        &[],
        "Certificates on the list of withdrawn ones, as the manager read it last",
    ),
    counted("tributary_node_workers", Type::Gauge, &[], "Worker threads", &[("workers", "")]),
    counted(
        "tributary_node_jobs",
        Type::Gauge,
        &[],
        "Logical nodes of jobs that the process hosts now",
        &[("jobs", "")],
    ),
    counted("tributary_node_groups", Type::Gauge, &[], "Groups alive now", &[("groups", "")]),
    counted(
        "tributary_node_links",
        Type::Gauge,
        &[],
        "Stream connections open now, to children and parents",
        &[("links", "")],
    ),
    counted("tributary_node_buffers", Type::Gauge, &[], "Buffers that hold vector data now", &[("buffers_held", "")]),
    counted(
        "tributary_node_worker_cpu_seconds_total",
        Type::Counter,
        &[],
        "CPU time of the workers, seconds",
        &[("cpu_ns", "")],
    ),
    counted(
        "tributary_node_questions_total",
        Type::Counter,
        &[],
        "Questions about what is here that the workers have answered, whoever asked",
        &[("questions_answered", "")],
    ),
    counted(
        "tributary_node_questions_seconds_total",
        Type::Counter,
        &[],
        "Time that the workers took for them, a sixteenth of it all at most, seconds",
        &[("questions_ns", "")],
    ),
    counted(
        "tributary_node_folds_total",
        Type::Counter,
        &["path"],
        "Folds: fragments that came as datagrams, segments that came over streams",
        &[("fragments_folded", "datagram"), ("segments_folded", "stream")],
    ),
    counted(
        "tributary_node_payload_bytes_total",
        Type::Counter,
        &["event"],
        "Bytes of vector: `received` over both paths, and `folded`, where each child's part counts",
        &[("payload_bytes_in", "received"), ("payload_bytes_folded", "folded")],
    ),
    counted(
        "tributary_node_stream_bytes_total",
        Type::Counter,
        &["direction"],
        "Bytes of streams, headers included",
        &[("stream_bytes_in", "in"), ("stream_bytes_out", "out")],
    ),
    counted(
        "tributary_node_stream_frames_total",
        Type::Counter,
        &["direction"],
        "Frames of streams",
        &[("stream_frames_in", "in")],
    ),
    counted(
        "tributary_node_datagrams_total",
        Type::Counter,
        &["direction"],
        "Datagrams",
        &[("datagrams_in", "in"), ("datagrams_out", "out")],
    ),
    counted(
        "tributary_node_datagram_bytes_total",
        Type::Counter,
        &["direction"],
        "Bytes of datagrams, headers included",
        &[("datagram_bytes_in", "in"), ("datagram_bytes_out", "out")],
    ),
    counted(
        "tributary_node_ucx_messages_total",
        Type::Counter,
        &["direction"],
        "Messages of UCX, each with bytes of a stream or a datagram; those that were for no edge or that an edge could not take are `rejected`",
        &[("ucx_messages_in", "in"), ("ucx_messages_out", "out"), ("ucx_rejected", "rejected")],
    ),
    counted(
        "tributary_node_ucx_bytes_total",
        Type::Counter,
        &["direction"],
        "Bytes in messages of UCX, of which those of streams count as such, too",
        &[("ucx_bytes_in", "in"), ("ucx_bytes_out", "out")],
    ),
    counted(
        "tributary_node_datagrams_lost_total",
        Type::Counter,
        &["reason"],
        "Datagrams that this host lost: receive buffer full (`overflow`), not sent since the socket was full (`send_full`), too long for the path (`send_too_long`), not sent for another reason (`send_failed`), or by a fault injected for a test",
        &[
            ("datagram_socket_overflow", "overflow"),
            ("datagram_send_would_block", "send_full"),
            ("datagram_send_too_long", "send_too_long"),
            ("datagram_send_failed", "send_failed"),
            ("datagram_fault_lost", "injected"),
        ],
    ),
    counted(
        "tributary_node_datagram_queues_apart_total",
        Type::Counter,
        &[],
        "Far ends that sent more datagrams than their share, and got a queue of their own for a while",
        &[("datagram_queues_apart", "")],
    ),
    counted(
        "tributary_node_rejected_frames_total",
        Type::Counter,
        &["reason"],
        "Frames refused before they reached a job: damaged, of strangers, or of jobs that are not here",
        &[
            ("rejected_malformed", "malformed"),
            ("rejected_version", "version"),
            ("rejected_checksum", "checksum"),
            ("rejected_unknown_job", "unknown_job"),
            ("rejected_epoch", "epoch"),
            ("rejected_child", "child"),
            ("rejected_source", "source"),
            ("rejected_tag", "tag"),
            ("rejected_kind", "kind"),
            ("rejected_body", "body"),
        ],
    ),
    counted(
        "tributary_node_dropped_frames_total",
        Type::Counter,
        &["reason"],
        "Authentic frames that changed nothing: they came twice, too late, for a group that is gone, or at a moment when no correct peer sends them",
        &[
            ("duplicates", "duplicate"),
            ("stale", "stale"),
            ("unknown_group", "unknown_group"),
            ("violations", "violation"),
        ],
    ),
    counted(
        "tributary_node_disagreements_total",
        Type::Counter,
        &[],
        "Operations in which two ranks called different collectives",
        &[("disagreements", "")],
    ),
    counted(
        "tributary_node_probes_total",
        Type::Counter,
        &[],
        "Questions of children about fragments, answered; many of them mean loss or late ranks",
        &[("probes", "")],
    ),
    counted("tributary_node_resent_total", Type::Counter, &[], "Aggregates that were sent up again", &[("resent", "")]),
    counted(
        "tributary_node_group_events_total",
        Type::Counter,
        &["event"],
        "What happened to groups",
        &[
            ("groups_made", "made"),
            ("groups_freed", "freed"),
            ("groups_refused", "refused"),
            ("groups_failed", "failed"),
        ],
    ),
    counted(
        "tributary_node_lease_events_total",
        Type::Counter,
        &["event"],
        "What happened to leases of stream contexts",
        &[("leases_granted", "granted"), ("leases_revoked", "revoked")],
    ),
    counted(
        "tributary_node_link_events_total",
        Type::Counter,
        &["event"],
        "Stream connections opened and closed; opened over memory that is shared with the far end (`shared_memory`), or over UCX (`ucx`); and closed for a fault: the far end broke the protocol (`faulty`), does not read (`overrun`), or was silent for too long (`silent`)",
        &[
            ("links_opened", "opened"),
            ("links_closed", "closed"),
            ("links_near", "shared_memory"),
            ("links_ucx", "ucx"),
            ("link_faults", "faulty"),
            ("link_overruns", "overrun"),
            ("links_silent", "silent"),
        ],
    ),
    counted(
        "tributary_node_memory_refusals_total",
        Type::Counter,
        &[],
        "Payloads turned away because a job's memory was used up",
        &[("pool_exhausted", "")],
    ),
    counted(
        "tributary_node_job_events_total",
        Type::Counter,
        &["event"],
        "Logical nodes installed, removed, and stopped by an error of the node's own program (`broken`)",
        &[("jobs_installed", "installed"), ("jobs_removed", "removed"), ("jobs_broken", "broken")],
    ),
    counted(
        "tributary_node_epochs_total",
        Type::Counter,
        &["cause"],
        "Epochs that trees of jobs have come to after their first: a node was found gone here, or a neighbour told it",
        &[("epochs_found", "found"), ("epochs_told", "told")],
    ),
    counted(
        "tributary_node_replayed_total",
        Type::Counter,
        &["path"],
        "Fragments (`datagram`) and segments (`stream`) that became results at their group's root here, and to which a rank had sent its contribution in an earlier epoch, too",
        &[("fragments_replayed", "datagram"), ("segments_replayed", "stream")],
    ),
    counted(
        "tributary_node_replayed_bytes_total",
        Type::Counter,
        &[],
        "Bytes of vectors in them",
        &[("payload_bytes_replayed", "")],
    ),
    counted(
        "tributary_node_handshakes_total",
        Type::Counter,
        &["result"],
        "Connections of children by how their handshake ended",
        &[
            ("handshakes_opened", "opened"),
            ("handshakes_bad_key", "bad_key"),
            ("handshakes_version", "version"),
            ("handshakes_unknown_job", "unknown_job"),
            ("handshakes_refused", "refused"),
            ("handshakes_malformed", "malformed"),
            ("handshakes_timed_out", "timed_out"),
            ("handshakes_crowded_out", "crowded_out"),
            ("handshakes_lost", "lost"),
            ("handshakes_broken", "broken"),
        ],
    ),
    of_node(
        "tributary_node_gather_seconds",
        Type::Histogram,
        &["path"],
        "How far children are apart: from the first contribution to a fragment or segment to its fold, all jobs since the daemon began",
    ),
    of_node(
        "tributary_node_answer_seconds",
        Type::Histogram,
        &["path"],
        "How long the tree above takes: from the fold of a fragment or segment to its result from the parent, all jobs since the daemon began",
    ),
    of_node(
        "tributary_job_epochs",
        Type::Gauge,
        &["job_id", "node", "lane"],
        "The epochs that the tree of a job's node here has come to after its first: the moves of all its nodes",
    ),
    of_node(
        "tributary_job_first_fold_seconds",
        Type::Gauge,
        &["job_id", "node", "lane"],
        "How long a node that came here in a later epoch took until it folded; left out before that, and in the first epoch",
    ),
    of_node(
        "tributary_job_replayed_total",
        Type::Counter,
        &["job_id", "node", "lane", "path"],
        "As `tributary_node_replayed_total`, of one job in its present epoch",
    ),
    of_node(
        "tributary_job_replayed_bytes_total",
        Type::Counter,
        &["job_id", "node", "lane"],
        "Bytes of vectors in them",
    ),
    of_node("tributary_job_groups", Type::Gauge, &["job_id", "node", "lane"], "A job's groups alive now"),
    of_node(
        "tributary_job_buffers",
        Type::Gauge,
        &["job_id", "node", "lane"],
        "A job's buffers that hold vector data now",
    ),
    of_node("tributary_job_folds_total", Type::Counter, &["job_id", "node", "lane", "path"], "A job's folds, by path"),
    of_node(
        "tributary_job_folded_bytes_total",
        Type::Counter,
        &["job_id", "node", "lane"],
        "Bytes of vector that went into a job's folds; each child's part counts",
    ),
    of_node(
        "tributary_job_gather_seconds",
        Type::Histogram,
        &["job_id", "node", "lane", "path"],
        "As `tributary_node_gather_seconds`, of one job; a path that the job has not used is left out",
    ),
    of_node(
        "tributary_job_answer_seconds",
        Type::Histogram,
        &["job_id", "node", "lane", "path"],
        "As `tributary_node_answer_seconds`, of one job; left out at the root of its tree",
    ),
    of_node(
        "tributary_group_ranks",
        Type::Gauge,
        &["job_id", "node", "lane", "group"],
        "Ranks of a group that folds here; `group` is its index there, and the first 32 groups of a job are shown",
    ),
    of_node(
        "tributary_group_folds_total",
        Type::Counter,
        &["job_id", "node", "lane", "group", "path"],
        "A group's folds, by path; begins anew when another group gets the index",
    ),
    of_node(
        "tributary_group_folded_bytes_total",
        Type::Counter,
        &["job_id", "node", "lane", "group", "path"],
        "Bytes of the results of a group's folds",
    ),
    of_node(
        "tributary_group_gather_seconds_total",
        Type::Counter,
        &["job_id", "node", "lane", "group", "path"],
        "Sum of the times from a first contribution to the fold; divided by the folds, how far the group's ranks are apart",
    ),
    of_node(
        "tributary_link_bytes_total",
        Type::Counter,
        &["job_id", "node", "lane", "link", "direction"],
        "Bytes over an open stream connection, headers included; the link is `parent` or `child0` to `child63`",
    ),
    of_node(
        "tributary_link_queued_bytes",
        Type::Gauge,
        &["job_id", "node", "lane", "link"],
        "Bytes that wait for a stream connection to take them",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_follow_the_customs() {
        let mut names = BTreeSet::new();
        for metric in METRICS {
            let Metric { name, kind, labels, meaning, counters, .. } = metric;
            assert!(names.insert(*name), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Type::Counter, "{name}");
            assert!(!meaning.ends_with('.') && !meaning.contains('|'), "{meaning}");
            assert!(labels.iter().all(|label| *label != "le"), "{name}");
            assert!(counters.iter().all(|(_, value)| value.is_empty() == labels.is_empty()), "{name}");
        }
    }

    #[test]
    fn the_table_says_how_many_groups_are_shown() {
        assert!(Metric::named("tributary_group_ranks").meaning.contains(&format!("first {}", trib_node::GROUPS_SHOWN)));
    }

    #[test]
    fn no_counter_is_shown_twice() {
        let mut counters = BTreeSet::new();
        assert!(METRICS.iter().flat_map(|metric| metric.counters).all(|(counter, _)| counters.insert(counter)));
    }
}
