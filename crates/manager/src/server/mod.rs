//! Connections and their threads.
//!
//! ```text
//!   node       that of a node
//!   deputy     that of a rank that hosts nodes of its job
//!   user       that of a user
//!   observer   a look at all this from outside
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use trib_control::clock::unix_ms;
use trib_control::{Certificate, Channel, Error as ControlError, HANDSHAKE, Listener, Pending, Sparing};
use trib_messages::hello::Role;
use trib_messages::reply::{Refusal, Reply, Resource};
use trib_wire::ids::JobId;

use crate::Error;
use crate::answers::report::Doors;
use crate::conversations::user::leave;
use crate::fabric::Fabric;
use crate::nodes::session::Caller;
use crate::refuse::{lasting, refuse, too_much};

mod deputy;
mod guests;
mod node;
mod observer;
mod pace;
mod strangers;
mod user;

use self::guests::{ESTABLISHED_MAX, Entered, Guests};
pub use self::observer::Observer;
use self::pace::Pace;
use self::strangers::Strangers;

/// A listening manager.
pub(crate) struct Server {
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

pub(crate) struct Shared {
    listener: Listener,
    pub fabric: Arc<Fabric>,
    connections: Mutex<Connections>,
    moved: Condvar,
    pace: Pace,
    /// What strangers make the manager log.
    pub(crate) log: Sparing,
}

#[derive(Default)]
struct Connections {
    stopping: bool,
    // The connections in their handshake.
    strangers: Strangers,
    // The connections that are established. Their threads hold the channels.
    established: Guests,
    // How many were not let in, by the kind of their failure.
    rejected: BTreeMap<&'static str, u64>,
    // When the last of them came, milliseconds since 1970-01-01 UTC. There has been no room since
    // then, if there is none.
    last_came_ms: u64,
}

impl Server {
    /// Serves from now on.
    pub(crate) fn start(listener: Listener, fabric: Arc<Fabric>) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            listener,
            fabric,
            connections: Mutex::default(),
            moved: Condvar::new(),
            pace: Pace::default(),
            log: Sparing::new(),
        });
        let accepting = {
            let shared = shared.clone();
            spawn("accept", move || accept(&shared)).map_err(Error::Thread)?
        };
        Ok(Server { shared, accepting: Some(accepting) })
    }

    /// The address at which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.shared.listener.address()
    }

    /// A handle with which other threads look at the fabric and the connections.
    pub(crate) fn observer(&self) -> Observer {
        Observer(Arc::downgrade(&self.shared))
    }

    /// Whether connections are still accepted and no lock is kept for ever. If a lock is, this
    /// never returns.
    pub(crate) fn is_well(&self) -> bool {
        let Shared { fabric, .. } = &*self.shared;
        fabric.touch();
        let accepts = self.accepting.as_ref().is_some_and(|accepting| !accepting.is_finished());
        accepts && !self.shared.is_stopping()
    }
}

impl Server {
    /// Tells in the log what was held back of what strangers did.
    pub(crate) fn tell_held_back(&self) {
        self.shared.log.tell(Instant::now());
    }

    /// Reads the list of withdrawn certificates again, and tells those that are connected with one
    /// of them why they have to go. Their jobs go on without the manager.
    pub(crate) fn read_withdrawn(&self) {
        let listener = &self.shared.listener;
        match listener.read_withdrawn() {
            Ok(count) => tracing::info!(count, "the list of withdrawn certificates is read"),
            Err(error) => {
                tracing::error!(%error, "the list of withdrawn certificates stays as it was");
                return;
            }
        }
        let withdrawn = self.shared.lock().established.with(|certificate| listener.is_withdrawn(certificate));
        for (certificate, channel) in withdrawn {
            tracing::warn!(peer = %channel.peer().address, %certificate, "the certificate was withdrawn; the connection is closed");
            let inner = channel.clone();
            // Each has a thread, because one that does not read must not keep the others.
            if spawn("farewell", move || dismiss(&inner)).is_err() {
                channel.close();
            }
        }
    }
}

/// Closes a connection whose certificate was withdrawn, with a last word.
fn dismiss(channel: &Channel) {
    // The other side may be gone, or not read.
    let _ = channel.send(&Reply::Refused(withdrawal(&channel.peer().certificate)));
    channel.close();
}

fn withdrawal(Certificate { holder, serial, .. }: &Certificate) -> Refusal {
    let text = format!(
        "the certificate of {holder}, serial {serial}, was withdrawn: ask the operator of the fabric for a new one"
    );
    refuse(Resource::Role, Some(&holder.to_string()), text)
}

