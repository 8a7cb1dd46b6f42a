//! A worker: one thread with one poll and one datagram socket, and the logical nodes that belong to
//! it for good.
//!
//! Workers share nothing, so no vector meets a lock. New jobs and new connections come from other
//! threads as a [`Command`] through a mailbox.
//!
//! ```text
//!   looks ---- near links --> records, streams over memory
//!   poll --+-- mailbox ----> install, link up, end, questions
//!          +-- datagrams --> demux by (job, node) --> check source and tag --> core
//!          +-- stream -----> reader --> sink --> core --> output: queues, sends, folds
//!          +-- timer ------> heartbeats, lifetimes, questions that are due
//!   after each of these: settle = write what is queued, close what is doomed; where several jobs
//!   are here, each writes its share and then waits for the next round
//! ```

mod asides;
mod command;
mod datagrams;
mod hosted;
mod isolation;
mod links;
mod moving;
mod near;
mod questions;
mod shares;
mod stepped;
// These are the ranks of the crate's own tests, not all of whose abilities are used here.
#[cfg(test)]
#[allow(dead_code, unused_imports)]
#[path = "../../tests/node/support/mod.rs"]
mod support;
mod unfinished;

pub(crate) use command::{Command, Key};
use datagrams::Datagrams;
use hosted::{Hosted, Slot};
pub(crate) use isolation::guard;
#[cfg(test)]
pub(crate) use isolation::trap;
use near::Near;
use questions::Line;
pub(crate) use questions::Question;
use shares::Shares;
pub use stepped::{Ask, Stepped};
use unfinished::Unfinished;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use trib_messages::explanation::{NodePart, TrafficPart};
use trib_messages::job::NodeGrant;
use trib_messages::jobs::JobActivity;
use trib_proto::Nanos;
use trib_transport::ucx::{NoUcx, UcxWorker};
use trib_transport::udp::{DatagramSocket, RECV_BUFFER_WANTED};
use trib_waiting::clock::Clock;
use trib_waiting::{Patience, TURN, Turns, Yields};
use trib_wire::auth::FrameKey;
use trib_wire::{JobId, Placement};

use crate::accept::Request;
use crate::counters::{self, Counters, Tally};
use crate::job::{Buffers, Job, Latencies, Output};
use crate::mailbox::Mailbox;
use crate::news::News;
use crate::report::{JobReport, NodeReport};

/// The handle through which other threads reach a worker.
#[derive(Clone)]
pub(crate) struct WorkerHandle {
    pub mailbox: Mailbox<Command>,
    /// The address of its logical nodes.
    pub ip: IpAddr,
    /// The port at that address where they take datagrams.
    pub udp_port: u16,
    /// The size of the receive buffer that the kernel granted, in bytes.
    pub datagram_buffer: usize,
    /// What its links over UCX go through, once there are any.
    pub ucx: Arc<OnceLock<UcxWorker>>,
}

impl WorkerHandle {
    /// What its links over UCX go through. It is opened when the first one comes.
    pub(crate) fn open_ucx(&self) -> Result<UcxWorker, NoUcx> {
        if let Some(ucx) = self.ucx.get() {
            return Ok(ucx.clone());
        }
        // The acceptor alone opens any.
        let ucx = UcxWorker::open()?;
        self.mailbox.post(Command::UseUcx(ucx.clone()));
        Ok(self.ucx.get_or_init(|| ucx).clone())
    }
}

/// The thread's state.
struct Worker {
    poll: Poll,
    mailbox: Receiver<Command>,
    datagrams: Datagrams,
    near: Near,
    hosted: Hosted,
    tally: Tally,
    /// The latencies of jobs that are gone.
    past: Latencies,
    clock: Clock,
    /// The links with more to read than one turn allows.
    unfinished: Unfinished,
    /// Whether far ends with a queue of their own may have sent more.
    asides_wait: bool,
    /// What each job may write.
    shares: Shares,
    /// What other threads want to know.
    questions: Line<Question>,
    /// The earliest deadline of any core.
    next_timer: Nanos,
    next_housekeeping: Nanos,
    /// Tells the acceptor which processes may connect, when that changes.
    tell: Box<dyn Fn(Request) + Send>,
    /// Tells the manager's thread what it does not ask for.
    news: Sender<News>,
    /// The threads that say the last frames of connections.
    farewells: Vec<JoinHandle<()>>,
    /// The threads that wait until no logical node is here.
    leaving: Vec<Sender<()>>,
    stopping: bool,
}

