//! The process: its threads, and how they end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use trib_control::{ManagerUrl, Watchdog, notify};

use crate::Error;
use crate::accept::{Door, Request};
use crate::counters::Counters;
use crate::ending::Ending;
use crate::mailbox::Mailbox;
use crate::manager::{Manager, Who};
use crate::report::Observer;
use crate::rescue;
use crate::teller::{Threads, collect};
use crate::worker::{self, Command, WorkerHandle};

/// How to run a node.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name in the topology.
    pub name: String,
    /// The address and credentials for the manager.
    pub manager: ManagerUrl,
    /// The addresses at which it takes streams, at least one; port 0 means any port. Datagrams are
    /// taken at the same addresses, at ports that the kernel chooses. The unspecified address is
    /// for hosts with a single address.
    pub listen: Vec<SocketAddr>,
    /// The number of worker threads for each address, at least 1. A logical node uses one of them.
    pub workers: usize,
    /// The most bytes of buffers for all jobs together. With `None` only the system bounds them.
    pub memory: Option<u64>,
}

/// A running aggregation node. Dropping it ends it.
pub struct Node {
    addresses: Vec<SocketAddr>,
    acceptor: Mailbox<Request>,
    workers: Vec<WorkerHandle>,
    ending: Arc<Ending>,
    accepting: Option<JoinHandle<()>>,
    threads: Vec<JoinHandle<()>>,
    registered: Receiver<Result<(), Error>>,
}

impl Node {
    /// Starts the threads. It does not wait for the manager.
    ///
    /// # Errors
    /// If no worker or no address was asked for, if an address cannot be listened at, or if the
    /// system lacks threads or sockets.
    pub fn start(options: Options) -> Result<Node, Error> {
        if options.workers == 0 {
            return Err(Error::NoWorkers);
        }
        if options.listen.is_empty() {
            return Err(Error::NoAddress);
        }
        let door = Door::open(&options.listen)?;
        let (addresses, acceptor) = (door.addresses.clone(), door.handle.clone());
        let mut node = Node {
            addresses: addresses.clone(),
            acceptor: acceptor.clone(),
            workers: Vec::new(),
            ending: Arc::new(Ending::default()),
            accepting: None,
            threads: Vec::new(),
            registered: mpsc::channel().1,
        };
        let (news, told) = mpsc::channel();
        for number in 0..options.workers * addresses.len() {
            let acceptor = acceptor.clone();
            let tell = Box::new(move |request| acceptor.post(request));
            let ip = addresses[number % addresses.len()].ip();
            let (handle, thread) = worker::start(number, ip, tell, news.clone()).map_err(Error::Thread)?;
            node.workers.push(handle);
            node.threads.push(thread);
        }
        node.accepting = Some(door.serve(node.workers.clone(), options.memory, news).map_err(Error::Thread)?);
        let (registered, said) = mpsc::channel();
        node.registered = said;
        let manager = Manager {
            url: options.manager,
            who: Who::Node { name: options.name, addresses },
            threads: Threads { acceptor, workers: node.workers.clone() },
            ending: node.ending.clone(),
            registered,
            news: told,
        };
        let control = thread::Builder::new().name("control".into()).spawn(move || manager.run());
        node.threads.push(control.map_err(Error::Thread)?);
        Ok(node)
    }

    /// The address at which children connect, unless they are told another one of its addresses.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// All addresses at which children may connect, in the order of the options.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Waits until the manager has taken the node in for the first time. Returns `Ok(false)` when
    /// `patience` is over.
    ///
    /// # Errors
    /// If the manager does not want this node, or if its credentials are not those of the fabric.
    pub fn wait_registered(&self, patience: Duration) -> Result<bool, Error> {
        match self.registered.recv_timeout(patience) {
            Ok(outcome) => outcome.map(|()| true),
            Err(RecvTimeoutError::Timeout) => Ok(false),
            // The result was returned by an earlier call.
            Err(RecvTimeoutError::Disconnected) => Ok(true),
        }
    }

