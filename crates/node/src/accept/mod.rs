//! The acceptor: one thread that answers handshakes, knows which logical nodes are here, and hands each authenticated
//! connection to the worker that the logical node belongs to.
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
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use trib_wire::JobId;
use trib_wire::control::job::NodeGrant;
use trib_wire::control::reply::Refusal;

use crate::counters::{self, Counters};
use crate::mailbox::Mailbox;
use crate::worker::{Command, Key, WorkerHandle};
use callers::Callers;
use registry::Registry;

/// A message to the acceptor.
pub(crate) enum Request {
    /// Host a logical node; the answer says whether children may come now.
    Install(Box<NodeGrant>, Sender<Result<(), Refusal>>),
    /// The manager ended a job.
    End(JobId),
    /// A worker has removed a logical node.
    Gone(Key),
    /// Name the jobs that are here.
    Hosted(Sender<Vec<JobId>>),
    /// Count.
    Count(Sender<Counters>),
    /// End the thread.
    Stop,
}

/// The listening socket and its mailbox, before there are workers.
pub(crate) struct Door {
    poll: Poll,
    listener: TcpListener,
    mailbox: Receiver<Request>,
    /// Where children connect.
    pub address: SocketAddr,
    /// How others reach the acceptor.
    pub handle: Mailbox<Request>,
}

impl Door {
    /// Listens.
    pub(crate) fn open(listen: SocketAddr) -> io::Result<Door> {
        let poll = Poll::new()?;
        let (handle, mailbox) = Mailbox::new(poll.registry(), MAILBOX)?;
        let mut listener = TcpListener::bind(listen)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let address = listener.local_addr()?;
        Ok(Door { poll, listener, mailbox, address, handle })
    }

    /// Starts the thread; `left` hears of every job of which nothing is here any more.
    pub(crate) fn serve(
        self,
        workers: Vec<WorkerHandle>,
        memory: Option<u64>,
        left: Sender<JobId>,
    ) -> io::Result<JoinHandle<()>> {
        let mut acceptor = Acceptor {
            door: self,
            registry: Registry::default(),
            callers: Callers::default(),
            workers,
            memory,
            left,
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
    /// Most bytes of buffers for all jobs together.
    memory: Option<u64>,
    left: Sender<JobId>,
    /// Connections may wait that could not be accepted.
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
            // First, so that a child that follows its grant closely finds it.
            self.on_mail();
            if core::mem::take(&mut self.accept_again) {
                self.on_connections();
            }
            for event in &events {
                match event.token() {
                    MAILBOX => {}
                    LISTENER => self.on_connections(),
                    Token(token) => self.advance(token - FIRST_CALLER),
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
                    let _ = reply.send(self.install(*grant));
                }
                Request::End(job) => {
                    self.registry.end(job);
                    for worker in &self.workers {
                        worker.mailbox.post(Command::End(job));
                    }
                }
                Request::Gone(key) => {
                    if self.registry.remove(key) {
                        // Without a conversation with the manager nobody listens; the next one begins with all that is here.
                        let _ = self.left.send(key.0);
                    }
                }
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
        let chosen = (0..self.workers.len()).min_by_key(|w| self.registry.load_of(*w)).unwrap_or(0);
        let worker = self.workers[chosen].clone();
        worker.mailbox.post(Command::Install(Box::new(grant.clone()), Box::new(buffers)));
        parent::call(&grant, self.local_ip(), worker.clone());
        self.registry.insert(grant, chosen, worker.udp_port);
        Ok(())
    }

    /// The address that this process serves at, if it is a single one.
    fn local_ip(&self) -> Option<IpAddr> {
        Some(self.door.address.ip()).filter(|ip| !ip.is_unspecified())
    }

    fn on_connections(&mut self) {
        loop {
            match self.door.listener.accept() {
                Ok((stream, peer)) => {
                    if let Some(number) = self.callers.insert(stream, peer, self.door.poll.registry(), FIRST_CALLER) {
                        self.advance(number);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Out of descriptors, or the caller is gone already. Others may wait behind it, without another edge.
                    tracing::warn!(%error, "cannot accept a connection");
                    self.accept_again = true;
                    return;
                }
            }
        }
    }

    fn advance(&mut self, number: usize) {
        let Some((hello, peer, socket)) = self.callers.advance(number, &mut self.registry, self.door.poll.registry())
        else {
            return;
        };
        let key = (hello.job, hello.node);
        if let Some(worker) = self.registry.worker_of(key) {
            let datagrams = SocketAddr::new(peer.ip(), hello.udp_port);
            let link = usize::from(hello.child.0);
            self.workers[worker].mailbox.post(Command::LinkUp { key, link, socket, datagrams });
        }
    }
}

/// Adds one count of the acceptor's.
fn add(counters: &mut Counters, name: &str, count: u64) {
    counters::add(counters, name, count);
}

/// How long to wait for descriptors to come free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const MAILBOX: Token = Token(0);
const LISTENER: Token = Token(1);
const FIRST_CALLER: usize = 2;
