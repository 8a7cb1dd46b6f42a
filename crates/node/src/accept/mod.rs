//! The acceptor: one thread that answers handshakes, knows which logical nodes are here, and hands
//! each authenticated connection to the worker to which the logical node belongs.
//!
//! ```text
//!   manager --control--> Install --> acceptor --> worker (least loaded, for good)
//!   child   --TCP------> Hello ... Welcome ---- LinkUp --> that worker
//!   worker  ------------ Gone --> acceptor: the place is free
//!   acceptor -- thread --> parent's acceptor: Hello ... Welcome -- LinkUp --> that worker
//! ```

mod callers;
mod install;
mod parent;
mod registry;

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use trib_messages::job::NodeGrant;
use trib_messages::reply::Refusal;
use trib_wire::{ChildIndex, Epoch, JobId, Placement};

use crate::Error;
use crate::counters::{self, Counters};
use crate::mailbox::Mailbox;
use crate::news::News;
use crate::worker::{Command, Key, WorkerHandle, guard};
use callers::Callers;
use registry::{Move, Registry};

/// A message to the acceptor.
pub(crate) enum Request {
    /// Host a logical node. The answer says whether children may connect now.
    Install(Box<NodeGrant>, Sender<Result<(), Refusal>>),
    /// The manager ended a job.
    End(JobId),
    /// A worker has removed a logical node.
    Gone(Key),
    /// A child has sent its first frame of an epoch, so that it has heard that its connection is
    /// open.
    Spoke(Key, Epoch, ChildIndex),
    /// A logical node, or a neighbour of it, knows of this placement of its tree.
    Learn(Key, Placement),
    /// Answer with the jobs that are here.
    Hosted(Sender<Vec<JobId>>),
    /// Answer with the acceptor's counters.
    Count(Sender<Counters>),
    /// End the thread.
    Stop,
}

/// The listening sockets and the acceptor's mailbox, before there are workers.
pub(crate) struct Door {
    poll: Poll,
    listeners: Vec<TcpListener>,
    mailbox: Receiver<Request>,
    /// The address of each listener, where children connect.
    pub addresses: Vec<SocketAddr>,
    /// The mailbox through which other threads reach the acceptor.
    pub handle: Mailbox<Request>,
}

impl Door {
    /// Listens at all of these addresses.
    pub(crate) fn open(listen: &[SocketAddr]) -> Result<Door, Error> {
        let poll = Poll::new().map_err(Error::Thread)?;
        let (handle, mailbox) = Mailbox::new(poll.registry(), MAILBOX).map_err(Error::Thread)?;
        let (mut listeners, mut addresses) = (Vec::with_capacity(listen.len()), Vec::with_capacity(listen.len()));
        for (number, address) in listen.iter().copied().enumerate() {
            let unable = |cause| Error::Listen { address, cause };
            let mut listener = TcpListener::bind(address).map_err(unable)?;
            let token = Token(FIRST_LISTENER + number);
            poll.registry().register(&mut listener, token, Interest::READABLE).map_err(Error::Thread)?;
            addresses.push(listener.local_addr().map_err(unable)?);
            listeners.push(listener);
        }
        Ok(Door { poll, listeners, mailbox, addresses, handle })
    }

    /// Starts the thread. `news` gets every job of which nothing is here any more.
    pub(crate) fn serve(
        self,
        workers: Vec<WorkerHandle>,
        memory: Option<u64>,
        news: Sender<News>,
    ) -> io::Result<JoinHandle<()>> {
        let mut acceptor = Acceptor {
            door: self,
            registry: Registry::default(),
            callers: Callers::default(),
            workers,
            memory,
            news,
            accept_again: false,
            stopping: false,
        };
        thread::Builder::new().name("acceptor".into()).spawn(move || {
            if let Err(error) = acceptor.run() {
                tracing::error!(%error, "acceptor ends");
            }
        })
    }
}

struct Acceptor {
    door: Door,
    registry: Registry,
    callers: Callers,
    workers: Vec<WorkerHandle>,
    /// The most bytes of buffers for all jobs together.
    memory: Option<u64>,
    news: Sender<News>,
    /// Whether connections may wait that could not be accepted.
    accept_again: bool,
    stopping: bool,
}