impl Drop for Server {
    fn drop(&mut self) {
        {
            let mut connections = self.shared.lock();
            connections.stopping = true;
            connections.established.channels().for_each(|channel| channel.close());
        }
        self.shared.moved.notify_all();
        self.shared.listener.close();
        if let Some(accepting) = self.accepting.take() {
            // A panic there has been reported already.
            let _ = accepting.join();
        }
        let busy =
            |connections: &mut Connections| connections.strangers.len() > 0 || !connections.established.is_empty();
        // No thread waits longer than this for anything, except for a status of stuck nodes.
        let waited = self.shared.moved.wait_timeout_while(self.shared.lock(), HANDSHAKE, busy);
        drop(waited);
        // A moment later the threads let go of the fabric, and with it of the file of jobs.
        let end = Instant::now() + LAST_WORD;
        while Arc::strong_count(&self.shared) > 1 && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // A handshake begins; too many others give way. Returns its number, or `None` if the manager
    // stops.
    fn begin_handshake(&self, pending: &Pending) -> Option<u64> {
        let mut connections = self.lock();
        // Without a second handle it cannot be made to give way, and ends by its time limit.
        let number = connections.strangers.enter(pending.address().ip(), pending.handle().ok());
        if connections.stopping {
            connections.strangers.leave(number);
            return None;
        }
        Some(number)
    }

    fn end_handshake(&self, number: u64) {
        self.lock().strangers.leave(number);
        self.moved.notify_all();
    }

    // A connection has not proven that it may come in.
    fn fail_handshake(&self, number: u64, kind: &'static str) {
        *self.lock().rejected.entry(kind).or_default() += 1;
        self.end_handshake(number);
    }

    // Makes a connection an established one. Returns `None` if there is no room for it, or if the
    // manager stops.
    fn establish(&self, number: u64, channel: &Arc<Channel>) -> Option<(Established<'_>, Arc<AtomicBool>)> {
        let mut connections = self.lock();
        connections.strangers.leave(number);
        self.moved.notify_all();
        if connections.stopping {
            return None;
        }
        let Entered { number, engaged, instead_of } = connections.established.enter(channel.peer(), channel)?;
        connections.last_came_ms = unix_ms();
        instead_of.iter().for_each(|idle| idle.close());
        Some((Established { shared: self, number }, engaged))
    }

    /// The figures now. Every kind of failure is there, from 0 on.
    pub(crate) fn doors(&self) -> Doors {
        let connections = self.lock();
        let mut rejected: BTreeMap<_, _> = ControlError::KINDS.into_iter().map(|kind| (kind, 0)).collect();
        rejected.extend(&connections.rejected);
        Doors {
            established: connections.established.len(),
            handshaking: connections.strangers.len(),
            rejected,
            withdrawn: self.listener.withdrawn(),
        }
    }

    fn is_stopping(&self) -> bool {
        self.lock().stopping
    }
}

fn accept(shared: &Arc<Shared>) {
    while !shared.is_stopping() {
        match shared.listener.accept() {
            Ok(pending) => {
                let Some(number) = shared.begin_handshake(&pending) else { continue };
                let inner = shared.clone();
                if let Err(cause) = spawn("connection", move || receive(&inner, number, pending)) {
                    if shared.log.may("without a thread", Instant::now()) {
                        tracing::error!(%cause, "cannot start a thread for a connection");
                    }
                    shared.end_handshake(number);
                }
            }
            Err(_) if shared.is_stopping() => {}
            Err(error) => {
                // Most likely no file descriptor is left. Some will be free again.
                if shared.log.may("not accepted", Instant::now()) {
                    tracing::error!(%error, "cannot accept");
                }
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

fn receive(shared: &Shared, number: u64, pending: Pending) {
    let peer = pending.address();
    let channel = match pending.establish(HANDSHAKE) {
        Ok(channel) => Arc::new(channel),
        Err(error) => {
            shared.fail_handshake(number, error.kind());
            if shared.log.may(error.kind(), Instant::now()) {
                tracing::warn!(%peer, %error, "connection not let in");
            }
            return;
        }
    };
    let Some((connection, engaged)) = shared.establish(number, &channel) else {
        turn_away(shared, &channel);
        return;
    };
    // It may have been withdrawn between the handshake and now, when the list was read.
    if shared.listener.is_withdrawn(&channel.peer().certificate) {
        dismiss(&channel);
        return;
    }
    if let Err(error) = serve(shared, &channel, &engaged)
        && shared.log.may("ended with an error", Instant::now())
    {
        tracing::info!(%peer, %error, "connection ended");
    }
    drop(connection);
}

fn serve(shared: &Shared, channel: &Arc<Channel>, engaged: &AtomicBool) -> Result<(), ControlError> {
    if channel.peer().role() == Role::Node {
        return node::serve(&shared.fabric, &shared.log, channel.clone());
    }
    let mut held = Held { shared, jobs: Vec::new() };
    user::serve(shared, channel, engaged, &mut held.jobs)
}

// What a connection owns is given back when its thread ends, however it ends: a manager that lost a
// thread to a bug must not lose jobs and room with it.
struct Established<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Established<'_> {
    fn drop(&mut self) {
        self.shared.lock().established.leave(self.number);
        self.shared.moved.notify_all();
    }
}

struct Held<'a> {
    shared: &'a Shared,
    jobs: Vec<JobId>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // A manager that stops loses all connections. The jobs go on, and the next manager adopts
        // them.
        if self.shared.is_stopping() {
            return;
        }
        leave(&self.shared.fabric, &mut self.jobs);
    }
}

/// Who is at the other end of a channel.
fn caller(channel: &Arc<Channel>) -> Caller {
    let peer = channel.peer();
    let inner = channel.clone();
    Caller {
        address: peer.address,
        node: peer.node().map(str::to_owned),
        software: peer.software.clone(),
        certificate_ends: peer.certificate.ends,
        hang_up: Box::new(move || inner.close()),
    }
}

fn turn_away(shared: &Shared, channel: &Channel) {
    let text = format!(
        "the manager has as many connections of this tenant or address as it takes (it serves {ESTABLISHED_MAX} in all), or it is stopping: end some, or try again later"
    );
    let refusal = too_much(Resource::Connections, ESTABLISHED_MAX as u64 + 1, ESTABLISHED_MAX as u64, text);
    let refusal = lasting(refusal, shared.lock().last_came_ms);
    shared.fabric.ledger.refuse(&refusal);
    // `Refused` has the same form in both conversations. A peer that does not read it finds a
    // closed channel.
    if channel.send(&Reply::Refused(refusal)).is_ok() {
        channel.finish(LAST_WORD);
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).stack_size(STACK).spawn(work)
}

const LAST_WORD: Duration = Duration::from_secs(1);
const STACK: usize = 512 << 10;
