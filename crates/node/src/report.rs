//! A node's figures at one moment, for people who watch it.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use trib_messages::recovery::Replayed;
use trib_proto::node::GroupReport;
use trib_wire::{Epoch, JobId, NodeId};

use crate::accept::Request;
use crate::counters::{self, Counters};
use crate::job::{Job, Latencies, PARENT};
use crate::mailbox::Mailbox;
use crate::worker::{Command, Question, WorkerHandle};

/// The figures of the whole process, or of one of its workers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeReport {
    /// Its counters, as `trib status` shows them.
    pub counters: Counters,
    /// How long fragments and segments stayed, with those of jobs that are gone.
    pub latencies: Latencies,
    /// Its logical nodes.
    pub jobs: Vec<JobReport>,
}

/// The figures of one logical node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobReport {
    /// Its job.
    pub job: JobId,
    /// The logical node's number in the job.
    pub node: NodeId,
    /// The logical node's name for people.
    pub name: String,
    /// The lane of the job to which it belongs.
    pub lane: u32,
    /// The epochs that its tree has come to after the first.
    pub epochs: u64,
    /// How long it took in a later epoch until something was folded.
    pub first_fold: Option<Duration>,
    /// What was folded here in that epoch of what ranks had sent before it, too.
    pub replayed: Replayed,
    /// The number of groups alive.
    pub groups_alive: u64,
    /// The number of buffers that hold vector data.
    pub buffers_held: u64,
    /// Bytes of vector that went into folds.
    pub payload_bytes_folded: u64,
    /// How long fragments and segments stayed. The number of its folds is that of the stays in
    /// `gather`.
    pub latencies: Latencies,
    /// The first [`GROUPS_SHOWN`] of its groups that fold here.
    pub groups: Vec<GroupReport>,
    /// The open stream connections.
    pub links: Vec<LinkReport>,
}

/// The figures of one open stream connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkReport {
    /// `parent`, or `child` with its number.
    pub name: String,
    /// Bytes read from it.
    pub bytes_in: u64,
    /// Bytes written to it.
    pub bytes_out: u64,
    /// Bytes that wait to be written.
    pub queued_bytes: u64,
}

/// The most groups that a report names. A program may have thousands of groups. A report with all
/// of them would be longer than anybody reads, and would keep the worker from its work. Indices are
/// given lowest first, so these are the groups that a program made first.
pub const GROUPS_SHOWN: usize = 32;

/// A handle with which any thread looks at a node that runs.
#[derive(Clone)]
pub struct Observer {
    pub(crate) acceptor: Mailbox<Request>,
    pub(crate) workers: Vec<WorkerHandle>,
}

impl Observer {
    /// The figures, or `None` if not all threads have answered within `patience`: without one of
    /// them, sums would seem to go backwards.
    pub fn report(&self, patience: Duration) -> Option<NodeReport> {
        let deadline = Instant::now() + patience;
        let left = || deadline.saturating_duration_since(Instant::now());
        let (reply, counted) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        self.acceptor.post(Request::Count(reply));
        for worker in &self.workers {
            worker.mailbox.post(Command::Ask(Question::Report(tell.clone())));
        }
        let mut report = NodeReport::default();
        counters::add(&mut report.counters, "workers", self.workers.len() as u64);
        let counters = counted.recv_timeout(left()).ok()?;
        report.add(NodeReport { counters, ..NodeReport::default() });
        for _ in &self.workers {
            report.add(told.recv_timeout(left()).ok()?);
        }
        report.jobs.sort_by_key(|job| (job.job, job.node));
        Some(report)
    }
}

impl NodeReport {
    fn add(&mut self, more: NodeReport) {
        for (name, count) in more.counters {
            counters::add(&mut self.counters, &name, count);
        }
        self.latencies += &more.latencies;
        self.jobs.extend(more.jobs);
    }
}

impl JobReport {
    pub(crate) fn of(job: &Job) -> Self {
        let Job { core, io, .. } = job;
        let link = |number| {
            let traffic = io.links.traffic(number)?;
            let name = if number == PARENT { "parent".to_owned() } else { format!("child{number}") };
            Some(LinkReport { name, bytes_in: traffic.read, bytes_out: traffic.written, queued_bytes: traffic.queued })
        };
        JobReport {
            job: io.identity.job,
            node: io.identity.node,
            name: io.name.clone(),
            lane: io.lane,
            epochs: io.placement.epoch(Epoch(0)).0.into(),
            first_fold: io.stay.first_fold(),
            replayed: io.replayed,
            groups_alive: core.groups() as u64,
            buffers_held: job.buffers_held(),
            payload_bytes_folded: io.bytes_folded,
            latencies: io.latencies.clone(),
            groups: core.group_reports().take(GROUPS_SHOWN).collect(),
            links: io.links.open_links().filter_map(link).collect(),
        }
    }
}