    /// Whether a thread has ended that should not have, which is an error in this program. Its jobs
    /// have lost their connections.
    pub fn is_broken(&self) -> bool {
        self.accepting.iter().chain(&self.threads).any(JoinHandle::is_finished)
    }

    /// Whether every thread that serves jobs has answered within `patience`.
    pub fn is_well(&self, patience: Duration) -> bool {
        let threads = self.workers.len() + 1;
        !self.is_broken() && self.asked().counters(patience).take(threads).count() == threads
    }

    /// What the node has counted so far.
    pub fn counters(&self) -> Counters {
        collect(&self.asked())
    }

    fn asked(&self) -> Threads {
        Threads { acceptor: self.acceptor.clone(), workers: self.workers.clone() }
    }

    /// A handle with which other threads look at the node.
    pub fn observer(&self) -> Observer {
        Observer { acceptor: self.acceptor.clone(), workers: self.workers.clone() }
    }

    /// Hosts a logical node that no manager has asked for. This is for tests, and for programs that
    /// are their own manager.
    ///
    /// # Errors
    /// If the grant cannot be kept.
    pub fn install(&self, grant: trib_messages::job::NodeGrant) -> Result<(), trib_messages::reply::Refusal> {
        let (reply, answer) = mpsc::channel();
        self.acceptor.post(Request::Install(Box::new(grant), reply));
        answer.recv().unwrap_or(Ok(()))
    }

    /// Ends a job, as the manager does.
    pub fn end_job(&self, job: trib_wire::JobId) {
        self.acceptor.post(Request::End(job));
    }

    /// Ends all threads. Jobs lose their connections.
    pub fn shutdown(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        // The thread that talks to the manager came last.
        self.ending.come(self.threads.last());
        // It tells the neighbours of its nodes where these are now, and ends the workers.
        self.acceptor.post(Request::Stop);
        if let Some(accepting) = self.accepting.take() {
            joined(accepting);
        }
        for worker in &self.workers {
            worker.mailbox.post(Command::Stop);
        }
        self.threads.drain(..).for_each(joined);
    }
}

fn joined(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the node panicked");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs a node until SIGTERM or SIGINT, and tells the supervisor when the manager has taken it in.
/// Once the node's threads run, `watch` is called, which can begin to observe them.
///
/// # Errors
/// Those of [`Node::start`] and [`Node::wait_registered`]; and an error if a thread has panicked.
pub fn run(options: Options, watch: impl FnOnce(Observer) -> io::Result<()>) -> Result<(), Error> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, ended.clone()).map_err(Error::Thread)?;
    }
    rescue::start().map_err(Error::Thread)?;
    let node = Node::start(options)?;
    watch(node.observer()).map_err(Error::Thread)?;
    let mut registered = false;
    let mut watchdog = Watchdog::from_env(Instant::now());
    while !ended.load(Ordering::Relaxed) {
        if let Some(watchdog) = &mut watchdog {
            report(&node, watchdog);
        }
        if registered {
            if node.is_broken() {
                return Err(Error::Broken);
            }
            thread::sleep(GLANCE);
        } else if node.wait_registered(GLANCE)? {
            registered = true;
            if let Err(error) = notify::ready(Some(node.address())) {
                tracing::warn!(%error, "cannot tell the supervisor");
            }
        }
    }
    if let Err(error) = notify::stopping() {
        tracing::warn!(%error, "cannot tell the supervisor");
    }
    node.shutdown();
    Ok(())
}

/// Tells the supervisor's watchdog that the node is well, when that is due and as long as it is
/// true.
fn report(node: &Node, watchdog: &mut Watchdog) {
    if !watchdog.due_in(Instant::now()).is_zero() {
        return;
    }
    if !node.is_well(ANSWER) {
        tracing::error!("a thread of the node does not answer");
    } else if let Err(error) = watchdog.feed(Instant::now()) {
        tracing::warn!(%error, "cannot tell the supervisor");
    }
}

/// How long a thread that is not stuck may take to answer.
const ANSWER: Duration = Duration::from_secs(1);
/// How often the thread looks for signals.
const GLANCE: Duration = Duration::from_millis(100);
