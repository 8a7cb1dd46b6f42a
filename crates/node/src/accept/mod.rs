//! The acceptor: one thread that answers handshakes, knows which logical nodes are here, and hands
//! each authenticated connection to the worker to which the logical node belongs.
//!
//! ```text
//!   manager --control--> Install --> acceptor --> worker (least loaded, for good)
//!   child   --TCP------> Hello ... Welcome ---- LinkUp --> that worker
//!   worker  ------------ Gone --> acceptor: its seat is free
//!   acceptor -- thread --> parent's acceptor: Hello ... Welcome
//!                      --> acceptor -- LinkUp --> that worker
//! ```

mod callers;
mod calls;
mod chronicle;
mod install;
mod probes;
mod registry;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use trib_messages::job::NodeGrant;
use trib_messages::recovery::{EpochPart, Replayed};
use trib_messages::reply::Refusal;
use trib_proto::node::Link;
use trib_transport::memory::Door as NearDoor;
use trib_transport::tcp::handshake::nonce;
use trib_transport::tcp::{HandshakeError, StreamSocket};
use trib_wire::auth::FrameKey;
use trib_wire::{ChildIndex, Epoch, JobId, NodeId, Placement};

use crate::Error;
use crate::counters::{self, Counters};
use crate::job::{Buffers, Opened, PARENT};
use crate::mailbox::Mailbox;
use crate::news::News;
use crate::worker::{Command, Key, WorkerHandle, guard};
use callers::Callers;
pub(crate) use calls::Called;
use registry::{Call, Purpose, Registry, Step, Tree};

/// A message to the acceptor.
pub(crate) enum Request {
    /// Host a logical node. The answer says whether children may connect now.
    Install(Box<NodeGrant>, Sender<Result<(), Refusal>>),
    /// The manager ended a job.
    End(JobId),
    /// A worker has removed a logical node.
    Gone(Key),
    /// The far end of a link has sent its first frame of an epoch, so that it has heard that its
    /// connection is open.
    Spoke(Key, Epoch, Link),
    /// A neighbour of a logical node knows of this placement of its tree.
    Learn(Key, Placement),
    /// A logical node has found, in the epoch of its core, that this neighbour is gone.
    Suspect(Key, Epoch, NodeId),
    /// A core of a tree has ended that has replayed something in the epoch of this placement.
    Replayed { tree: Tree, placement: Placement, replayed: Replayed },
    /// The process of a child is gone that has not called in this epoch.
    ChildGone { key: Key, epoch: Epoch, child: ChildIndex },
    /// A call to another process has ended.
    Called(Box<Called>),
    /// Answer with the jobs that are here.
    Hosted(Sender<Vec<JobId>>),
    /// Answer with the last epochs of a job's trees.
    Epochs(JobId, Sender<Vec<EpochPart>>),
    /// Answer with what cores that have ended have replayed, by job.
    ReplayedBefore(Sender<BTreeMap<JobId, Replayed>>),
    /// Answer with the acceptor's counters.
    Count(Sender<Counters>),
    /// The process is about to leave: see [`Command::SeeOut`].
    SeeOut(Sender<()>),
    /// Leave all jobs, and end the workers and this thread.
    Stop,
}

