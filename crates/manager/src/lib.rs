//! The aggregation manager: the one daemon that knows the fabric. It plans trees, admits jobs and
//! hands out quotas. No data pass through it, and a fabric whose manager is gone goes on working,
//! except for new jobs.
//!
//! ```text
//!   server       connections, one thread each
//!   desk         the same without connections and threads, in a time that is played
//!     conversations  what a node, a deputy and a user say, and what they are answered
//!     answers      what people are told: status, survey, one job in detail, figures
//!     admission    a request -> plan -> quota -> grants installed -> ticket; and the end of jobs
//!   fabric       all that the manager knows, which its threads share
//!     programs     ranks that look for each other, and who launched them
//!     records      the jobs that are admitted, those that are over, and the file of both
//!     nodes        which nodes are connected, and which of them do not answer
//!     tenancy      which tenant may use how much, and the line of jobs that wait
//!     planning     the trees, lanes and limits that a job gets
//!   error        why a manager does not start
//!   inputs       the files that are read once, at the start, and a check of them
//!   lock         locks that outlive a panic of a thread that had them
//!   names        names that programs give, made fit to be kept
//!   refuse       refusals that several of these give
//!   time         by what the manager decides that something has lasted too long
//! ```
//! Invariants: no lock is held while a socket or another side is waited for; whatever a connection
//! does, it costs others at most the memory of its own messages; a job ends when
//! the connection that asked for it says so, or, if that is gone, with its last rank.
#![forbid(unsafe_code)]

mod admission;
mod answers;
mod conversations;
mod desk;
mod error;
mod fabric;
mod inputs;
mod lock;
mod names;
mod nodes;
mod planning;
mod programs;
mod records;
mod refuse;
mod server;
mod tenancy;
mod time;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use trib_control::{Listener, Watchdog, notify};

pub use crate::answers::report::{Doors, ManagerReport};
pub use crate::conversations::user::Asker;
pub use crate::desk::{Connected, Desk, Kept};
pub use crate::error::Error;
use crate::fabric::Fabric;
pub use crate::inputs::{Checked, check};
use crate::inputs::{Inputs, Stamps};
pub use crate::nodes::session::Caller;
use crate::records::store::Store;
pub use crate::records::store::StoreError;
pub use crate::server::Observer;
use crate::server::Server;
pub use crate::tenancy::PolicyError;
pub use crate::time::Played;
use crate::time::Time;

/// How to start a manager.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address at which it listens. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// The topology file.
    pub topology: PathBuf,
    /// The folder of credentials, in which the manager's own files and `ca.pem` are read.
    pub credentials: PathBuf,
    /// The file in which admitted jobs are kept for the next manager. Without one they are
    /// forgotten with this manager.
    pub state: Option<PathBuf>,
    /// The file that says which tenant may use how much. Without one all tenants are alike.
    pub tenants: Option<PathBuf>,
    /// The file with the constants of predictions. Without one they are in [`CONSTANTS_FILE`] if
    /// that exists, and else defaults for servers hold.
    pub constants: Option<PathBuf>,
}

/// How long the thread that waits for signals sleeps, at most.
const GLANCE: Duration = Duration::from_secs(5);
/// The file with the constants of predictions, if no other is named.
pub const CONSTANTS_FILE: &str = "/etc/tributary/constants.toml";

/// Serves until SIGTERM or SIGINT, and reads the list of withdrawn certificates again on SIGHUP.
/// Tells the supervisor (`$NOTIFY_SOCKET`) when it is ready, and at
/// which address. Once the manager serves, `watch` is called, which can begin to observe it.
pub fn run(options: &Options, watch: impl FnOnce(Observer) -> io::Result<()>) -> Result<(), Error> {
    let signals = watch_signals()?;
    let manager = Manager::bind(options)?;
    watch(manager.observer()).map_err(Error::Thread)?;
    told(notify::ready(Some(manager.address())));
    tracing::info!(address = %manager.address(), "manager ready");
    let signal = wait(&manager, &signals);
    tracing::info!(?signal, "manager stopping");
    told(notify::stopping());
    manager.shutdown();
    Ok(())
}

