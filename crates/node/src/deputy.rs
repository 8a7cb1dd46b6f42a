//! A rank that may host logical nodes of its own job: it listens, and does no more until somebody
//! calls.
//!
//! It is the acceptor and one worker of a node. Its grants come with the job's ticket, and it ends
//! with the rank. Until somebody calls it is one thread that sleeps. From then on a thread of its
//! own talks to the manager, if that is there, so that people see where the job's nodes are.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use trib_control::ManagerUrl;
use trib_messages::job::NodeGrant;
use trib_messages::request::ServeRequest;

use crate::Error;
use crate::accept::{Door, Request};
use crate::ending::Ending;
use crate::mailbox::Mailbox;
use crate::manager::{Manager, Who};
use crate::teller::Threads;
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

    /// Takes calls of other ranks on this host as well, which share memory with this one from then
    /// on. They know it by `address`. Where that cannot be had, they call by TCP as others do.
    pub fn share_at(&mut self, address: SocketAddr) {
        if let Err(cause) = self.door.share_at(address) {
            tracing::info!(%cause, "this rank shares no memory");
        }
    }

    /// The port at which it listens.
    pub fn port(&self) -> u16 {
        self.door.addresses[0].port()
    }

    /// Starts the thread, which waits until one of these logical nodes is called. From then on the
    /// manager is `told` what is hosted here.
    ///
    /// # Errors
    /// If the system lacks threads.
    pub fn serve(self, grants: Vec<NodeGrant>, told: Told) -> Result<Serving, Error> {
        let acceptor = self.door.handle.clone();
        let serve = move || {
            if let Err(error) = host(self.door, grants, told) {
                tracing::error!(%error, "this rank hosts no nodes of its job any more");
            }
        };
        let thread = thread::Builder::new().name("deputy".into()).spawn(serve).map_err(Error::Thread)?;
        Ok(Serving { acceptor, thread: Some(thread) })
    }
}

/// Waits for the first call, and then hosts what is called.
fn host(mut door: Door, grants: Vec<NodeGrant>, Told { url, request }: Told) -> io::Result<()> {
    if !door.wait()? {
        return Ok(());
    }
    let (news, receiver) = mpsc::channel();
    let (address, acceptor) = (door.addresses[0], door.handle.clone());
    let mail = acceptor.clone();
    let tell = Box::new(move |request| mail.post(request));
    let (worker, thread) = worker::start(0, address.ip(), tell, news.clone())?;
    let ending = Arc::new(Ending::default());
    let manager = Manager {
        url,
        who: Who::Deputy(request),
        threads: Threads { acceptor, workers: vec![worker.clone()] },
        ending: ending.clone(),
        // Nobody waits for it: the job goes on whether there is a manager or not.
        registered: mpsc::channel().0,
        news: receiver,
    };
    let control = thread::Builder::new().name("control".into()).spawn(move || manager.run())?;
    door.accept(vec![worker.clone()], None, news, grants);
    // If the acceptor has ended by itself, the worker does not know yet.
    worker.mailbox.post(Command::Stop);
    ending.come(Some(&control));
    for thread in [thread, control] {
        if thread.join().is_err() {
            tracing::error!("a thread of the node panicked");
        }
    }
    Ok(())
}

/// Who is told what a deputy hosts, and how the deputy names itself.
pub struct Told {
    /// The manager.
    pub url: ManagerUrl,
    /// What the deputy begins with.
    pub request: ServeRequest,
}

/// A rank that hosts what it is called for. Dropping it ends that: neighbours hear that what it
/// hosts is at the next candidates from now on.
pub struct Serving {
    acceptor: Mailbox<Request>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Waits until no rank is left below the nodes that are hosted here, and ends these: where all
    /// ranks of a job leave it together, nothing has to go on elsewhere. After `limit` it does.
    pub fn see_out(&self, limit: Duration) {
        let (waits, over) = mpsc::channel();
        self.acceptor.post(Request::SeeOut(waits));
        // Nothing is ever sent: what ends the wait is that nobody holds the other end.
        let _ = over.recv_timeout(limit);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.acceptor.post(Request::Stop);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a thread of the node panicked");
        }
    }
}