/// The listening sockets and the acceptor's mailbox, before there are workers.
pub(crate) struct Door {
    poll: Poll,
    listeners: Vec<TcpListener>,
    /// Where children of this host call that can share memory, and the address that it stands for.
    near: Option<(NearDoor, SocketAddr)>,
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
        Ok(Door { poll, listeners, near: None, mailbox, addresses, handle })
    }

    /// Takes calls of this host's processes, too, which know this process by `address`.
    pub(crate) fn share_at(&mut self, address: SocketAddr) -> io::Result<()> {
        let mut door = NearDoor::open(address)?;
        let token = Token(FIRST_LISTENER + self.listeners.len());
        self.poll.registry().register(&mut door, token, Interest::READABLE)?;
        self.near = Some((door, address));
        Ok(())
    }

    /// Starts the thread. `news` gets every job of which nothing is here any more.
    pub(crate) fn serve(
        self,
        workers: Vec<WorkerHandle>,
        memory: Option<u64>,
        news: Sender<News>,
    ) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name("acceptor".into()).spawn(move || self.accept(workers, memory, news, Vec::new()))
    }

    /// Waits until somebody connects. Returns false if the thread is to end instead.
    pub(crate) fn wait(&mut self) -> io::Result<bool> {
        let mut events = Events::with_capacity(8);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            // Any other request is about a logical node that is not here.
            if self.mailbox.try_iter().any(|request| matches!(request, Request::Stop)) {
                return Ok(false);
            }
            if events.iter().any(|event| event.token() != MAILBOX) {
                return Ok(true);
            }
        }
    }

    /// Answers the callers that have connected and those that will, until it is told to stop. The
    /// logical nodes of these grants are here from the beginning.
    pub(crate) fn accept(
        self,
        workers: Vec<WorkerHandle>,
        memory: Option<u64>,
        news: Sender<News>,
        grants: Vec<NodeGrant>,
    ) {
        let (registry, callers) = (Registry::default(), Callers::default());
        // What has connected before this thread looked is told by no event.
        let accept_again = Some(Duration::ZERO);
        let mut acceptor =
            Acceptor { door: self, registry, callers, workers, memory, news, accept_again, stopping: false };
        for grant in grants {
            let name = grant.name.clone();
            if let Err(refusal) = guard(|| acceptor.install(grant)).unwrap_or_else(|why| Err(install::broken(&why))) {
                tracing::warn!(node = name, %refusal, "this process cannot host a node of its job");
            }
        }
        if let Err(error) = acceptor.run() {
            tracing::error!(%error, "acceptor ends");
        }
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
    /// Connections may wait that were not accepted: how long until they are asked for again.
    accept_again: Option<Duration>,
    stopping: bool,
}