/// Warns if the supervisor could not be told: the manager serves without it, too.
fn told<T>(told: io::Result<T>) {
    if let Err(error) = told {
        tracing::warn!(%error, "cannot tell the supervisor");
    }
}

/// The signals to a manager. They come from a thread of their own, which ends with the
/// process.
fn watch_signals() -> Result<Receiver<i32>, Error> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(Error::Signals)?;
    let (sender, receiver) = mpsc::channel();
    let forward = move || signals.forever().try_for_each(|signal| sender.send(signal));
    thread::Builder::new().name("signals".into()).spawn(forward).map_err(Error::Thread)?;
    Ok(receiver)
}

/// Waits for a signal. Meanwhile it tells the supervisor's watchdog that the manager is well, as
/// long as that is true.
fn wait(manager: &Manager, signals: &Receiver<i32>) -> Option<i32> {
    let mut watchdog = Watchdog::from_env(Instant::now());
    loop {
        manager.server.tell_held_back();
        let due = watchdog.as_ref().map_or(GLANCE, |watchdog| watchdog.due_in(Instant::now()).min(GLANCE));
        match signals.recv_timeout(due) {
            Ok(SIGHUP) => {
                manager.read_withdrawn();
                manager.tell_unread();
                continue;
            }
            Ok(signal) => return Some(signal),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let Some(watchdog) = watchdog.as_mut().filter(|watchdog| watchdog.due_in(Instant::now()).is_zero()) else {
            continue;
        };
        if !manager.is_well() {
            tracing::error!("the manager takes no connections any more: its supervisor is to restart it");
            return signals.recv().ok();
        }
        told(watchdog.feed(Instant::now()));
    }
}

/// A manager that serves in the background until it is shut down or dropped.
pub struct Manager {
    server: Server,
    /// The files that it has read for good.
    read: Stamps,
}

impl Manager {
    /// Reads topology and credentials and starts to serve.
    pub fn bind(options: &Options) -> Result<Self, Error> {
        let read = Stamps::of(options);
        let Inputs { topology, policy, constants } = Inputs::read(options)?;
        let listener = Listener::bind(options.listen, &options.credentials)?;
        let store = options.state.as_deref().map(Store::open).transpose().map_err(Error::State)?;
        tracing::info!(%constants, "predictions");
        let fabric = Arc::new(Fabric::new(topology, store, policy, constants, Time::default())?);
        admission::unheld::watch(&fabric).map_err(Error::Thread)?;
        nodes::watch::watch(&fabric.registry, &fabric.deputies).map_err(Error::Thread)?;
        let server = Server::start(listener, fabric)?;
        Ok(Manager { server, read })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// A handle with which other threads look at the manager.
    pub fn observer(&self) -> Observer {
        self.server.observer()
    }

    /// Whether it still takes connections and can reach all that it knows. If another thread keeps
    /// a lock for ever, this never returns.
    pub fn is_well(&self) -> bool {
        self.server.is_well()
    }

    /// Reads the list of withdrawn certificates again, and closes the connections that were made
    /// with one of them. If the list cannot be read, the one from before stays.
    pub fn read_withdrawn(&self) {
        self.server.read_withdrawn();
    }

    /// Tells in the log which of the files that are read at the start alone have changed since, for
    /// who believes that they are read again with the list of withdrawn certificates.
    fn tell_unread(&self) {
        for file in self.read.changed() {
            tracing::warn!(
                file = %file.display(),
                "this file has changed since the manager started, and is not read again: restart the manager, and running jobs go on"
            );
        }
    }

    /// Closes every connection and waits for the threads. Running jobs are not ended, because their
    /// nodes and ranks can do without a manager.
    pub fn shutdown(self) {
        drop(self);
    }
}
