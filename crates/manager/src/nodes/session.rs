//! One connection of one aggregation node: what is sent to it, and what it is asked.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, mpsc};

use trib_messages::explanation::{NodePart, TrafficPart};
use trib_messages::job::NodeGrant;
use trib_messages::jobs::JobActivity;
use trib_messages::node::ManagerMessage;
use trib_messages::recovery::EpochPart;
use trib_messages::reply::Refusal;
use trib_wire::ids::{JobId, NodeId};

use super::silence::Silence;
use crate::lock::lock;
use crate::time::Time;

/// The counters of a node.
pub(crate) type Counters = BTreeMap<String, u64>;

/// The result of an installation.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The job is installed.
    Installed,
    /// The node has refused it.
    Rejected(Refusal),
    /// The node's connection ended first.
    Lost,
}

/// What a node tells of one job: its logical nodes there, and what has gone over their links, if
/// the node says that.
#[derive(Clone, Default, Debug)]
pub(crate) struct Told {
    pub parts: Vec<NodePart>,
    pub traffic: Vec<TrafficPart>,
    pub epochs: Vec<EpochPart>,
}

/// The answer to one installation: of which logical node, and as which of its candidates.
pub(crate) type Answer = (NodeId, u16, Outcome);

/// Who calls, as the connection has proven it.
pub struct Caller {
    /// The address from which it calls.
    pub address: SocketAddr,
    /// The aggregation node that its certificate names.
    pub node: Option<String>,
    /// Its software version, as it says.
    pub software: String,
    /// When its certificate ends, seconds since 1970-01-01 UTC.
    pub certificate_ends: u64,
    /// Closes the connection. It may be called again.
    pub hang_up: Box<dyn Fn() + Send + Sync>,
}

/// One connection of one node.
pub(crate) struct Session {
    /// Its name in the topology.
    pub name: String,
    /// The address at which it takes streams.
    pub stream: SocketAddr,
    /// The other addresses at which it does.
    pub further: Vec<SocketAddr>,
    /// The size of the receive buffer of its datagram sockets, in bytes.
    pub datagram_buffer_bytes: u64,
    /// The number of its worker threads.
    pub workers: u32,
    /// Its software version.
    pub version: String,
    certificate_ends: AtomicU64,
    /// When it registered, milliseconds since 1970-01-01 UTC.
    pub since_ms: u64,
    hang_up: Box<dyn Fn() + Send + Sync>,
    time: Time,
    /// Boxed, because room for all that may be unread is there from the beginning.
    outbox: SyncSender<Box<ManagerMessage>>,
    expected: Mutex<Expected>,
    silence: Mutex<Silence>,
}

/// What is asked about: a job, or the groups of it with one tag.
type Question = (JobId, Option<u64>);

#[derive(Default)]
struct Expected {
    /// When the connection was lost.
    lost_ms: Option<u64>,
    installs: BTreeMap<(JobId, NodeId), (u16, Sender<Answer>)>,
    counters: Vec<Sender<Counters>>,
    activities: Vec<Sender<Vec<JobActivity>>>,
    explanations: BTreeMap<Question, Vec<Sender<Told>>>,
}

impl Session {
    /// A session, and the receiver of the messages that its writer has to send.
    pub(crate) fn new(
        name: String,
        stream: SocketAddr,
        further: Vec<SocketAddr>,
        (datagram_buffer_bytes, workers): (u64, u32),
        (caller, time): (Caller, Time),
    ) -> (Arc<Self>, Receiver<Box<ManagerMessage>>) {
        let (outbox, messages) = mpsc::sync_channel(OUTBOX);
        let Caller { software: version, certificate_ends, hang_up, .. } = caller;
        let certificate_ends = certificate_ends.into();
        let (since_ms, expected, silence) = (time.unix_ms(), Mutex::default(), Mutex::default());
        let session = Session {
            name,
            stream,
            further,
            datagram_buffer_bytes,
            workers,
            version,
            certificate_ends,
            since_ms,
            hang_up,
            time,
            outbox,
            expected,
            silence,
        };
        (Arc::new(session), messages)
    }

    /// When the certificate ends that it has shown or has been given since, seconds since
    /// 1970-01-01 UTC.
    pub(crate) fn certificate_ends(&self) -> u64 {
        self.certificate_ends.load(Ordering::Relaxed)
    }

    /// It has been given another certificate.
    pub(crate) fn renewed(&self, ends: u64) {
        self.certificate_ends.store(ends, Ordering::Relaxed);
    }

    /// All addresses at which it takes streams.
    pub(crate) fn streams(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        std::iter::once(self.stream).chain(self.further.iter().copied())
    }

    /// Its socket address at this IP address; the first one if no IP address is asked for.
    pub(crate) fn stream_at(&self, address: Option<IpAddr>) -> Option<SocketAddr> {
        self.streams().find(|stream| address.is_none_or(|address| stream.ip() == address))
    }

    /// Leaves a message for the writer. A node with [`OUTBOX`] unread messages is stuck. It is
    /// disconnected, and registers again when it is no longer stuck.
    pub(crate) fn post(&self, message: ManagerMessage) {
        if self.outbox.try_send(Box::new(message)).is_err() {
            self.lose();
        }
    }

    /// Asks for an installation. Exactly one answer comes through `answers`.
    pub(crate) fn install(&self, grant: NodeGrant, answers: Sender<Answer>) {
        {
            let mut expected = lock(&self.expected);
            if expected.lost_ms.is_some() {
                // A receiver that has given up waiting is no error.
                let _ = answers.send((grant.node, grant.candidate, Outcome::Lost));
                return;
            }
            expected.installs.insert((grant.job, grant.node), (grant.candidate, answers));
        }
        self.post(ManagerMessage::Install(Box::new(grant)));
    }