impl Acceptor {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        while !self.stopping {
            let due = [self.callers.patience(Instant::now()), self.registry.patience()];
            let patience = due.into_iter().chain([self.accept_again]).flatten().min();
            match self.door.poll.poll(&mut events, patience) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            // Mail comes first, so that a child that follows its grant closely finds it.
            self.on_mail();
            self.follow(None);
            if self.accept_again.take().is_some() {
                (0..=self.door.listeners.len()).for_each(|listener| self.on_connections(listener));
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
            self.follow(None);
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
                    // A core that has left tells where the tree is before it is forgotten.
                    self.follow(None);
                    for absent in self.registry.end(job) {
                        self.forget(absent);
                    }
                    for worker in &self.workers {
                        worker.mailbox.post(Command::End(job));
                    }
                }
                Request::Spoke(key, epoch, link) => self.registry.spoke(key, epoch, link),
                Request::Learn(key, placement) => self.registry.learn(key, &placement),
                Request::Suspect(key, epoch, node) => self.registry.suspect(key, epoch, node),
                Request::Replayed { tree, placement, replayed } => self.registry.replayed(tree, &placement, replayed),
                Request::ChildGone { key, epoch, child } => self.on_child_gone(key, epoch, child),
                Request::Called(called) => self.on_called(*called),
                Request::Gone(key) => self.forget(key),
                Request::Hosted(reply) => {
                    let _ = reply.send(self.registry.jobs());
                }
                Request::Epochs(job, reply) => {
                    let _ = reply.send(self.registry.epochs(job));
                }
                Request::ReplayedBefore(reply) => {
                    let _ = reply.send(self.registry.replayed_before());
                }
                Request::Count(reply) => {
                    let mut counters = Counters::new();
                    self.callers.add_to(&mut counters);
                    let epochs = self.registry.epoch_tally();
                    add(&mut counters, "epochs_found", epochs.found);
                    add(&mut counters, "epochs_told", epochs.told);
                    let _ = reply.send(counters);
                }
                Request::SeeOut(waits) => {
                    self.workers.iter().for_each(|worker| worker.mailbox.post(Command::SeeOut(waits.clone())));
                }
                Request::Stop => self.leave(),
            }
        }
    }

    fn install(&mut self, grant: NodeGrant) -> Result<(), Refusal> {
        let Some(buffers) = install::prepare(&self.registry, &grant, self.memory)? else { return Ok(()) };
        let local = install::port(&self.door.addresses, &grant)?;
        let there = (0..self.workers.len()).filter(|worker| self.workers[*worker].ip == local);
        let chosen = there.min_by_key(|worker| self.registry.load_of(*worker)).unwrap_or(0);
        let ucx = install::ucx(&self.workers[chosen], &grant)?;
        let udp_port = self.workers[chosen].udp_port;
        let key = (grant.job, grant.node);
        let drawn = nonce().map_err(|error| install::broken(&error.to_string()))?;
        self.registry.insert(grant, chosen, udp_port, ucx, drawn);
        self.follow(Some((key, buffers)));
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

    /// Carries out what follows from what the registry has learnt: cores of earlier epochs end, new
    /// ones begin where their logical nodes are here now, and calls are made. `reserved` is the
    /// memory of a logical node that has just been installed.
    fn follow(&mut self, mut reserved: Option<(Key, Buffers)>) {
        // A call that has taken too long leads to another placement.
        let calls = self.registry.take_calls();
        for step in self.registry.take_steps() {
            match step {
                Step::Leave { key, worker, placement } => {
                    self.workers[worker].mailbox.post(Command::Leave { key, placement });
                }
                Step::Begin { grant, worker, placement, results } => {
                    let reserved = reserved.take_if(|(key, _)| *key == (grant.job, grant.node));
                    let own = (reserved.map(|(_, buffers)| buffers), results);
                    self.begin(*grant, worker, placement, own);
                }
                Step::Forget(key) => self.forget(key),
            }
        }
        for call in calls.into_iter().chain(self.registry.take_calls()) {
            calls::make(call.clone(), &self.workers[call.worker], self.door.handle.clone());
        }
    }

    fn begin(
        &mut self,
        grant: NodeGrant,
        worker: usize,
        placement: Placement,
        (buffers, results): (Option<Buffers>, FrameKey),
    ) {
        if placement != Placement::FIRST {
            let epoch = placement.epoch(grant.epoch).0;
            tracing::warn!(job = grant.job.0, node = grant.name, lane = grant.lane, epoch, "a logical node comes here");
            probes::watch(&grant, &placement, self.door.handle.clone());
        }
        let host = Command::Host(Box::new(grant.clone()), placement.clone(), buffers.map(Box::new), results);
        self.workers[worker].mailbox.post(host);
        if !grant.recovers && grant.parent.is_some() {
            let (candidate, purpose, patience) = (0, Purpose::Parent, PATIENCE);
            let call = Call { grant, worker, placement, candidate, purpose, patience };
            calls::make(call, &self.workers[worker], self.door.handle.clone());
        }
    }

    fn on_child_gone(&mut self, key: Key, epoch: Epoch, child: ChildIndex) {
        if let Some((_, worker)) = self.registry.find(key) {
            self.workers[worker].mailbox.post(Command::ChildGone { key, epoch, child });
        }
    }

    fn on_called(&mut self, Called { key, placement, purpose, candidate, outcome }: Called) {
        // A process that has another placement by now has closed its end, or is about to.
        if !self.registry.hosts(key, &placement) {
            return;
        }
        let Some((grant, worker)) = self.registry.find(key) else { return };
        let (epoch, recovers, worker) = (placement.epoch(grant.epoch), grant.recovers, &self.workers[worker].mailbox);
        match (purpose, outcome) {
            (Purpose::Parent, Ok(open)) => {
                let opened = Opened {
                    socket: open.socket,
                    datagrams: open.datagrams,
                    results: Some(open.results),
                    session: open.session,
                    apart: false,
                };
                worker.post(Command::LinkUp { key, epoch, link: PARENT, opened });
                self.registry.accepted(key);
            }
            (Purpose::Parent, Err(error)) if !recovers => worker.post(Command::ParentFailed { key, epoch, error }),
            (Purpose::Parent, Err(HandshakeError::Moved(placement))) => self.registry.learn(key, &placement),
            (Purpose::Parent, Err(error)) => {
                let (job, node, lane) = (grant.job.0, &grant.name, grant.lane);
                tracing::warn!(job, node, lane, candidate, %error, "the node above is not there");
                self.registry.call_failed(key, epoch);
            }
            (Purpose::Candidate, Err(HandshakeError::Moved(placement))) => {
                self.registry.answered(key, candidate, &placement);
            }
            // It is told again.
            (Purpose::Candidate, _) => {}
        }
    }

    /// The process leaves all jobs. Neighbours hear where their nodes are now, so that they need
    /// not find out. What follows is the workers' last order.
    fn leave(&mut self) {
        self.registry.leave();
        self.follow(None);
        for worker in &self.workers {
            worker.mailbox.post(Command::Stop);
        }
        self.stopping = true;
    }

    fn first_caller(&self) -> usize {
        FIRST_LISTENER + self.door.listeners.len() + 1
    }

    /// The next connection to a listener; the one behind them all is the door of this host.
    fn next_connection(&self, listener: usize) -> io::Result<(StreamSocket, SocketAddr)> {
        match (self.door.listeners.get(listener), &self.door.near) {
            (Some(listener), _) => {
                let (stream, peer) = listener.accept()?;
                // A listener for both families shows an IPv4 address as a mapped one. Datagrams
                // come from the address itself.
                let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                Ok((StreamSocket::from_mio(stream)?, peer))
            }
            (None, Some((door, address))) => Ok((StreamSocket::near(door.accept()?), *address)),
            (None, None) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn on_connections(&mut self, listener: usize) {
        let first_caller = self.first_caller();
        for _ in 0..ACCEPTS {
            match self.next_connection(listener) {
                Ok((socket, peer)) => {
                    if let Some(number) = self.callers.insert(socket, peer, self.door.poll.registry(), first_caller) {
                        self.advance(number);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    if self.callers.log.may("another user", Instant::now()) {
                        tracing::info!(%error, "a call was turned away");
                    }
                }
                Err(error) => {
                    // No descriptor is left, or the caller is gone already. Other callers may wait
                    // behind it, for which no further event comes.
                    if self.callers.log.may("not accepted", Instant::now()) {
                        tracing::warn!(%error, "cannot accept a connection");
                    }
                    return self.accept_after(ACCEPT_PAUSE);
                }
            }
        }
        // Others may go on calling for ever. Mail and handshakes come between.
        self.accept_after(Duration::ZERO);
    }

    /// Connections may wait, which are asked for again after this pause or earlier.
    fn accept_after(&mut self, pause: Duration) {
        self.accept_again = Some(self.accept_again.map_or(pause, |earlier| earlier.min(pause)));
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
        self.follow(None);
        let Some((hello, peer, socket, session)) = opened.filter(|(hello, ..)| self.registry.is_of_today(hello)) else {
            return;
        };
        let key = (hello.job, hello.node);
        if let Some((_, worker)) = self.registry.find(key) {
            let datagrams = SocketAddr::new(peer.ip(), hello.udp_port);
            let link = usize::from(hello.child.0);
            let would_share = |(_, address): &(NearDoor, SocketAddr)| address.ip() == peer.ip();
            let apart = !socket.is_near() && self.door.near.as_ref().is_some_and(would_share);
            let opened = Opened { socket, datagrams, results: None, session, apart };
            self.workers[worker].mailbox.post(Command::LinkUp { key, epoch: hello.epoch, link, opened });
        }
    }
}

/// Adds one of the acceptor's counts.
fn add(counters: &mut Counters, name: &str, count: u64) {
    counters::add(counters, name, count);
}

/// How long the node above may take to know a job that does not go on when a node dies.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait until descriptors may be free again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How many connections to one listener are accepted in a round.
const ACCEPTS: usize = 64;
const MAILBOX: Token = Token(0);
const FIRST_LISTENER: usize = 1;