/// What has come for a round.
struct Come {
    has_mail: bool,
    has_datagrams: bool,
}

/// Starts a worker that takes datagrams at `ip`.
pub(crate) fn start(
    number: usize,
    ip: IpAddr,
    tell: Box<dyn Fn(Request) + Send>,
    news: Sender<News>,
) -> io::Result<(WorkerHandle, JoinHandle<()>)> {
    let (handle, mut worker) = prepare(ip, tell, news)?;
    let thread = thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
        if let Err(error) = worker.run() {
            tracing::error!(%error, number, "worker ends");
        }
    })?;
    Ok((handle, thread))
}

/// A worker without a thread.
fn prepare(ip: IpAddr, tell: Box<dyn Fn(Request) + Send>, news: Sender<News>) -> io::Result<(WorkerHandle, Worker)> {
    let poll = Poll::new()?;
    let (mailbox, receiver) = Mailbox::new(poll.registry(), MAILBOX)?;
    let mut socket = DatagramSocket::bind(SocketAddr::new(ip, 0), RECV_BUFFER_WANTED)?;
    poll.registry().register(&mut socket, DATAGRAMS, Interest::READABLE)?;
    let (udp_port, datagram_buffer) = (socket.local_addr().port(), socket.recv_buffer());
    let handle = WorkerHandle { mailbox, ip, udp_port, datagram_buffer, ucx: Arc::default() };
    let worker = Worker {
        poll,
        mailbox: receiver,
        datagrams: Datagrams::new(socket),
        near: Near::default(),
        hosted: Hosted::default(),
        tally: Tally::default(),
        past: Latencies::default(),
        clock: Clock::start(),
        unfinished: Unfinished::default(),
        asides_wait: false,
        shares: Shares::default(),
        questions: Line::default(),
        next_timer: Nanos::NEVER,
        next_housekeeping: Nanos(0),
        tell,
        news,
        farewells: Vec::new(),
        leaving: Vec::new(),
        stopping: false,
    };
    Ok((handle, worker))
}

impl Worker {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        let mut patience = Patience::new(YIELDS);
        let mut turns: Option<Turns> = None;
        let mut glances = 0;
        // Whether poll had no events of streams when it was last asked.
        let mut streams_rest = true;
        while !self.stopping {
            if let Some(over) = turns.take_if(|turns| !turns.goes_on()) {
                patience.end(&over, false);
            }
            let has_more = self.has_more();
            if let Some(waiting) = turns.as_mut().filter(|_| !has_more) {
                let found = self.look(waiting);
                if found {
                    patience.end(waiting, true);
                    turns = patience.begin(self.clock.last_reading());
                }
                glances += 1;
                // While only datagrams come, poll is asked less often.
                if glances < GLANCES && streams_rest {
                    continue;
                }
            }
            glances = 0;
            if self.near.has_come() {
                self.clock.read();
                self.on_near();
                if let Some(found) = turns.take() {
                    patience.end(&found, true);
                }
                turns = patience.begin(self.clock.last_reading());
            }
            let mut span = match turns {
                Some(_) => Duration::ZERO,
                None if has_more => Duration::ZERO,
                None => Duration::from_nanos(self.next_deadline().since(Nanos(self.clock.read())).0),
            };
            let sleeps = !span.is_zero();
            if sleeps && !self.near.fall_asleep() {
                span = Duration::ZERO;
            }
            match self.poll.poll(&mut events, Some(span)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            if sleeps {
                self.near.wake_up();
            }
            let come = self.sort(&events);
            // Datagrams go before streams: a group's fault must not overtake the results that were
            // sent before it.
            if come.has_datagrams && self.on_datagrams() {
                // If one child's contribution has come, those of the others follow, and often the
                // next look finds all of them.
                if let Some(found) = turns.take() {
                    patience.end(&found, true);
                }
                turns = patience.begin(self.clock.last_reading());
            }
            streams_rest = !self.on_streams(&events);
            self.end_round(&come);
        }
        self.see_off();
        Ok(())
    }

    /// What poll has told of what is not a stream.
    fn sort(&mut self, events: &Events) -> Come {
        self.clock.read();
        let mut come = Come { has_mail: false, has_datagrams: self.datagrams.unfinished };
        for event in events {
            come.has_mail |= event.token() == MAILBOX;
            come.has_datagrams |= event.token() == DATAGRAMS;
            self.asides_wait |= event.token() == ASIDES;
        }
        come
    }

