//! A rank that may host logical nodes of its own job: it listens, and does no more until somebody
//! calls.
//!
//! It is the acceptor and one worker of a node, without a manager. Its grants come with the job's
//! ticket, and it ends with the rank. Until somebody calls it is one thread that sleeps.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use trib_messages::job::NodeGrant;

use crate::Error;
use crate::accept::{Door, Request};
use crate::mailbox::Mailbox;
use crate::worker::{self, Command};

/// A rank that listens. Calls wait in the kernel until it serves.
pub struct Deputy {
    door: Door,
}

impl Deputy {
    /// Listens at a free port of this address.
    ///
    /// # Errors
    /// If the system has no port or no descriptor left.
    pub fn listen(address: IpAddr) -> Result<Deputy, Error> {
        Ok(Deputy { door: Door::open(&[SocketAddr::new(address, 0)])? })
    }

    /// The port at which it listens.
    pub fn port(&self) -> u16 {
        self.door.addresses[0].port()
    }

    /// Starts the thread, which waits until one of these logical nodes is called.
    ///
    /// # Errors
    /// If the system lacks threads.
    pub fn serve(self, grants: Vec<NodeGrant>) -> Result<Serving, Error> {
        let acceptor = self.door.handle.clone();
        let serve = move || {
            if let Err(error) = host(self.door, grants) {
                tracing::error!(%error, "this rank hosts no nodes of its job any more");
            }
        };
        let thread = thread::Builder::new().name("deputy".into()).spawn(serve).map_err(Error::Thread)?;
        Ok(Serving { acceptor, thread: Some(thread) })
    }
}

/// Waits for the first call, and then hosts what is called.
fn host(mut door: Door, grants: Vec<NodeGrant>) -> io::Result<()> {
    if !door.wait()? {
        return Ok(());
    }
    // Nobody is told what becomes of jobs: the rank is in the only one, and notices.
    let (news, _) = mpsc::channel();
    let (address, acceptor) = (door.addresses[0], door.handle.clone());
    let tell = Box::new(move |request| acceptor.post(request));
    let (worker, thread) = worker::start(0, address.ip(), tell, news.clone())?;
    door.accept(vec![worker.clone()], None, news, grants);
    worker.mailbox.post(Command::Stop);
    if thread.join().is_err() {
        tracing::error!("a thread of the node panicked");
    }
    Ok(())
}

/// A rank that hosts what it is called for. Dropping it ends that: neighbours find their
/// connections closed, and go to the next candidate.
pub struct Serving {
    acceptor: Mailbox<Request>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.acceptor.post(Request::Stop);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a thread of the node panicked");
        }
    }
}