    /// The node's answer to an installation. Returns `false` if no thread waits for it.
    pub(crate) fn answer(&self, job: JobId, node: NodeId, outcome: Outcome) -> bool {
        let waiting = lock(&self.expected).installs.remove(&(job, node));
        waiting.is_some_and(|(candidate, answers)| answers.send((node, candidate, outcome)).is_ok())
    }

    /// No thread waits for answers about this job any more.
    pub(crate) fn forget(&self, job: JobId) {
        lock(&self.expected).installs.retain(|(other, _), _| *other != job);
    }

    /// Asks for the counters. At most one question is under way, and its answer serves all that
    /// ask.
    pub(crate) fn query(&self) -> Option<Receiver<Counters>> {
        let (sender, receiver) = mpsc::channel();
        let first = {
            let mut expected = lock(&self.expected);
            if expected.lost_ms.is_some() || expected.counters.len() >= QUERIES {
                return None;
            }
            expected.counters.push(sender);
            expected.counters.len() == 1
        };
        if first {
            self.post(ManagerMessage::QueryCounters);
        }
        Some(receiver)
    }

    /// The node's counters have come.
    pub(crate) fn counted(&self, counters: &Counters) {
        let waiting = std::mem::take(&mut lock(&self.expected).counters);
        for sender in waiting {
            // A receiver that has given up waiting is no error.
            let _ = sender.send(counters.clone());
        }
    }

    /// Asks what all jobs do there. At most one question is under way, and its answer serves all
    /// that ask.
    pub(crate) fn query_activity(&self) -> Option<Receiver<Vec<JobActivity>>> {
        let (sender, receiver) = mpsc::channel();
        let first = {
            let mut expected = lock(&self.expected);
            if expected.lost_ms.is_some() || expected.activities.len() >= QUERIES {
                return None;
            }
            expected.activities.push(sender);
            expected.activities.len() == 1
        };
        if first {
            self.post(ManagerMessage::QueryActivity);
        }
        Some(receiver)
    }

    /// The node has told what its jobs do.
    pub(crate) fn active(&self, jobs: &[JobActivity]) {
        let waiting = std::mem::take(&mut lock(&self.expected).activities);
        for sender in waiting {
            // A receiver that has given up waiting is no error.
            let _ = sender.send(jobs.to_vec());
        }
    }

    /// Asks what a job does there, or its groups with one tag. At most one such question is under
    /// way, and its answer serves all that ask.
    pub(crate) fn explain(&self, job: JobId, group: Option<u64>) -> Option<Receiver<Told>> {
        let (sender, receiver) = mpsc::channel();
        let first = {
            let mut expected = lock(&self.expected);
            let all = expected.explanations.values().map(Vec::len).sum::<usize>();
            let of_job = expected.explanations.range((job, None)..=(job, Some(u64::MAX)));
            let asked = of_job.map(|(_, waiting)| waiting.len()).sum::<usize>();
            if expected.lost_ms.is_some() || asked >= QUERIES || all >= QUERIES_ALL {
                return None;
            }
            let waiting = expected.explanations.entry((job, group)).or_default();
            waiting.push(sender);
            waiting.len() == 1
        };
        if first {
            self.post(ManagerMessage::Explain { job, group });
        }
        Some(receiver)
    }

    /// The node has told what a job does there.
    pub(crate) fn explained(&self, job: JobId, group: Option<u64>, told: &Told) {
        let waiting = lock(&self.expected).explanations.remove(&(job, group)).unwrap_or_default();
        for sender in waiting {
            // A receiver that has given up waiting is no error.
            let _ = sender.send(told.clone());
        }
    }

    /// One beat of the search for nodes that do not answer.
    pub(crate) fn beat(&self, now_ms: u64) {
        if !self.is_lost() && lock(&self.silence).beat(now_ms) {
            self.post(ManagerMessage::Ping);
        }
    }

    /// The node has said something, which the manager handles from now on.
    pub(crate) fn heard(&self) {
        lock(&self.silence).end();
    }

    /// The manager waits for the next thing that the node says.
    pub(crate) fn listens(&self) {
        lock(&self.silence).wait();
    }

    /// Since when the node has not answered, milliseconds since 1970-01-01 UTC, if it is late with
    /// its answer.
    pub(crate) fn late_ms(&self) -> Option<u64> {
        lock(&self.silence).late_ms()
    }

    /// The same, if it is so late that nothing waits for it any more.
    pub(crate) fn silent_ms(&self) -> Option<u64> {
        lock(&self.silence).silent_ms()
    }

    /// Ends the session. All that wait for an answer are told.
    pub(crate) fn lose(&self) {
        (self.hang_up)();
        let forgotten = {
            let mut expected = lock(&self.expected);
            let lost_ms = expected.lost_ms.or_else(|| Some(self.time.unix_ms()));
            std::mem::replace(&mut *expected, Expected { lost_ms, ..Expected::default() })
        };
        for ((_, node), (candidate, answers)) in forgotten.installs {
            let _ = answers.send((node, candidate, Outcome::Lost));
        }
    }

    /// Whether the connection is gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost_ms().is_some()
    }

    /// Since when the connection is gone, milliseconds since 1970-01-01 UTC.
    pub(crate) fn lost_ms(&self) -> Option<u64> {
        lock(&self.expected).lost_ms
    }
}

/// The number of messages that a node may leave unread.
const OUTBOX: usize = 4096;
/// The number of requests that may wait for an answer of one node, to a question about all jobs and
/// about each.
const QUERIES: usize = 64;
/// The number of those about single jobs.
const QUERIES_ALL: usize = 64 * QUERIES;