    /// Takes what has come by streams, and before that what has come beside the worker's socket.
    /// Returns whether there were streams.
    fn on_streams(&mut self, events: &Events) -> bool {
        self.asides_wait = self.asides_wait && self.on_asides();
        // Of one edge over memory, too, datagrams are taken before the stream.
        if self.near.has_come() {
            self.on_near();
        }
        let mut has_streams = !self.unfinished.is_empty();
        // Those whose turn ended before go first: of what their job may read now, others would
        // leave them nothing.
        for _ in 0..self.unfinished.len() {
            if let Some((slot, link)) = self.unfinished.next() {
                self.on_readable(slot, link, false);
            }
        }
        for event in events.iter().filter(|event| event.token().0 >= LINKS) {
            has_streams = true;
            let (slot, link) = (event.token().0 / LINKS - 1, event.token().0 % LINKS);
            if event.is_writable() {
                self.on_writable(slot, link);
            }
            if event.is_readable() || event.is_read_closed() || event.is_error() {
                self.on_readable(slot, link, event.is_read_closed());
            }
        }
        has_streams
    }

    /// What a round does besides, whatever has come.
    fn end_round(&mut self, come: &Come) {
        for slot in self.shares.next_round() {
            self.settle(slot);
        }
        self.on_clock();
        // Mail comes last, so that no event of this round meets a job that has taken the slot
        // of another.
        if come.has_mail {
            self.on_mail();
        }
        self.on_questions();
        if !self.leaving.is_empty() {
            self.see_out();
        }
    }

    /// When this thread last came back from waiting, or began to read a stream.
    fn now(&self) -> Nanos {
        Nanos(self.clock.last())
    }

    /// Whether this round has left something to read, or to write.
    fn has_more(&self) -> bool {
        self.datagrams.unfinished || self.asides_wait || !self.unfinished.is_empty() || self.shares.is_awaited()
    }

    fn next_deadline(&self) -> Nanos {
        self.next_timer.min(self.next_housekeeping).min(self.questions.next_deadline())
    }

    fn on_mail(&mut self) {
        while let Ok(command) = self.mailbox.try_recv() {
            match command {
                Command::Host(grant, placement, buffers, results) => {
                    self.host(&grant, &placement, buffers.map(|buffers| *buffers), &results)
                }
                Command::UseUcx(ucx) => {
                    if let Err(error) = self.near.use_ucx(ucx, self.poll.registry()) {
                        tracing::error!(%error, "links over UCX are not polled");
                    }
                }
                Command::LinkUp { key, epoch, link, opened } => self.on_link_up((key, epoch), link, opened),
                Command::ChildGone { key, epoch, child } => self.on_child_gone((key, epoch), child),
                Command::ParentFailed { key, epoch, error } => self.on_parent_failed((key, epoch), error),
                Command::Leave { key, placement } => self.leave(key, &placement),
                Command::End(job) => self.end(job),
                Command::Ask(question) => self.questions.put(question),
                Command::SeeOut(waits) => self.leaving.push(waits),
                Command::Stop => self.stopping = true,
            }
        }
    }

    fn install(&mut self, grant: &NodeGrant, placement: &Placement, own: (Buffers, &FrameKey)) {
        if grant.limits.faults
            && let Err(error) = self.datagrams.socket.inject_faults()
        {
            tracing::error!(%error, "no faults are injected");
        }
        tracing::info!(
            job = grant.job.0,
            node = grant.name,
            lane = grant.lane,
            children = grant.children.len(),
            "job installed"
        );
        self.tally.jobs_installed += 1;
        let now = self.now();
        match guard(|| Job::new(grant, placement, own, now)) {
            Ok(job) => drop(self.hosted.insert(job)),
            Err(why) => {
                tracing::error!(
                    job = grant.job.0,
                    node = grant.name,
                    lane = grant.lane,
                    why,
                    "the job cannot be hosted; please report it"
                );
                self.tally.jobs_broken += 1;
                let why =
                    format!("an error in the node's program kept it from hosting the job ({why}); please report it");
                // The thread that receives the news ends only with the process.
                let _ = self.news.send(News::Faulty { job: grant.job, fault: None, why });
                (self.tell)(Request::Gone((grant.job, grant.node)));
            }
        }
    }

    fn end(&mut self, job: JobId) {
        for slot in self.hosted.slots() {
            if let Some(hosted) = self.hosted.get_mut(slot)
                && hosted.io.identity.job == job
            {
                hosted.lifetime.end();
            }
        }
        self.next_housekeeping = Nanos(0);
    }