impl Acceptor {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        while !self.stopping {
            let patience = match self.callers.patience(Instant::now()) {
                _ if self.accept_again => Some(ACCEPT_PAUSE),
                patience => patience,
            };
            match self.door.poll.poll(&mut events, patience) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            // Mail comes first, so that a child that follows its grant closely finds it.
            self.on_mail();
            if core::mem::take(&mut self.accept_again) {
                (0..self.door.listeners.len()).for_each(|listener| self.on_connections(listener));
            }
            let first_caller = self.first_caller();
            for event in &events {
                match event.token() {
                    MAILBOX => {}
                    Token(token) if token < first_caller => self.on_connections(token - FIRST_LISTENER),
                    Token(token) => self.advance(token - first_caller),
                }
            }
            self.callers.give_up(Instant::now());
        }
        Ok(())
    }

    fn on_mail(&mut self) {
        while let Ok(request) = self.door.mailbox.try_recv() {
            match request {
                Request::Install(grant, reply) => {
                    // The manager's channel may be gone by now.
                    let _ = reply.send(guard(|| self.install(*grant)).unwrap_or_else(|why| Err(install::broken(&why))));
                }
                Request::End(job) => {
                    for absent in self.registry.end(job) {
                        self.forget(absent);
                    }
                    for worker in &self.workers {
                        worker.mailbox.post(Command::End(job));
                    }
                }
                Request::Spoke(key, epoch, child) => self.registry.seat_is_taken(key, epoch, child),
                Request::Learn(key, placement) => {
                    self.registry.learn(key, &placement);
                    self.follow();
                }
                Request::Gone(key) => self.forget(key),
                Request::Hosted(reply) => {
                    let _ = reply.send(self.registry.jobs());
                }
                Request::Count(reply) => {
                    let mut counters = Counters::new();
                    self.callers.add_to(&mut counters);
                    let _ = reply.send(counters);
                }
                Request::Stop => self.stopping = true,
            }
        }
    }

    fn install(&mut self, grant: NodeGrant) -> Result<(), Refusal> {
        let Some(buffers) = install::prepare(&self.registry, &grant, self.memory)? else { return Ok(()) };
        let local = install::port(&self.door.addresses, &grant)?;
        let there = (0..self.workers.len()).filter(|worker| self.workers[*worker].ip == local);
        let chosen = there.min_by_key(|worker| self.registry.load_of(*worker)).unwrap_or(0);
        let worker = self.workers[chosen].clone();
        // A backup keeps the memory free and waits.
        if grant.candidate == 0 {
            worker.mailbox.post(Command::Install(Box::new(grant.clone()), Box::new(buffers)));
            parent::call(&grant, &Placement::FIRST, worker.clone());
        }
        self.registry.insert(grant, chosen, worker.udp_port);
        Ok(())
    }

    /// A logical node is not here any more.
    fn forget(&mut self, key: Key) {
        if self.registry.remove(key) {
            // Without a conversation with the manager nothing receives the news. The next
            // conversation begins with all that is here.
            let _ = self.news.send(News::Left(key.0));
        }
    }

    /// Carries out what follows from the placements that the registry has learnt: cores of earlier
    /// epochs end, and new ones begin where their logical nodes are here now.
    fn follow(&mut self) {
        for Move { key, grant, worker, placement, is_here } in self.registry.take_moves() {
            let worker = self.workers[worker].clone();
            tracing::warn!(
                job = grant.job.0,
                node = grant.name,
                lane = grant.lane,
                epoch = placement.epoch(grant.epoch).0,
                is_here,
                "the job's tree has another placement"
            );
            let host = is_here.then(|| Box::new(grant.clone()));
            worker.mailbox.post(Command::Move { key, placement: placement.clone(), host });
            if is_here {
                parent::call(&grant, &placement, worker);
            }
        }
    }

    fn first_caller(&self) -> usize {
        FIRST_LISTENER + self.door.listeners.len()
    }

    fn on_connections(&mut self, listener: usize) {
        let first_caller = self.first_caller();
        loop {
            match self.door.listeners[listener].accept() {
                Ok((stream, peer)) => {
                    if let Some(number) = self.callers.insert(stream, peer, self.door.poll.registry(), first_caller) {
                        self.advance(number);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // No descriptor is left, or the caller is gone already. Other callers may wait
                    // behind it, for which no further event comes.
                    tracing::warn!(%error, "cannot accept a connection");
                    self.accept_again = true;
                    return;
                }
            }
        }
    }

    fn advance(&mut self, number: usize) {
        let polled = self.door.poll.registry();
        // An error in handling what a caller sends may cost that caller its connection, and no
        // other.
        let opened = guard(|| self.callers.advance(number, &mut self.registry, polled)).unwrap_or_else(|why| {
            tracing::error!(why, "an error of this program's own ends a handshake, and nothing else; please report it");
            self.callers.drop_broken(number);
            None
        });
        // A child that brings news of a placement finds its node in that placement.
        self.follow();
        let Some((hello, peer, socket)) = opened.filter(|(hello, ..)| self.registry.is_of_today(hello)) else { return };
        let key = (hello.job, hello.node);
        if let Some(worker) = self.registry.worker_of(key) {
            let datagrams = SocketAddr::new(peer.ip(), hello.udp_port);
            let link = usize::from(hello.child.0);
            self.workers[worker].mailbox.post(Command::LinkUp { key, epoch: hello.epoch, link, socket, datagrams });
        }
    }
}

/// Adds one of the acceptor's counts.
fn add(counters: &mut Counters, name: &str, count: u64) {
    counters::add(counters, name, count);
}

/// How long to wait until descriptors may be free again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const MAILBOX: Token = Token(0);
const FIRST_LISTENER: usize = 1;
