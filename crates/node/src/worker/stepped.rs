//! A worker without a thread: its owner says when it has its round, what time it is, and which
//! connections open. What a round does is what a node's worker does.
//!
//! Fuzzers drive it, with ranks at the other ends of edges over memory within the same process
//! ([`NearSocket::pair`](trib_transport::memory::NearSocket::pair)).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use mio::Events;
use trib_messages::explanation::{NodePart, TrafficPart};
use trib_messages::job::NodeGrant;
use trib_messages::jobs::JobActivity;
use trib_proto::Nanos;
use trib_transport::tcp::StreamSocket;
use trib_waiting::clock::Clock;
use trib_wire::auth::FrameKey;
use trib_wire::{ChildIndex, Epoch, JobId, NodeId, Placement};

use super::{Command, Key, Question, Worker, WorkerHandle, prepare};
use crate::accept::Request;
use crate::counters::Counters;
use crate::job::{Buffers, Opened, memory_for};
use crate::news::News;
use crate::report::NodeReport;

/// A worker whose rounds its owner calls.
pub struct Stepped {
    worker: Worker,
    handle: WorkerHandle,
    events: Events,
    requests: Receiver<Request>,
    /// What the manager would be told, which nobody reads.
    _news: Receiver<News>,
    asked: Vec<Answer>,
}

/// What a worker is asked.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// The counters.
    Count,
    /// The counters and the figures of every logical node.
    Report,
    /// What the jobs do.
    Activity,
    /// The details of a job, or of its groups with one tag.
    Explain(JobId, Option<u64>),
}

/// An answer that is awaited.
enum Answer {
    Count(Receiver<Counters>),
    Report(Receiver<NodeReport>),
    Activity(Receiver<Vec<JobActivity>>),
    Explain(Receiver<Vec<(NodePart, TrafficPart)>>),
}

impl Stepped {
    /// A worker that takes datagrams at the loopback and hosts nothing yet. Its time stands still.
    ///
    /// # Errors
    /// If the process can have no further poll or socket.
    pub fn start() -> io::Result<Stepped> {
        let (tell, requests) = mpsc::channel();
        let (news, _news) = mpsc::channel();
        // The receiver lives as long as the worker.
        let tell = Box::new(move |request| drop(tell.send(request)));
        let (handle, mut worker) = prepare(Ipv4Addr::LOCALHOST.into(), tell, news)?;
        worker.clock = Clock::still();
        Ok(Stepped { worker, handle, events: Events::with_capacity(256), requests, _news, asked: Vec::new() })
    }

    /// Hosts a logical node from the next round on, whose children get `results`. The grant is to
    /// be one that a node's acceptor lets through. Returns the bytes that are reserved for it, or
    /// `None` if there is not that much memory.
    pub fn host(&mut self, grant: &NodeGrant, results: FrameKey) -> Option<u64> {
        let buffers = Box::new(Buffers::for_grant(grant)?);
        self.handle.mailbox.post(Command::Host(Box::new(grant.clone()), Placement::FIRST, Some(buffers), results));
        Some(memory_for(grant))
    }

    /// The connection of a child is open from the next round on. Its datagrams come from
    /// `datagrams`.
    pub fn link_up(
        &mut self,
        key: (JobId, NodeId),
        child: ChildIndex,
        (socket, datagrams): (StreamSocket, SocketAddr),
    ) {
        let opened = Opened { socket, datagrams, results: None, session: None, apart: false };
        self.handle.mailbox.post(Command::LinkUp { key, epoch: EPOCH, link: child.0.into(), opened });
    }

    /// The process of a child is gone that has not called.
    pub fn child_gone(&mut self, key: (JobId, NodeId), child: ChildIndex) {
        self.handle.mailbox.post(Command::ChildGone { key, epoch: EPOCH, child });
    }

    /// The manager ends a job.
    pub fn end(&mut self, job: JobId) {
        self.handle.mailbox.post(Command::End(job));
    }

    /// Asks something, which is answered when its turn comes.
    pub fn ask(&mut self, ask: Ask) {
        let (question, answer) = match ask {
            Ask::Count => channel(Question::Count, Answer::Count),
            Ask::Report => channel(Question::Report, Answer::Report),
            Ask::Activity => channel(Question::Activity, Answer::Activity),
            Ask::Explain(job, tag) => channel(|reply| Question::Explain(job, tag, reply), Answer::Explain),
        };
        self.asked.push(answer);
        self.handle.mailbox.post(Command::Ask(question));
    }

    /// How many questions wait for their answers.
    pub fn unanswered(&mut self) -> usize {
        self.asked.retain(Answer::is_awaited);
        self.asked.len()
    }

    /// So much time passes.
    pub fn pass(&mut self, span: Nanos) {
        let later = self.worker.clock.last_reading().after(span.0);
        self.worker.clock.note(later);
    }

    /// One round: takes what has come, without waiting for more.
    ///
    /// # Errors
    /// If poll fails.
    pub fn round(&mut self) -> io::Result<()> {
        let Stepped { worker, events, .. } = self;
        if worker.near.has_come() {
            worker.on_near();
        }
        let sleeps = !worker.has_more() && worker.near.fall_asleep();
        worker.poll.poll(events, Some(Duration::ZERO))?;
        if sleeps {
            worker.near.wake_up();
        }
        let come = worker.sort(events);
        if come.has_datagrams {
            worker.on_datagrams();
        }
        worker.on_streams(events);
        worker.end_round(&come);
        Ok(())
    }

    /// The counters now.
    pub fn counters(&mut self) -> Counters {
        self.worker.count()
    }

    /// How many frames have come by streams so far, which is among the counters, too.
    pub fn stream_frames(&self) -> u64 {
        self.worker.tally.frames_in
    }

    /// Whether nothing is hosted.
    pub fn is_empty(&self) -> bool {
        self.worker.hosted.is_empty()
    }

    /// The logical nodes that have been removed since the last call, as the acceptor is told.
    pub fn removed(&mut self) -> Vec<(JobId, NodeId)> {
        let gone = |request: Request| -> Option<Key> {
            match request {
                Request::Gone(key) => Some(key),
                _ => None,
            }
        };
        self.requests.try_iter().filter_map(gone).collect()
    }
}

impl Answer {
    fn is_awaited(&self) -> bool {
        fn is_awaited<T>(answer: &Receiver<T>) -> bool {
            matches!(answer.try_recv(), Err(TryRecvError::Empty))
        }
        match self {
            Answer::Count(answer) => is_awaited(answer),
            Answer::Report(answer) => is_awaited(answer),
            Answer::Activity(answer) => is_awaited(answer),
            Answer::Explain(answer) => is_awaited(answer),
        }
    }
}

fn channel<T>(
    question: impl FnOnce(mpsc::Sender<T>) -> Question,
    answer: impl FnOnce(Receiver<T>) -> Answer,
) -> (Question, Answer) {
    let (reply, answered) = mpsc::channel();
    (question(reply), answer(answered))
}

/// The epoch of every grant.
const EPOCH: Epoch = Epoch(1);

#[cfg(test)]
mod tests;