    fn count(&mut self) -> Counters {
        let mut counters = Counters::new();
        self.tally.add_to(&mut counters);
        self.datagrams.add_to(&mut counters);
        self.questions.add_to(&mut counters);
        counters::add_ucx(self.near.ucx_counters().unwrap_or_default(), &mut counters);
        counters::add(&mut counters, "cpu_ns", counters::thread_cpu_ns());
        for count in self.ask(Job::count) {
            for (name, count) in count {
                counters::add(&mut counters, name, count);
            }
        }
        counters
    }

    fn report(&mut self) -> NodeReport {
        let counters = self.count();
        let jobs = self.ask(JobReport::of);
        let mut latencies = self.past.clone();
        for job in &jobs {
            latencies += &job.latencies;
        }
        NodeReport { counters, latencies, jobs }
    }

    fn activity(&mut self) -> Vec<JobActivity> {
        let now = self.now();
        let told = |job: &Job| JobActivity {
            job: job.io.identity.job,
            activity: job.activity(now),
            nodes_in_ranks: job.nodes_in_ranks(),
            moves: job.io.placement.moves().collect(),
            spent: job.is_spent().then_some(job.io.identity.node).into_iter().collect(),
            replayed: job.io.replayed,
        };
        self.ask(told)
    }

    fn explain(&mut self, job: JobId, tag: Option<u64>) -> Vec<(NodePart, TrafficPart)> {
        let now = self.now();
        let parts = self.ask(|hosted| (hosted.io.identity.job == job).then(|| hosted.explain(now, tag)));
        parts.into_iter().flatten().collect()
    }

    /// Calls the timers of the cores, and removes jobs that are over.
    fn on_clock(&mut self) {
        let now = self.now();
        if now >= self.next_timer {
            self.next_timer = Nanos::NEVER;
            for slot in self.hosted.slots() {
                self.handle(slot, |worker| worker.on_timer(slot, now));
            }
        }
        if now >= self.next_housekeeping {
            self.next_housekeeping = now + HOUSEKEEPING;
            self.datagrams.asides.tidy();
            for slot in self.hosted.slots() {
                let Some(job) = self.hosted.get_mut(slot) else { continue };
                job.watch_folds(now);
                if job.lifetime.is_over(now) {
                    drop(self.remove(slot));
                }
            }
        }
    }

    fn on_timer(&mut self, slot: Slot, now: Nanos) {
        let Some(job) = self.hosted.get_mut(slot) else { return };
        job.io.tick(now);
        let mut out = Output { io: &mut job.io, udp: &mut self.datagrams.socket, tally: &mut self.tally };
        if now >= job.core.next_deadline() {
            job.core.on_timer(now, &mut out);
        }
        for link in job.core.take_dead_links() {
            let link = links::number_of(link);
            tracing::warn!(
                job = job.io.identity.job.0,
                node = job.io.name,
                lane = job.io.lane,
                link,
                "the far end is silent or sends far too much, link closed"
            );
            job.io.links.give_up(link);
        }
        self.next_timer = self.next_timer.min(job.core.next_deadline());
    }

    /// Takes a job out of the table, whose links are not looked at any more.
    fn take_out(&mut self, slot: Slot) -> Option<Job> {
        self.near.forget_job(slot);
        self.hosted.remove(slot)
    }

    fn remove(&mut self, slot: Slot) -> Option<Job> {
        let job = self.take_out(slot)?;
        let identity = job.io.identity;
        tracing::info!(job = identity.job.0, node = job.io.name, lane = job.io.lane, "job removed");
        self.tally.jobs_removed += 1;
        self.past += &job.io.latencies;
        (self.tell)(Request::Gone((identity.job, identity.node)));
        Some(job)
    }
}

const MAILBOX: Token = Token(0);
const DATAGRAMS: Token = Token(1);
const UCX: Token = Token(2);
const ASIDES: Token = Token(3);
/// The number of tokens for each slot, the parent's link included. Tokens below this number are the
/// worker's own.
const LINKS: usize = 128;
const _: () = assert!(crate::job::PARENT < LINKS);
const HOUSEKEEPING: Nanos = Nanos::from_millis(500);
/// How often a worker yields at most after datagrams before it sleeps. That is 15 us if it has the
/// processor to itself. The time counts only where yields are slow.
const YIELDS: Yields = Yields { span: Duration::from_micros(300), count: 30, turn: TURN };
/// While only datagrams are awaited, one of this many looks is at everything.
const GLANCES: u32 = 4;
