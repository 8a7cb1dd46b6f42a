//! A rank that may host logical nodes of its own job: it listens, and does no more until somebody
//! calls.
//!
//! It is the acceptor and one worker of a node, without a manager. Its grants come with the job's
//! ticket, and it ends with the rank.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;

use trib_messages::job::NodeGrant;
use trib_messages::reply::Refusal;

use crate::Error;
use crate::accept::{Door, Request};
use crate::mailbox::Mailbox;
use crate::worker::{self, Command, WorkerHandle};

/// A rank that listens. Calls wait in the kernel until it serves.
pub struct Deputy {
    door: Door,
}

impl Deputy {
    /// Listens at a free port of this address.
    ///
    /// # Errors
    /// If the system has no port or no descriptor left.
    pub fn listen(address: std::net::IpAddr) -> Result<Deputy, Error> {
        Ok(Deputy { door: Door::open(&[SocketAddr::new(address, 0)])? })
    }

    /// The port at which it listens.
    pub fn port(&self) -> u16 {
        self.door.addresses[0].port()
    }

    /// Starts the threads, which wait until one of these logical nodes is called.
    ///
    /// # Errors
    /// If the system lacks threads or sockets.
    pub fn serve(self, grants: Vec<NodeGrant>) -> Result<Serving, Error> {
        let (address, acceptor) = (self.door.addresses[0], self.door.handle.clone());
        // Nobody is told what becomes of jobs: the rank is in the only one, and notices.
        let (news, _) = mpsc::channel();
        let tell = Box::new({
            let acceptor = acceptor.clone();
            move |request| acceptor.post(request)
        });
        let (worker, thread) = worker::start(0, address.ip(), tell, news.clone()).map_err(Error::Thread)?;
        let mut serving = Serving { acceptor: acceptor.clone(), worker: worker.clone(), threads: vec![thread] };
        serving.threads.push(self.door.serve(vec![worker], None, news).map_err(Error::Thread)?);
        for grant in grants {
            let name = grant.name.clone();
            if let Err(refusal) = serving.install(grant) {
                tracing::warn!(node = name, %refusal, "this rank cannot host a node of its job");
            }
        }
        Ok(serving)
    }
}

/// A rank that hosts what it is called for. Dropping it ends that: neighbours find their
/// connections closed, and go to the next candidate.
pub struct Serving {
    acceptor: Mailbox<Request>,
    worker: WorkerHandle,
    threads: Vec<JoinHandle<()>>,
}

impl Serving {
    fn install(&self, grant: NodeGrant) -> Result<(), Refusal> {
        let (reply, answer) = mpsc::channel();
        self.acceptor.post(Request::Install(Box::new(grant), reply));
        // The acceptor always answers.
        answer.recv().unwrap_or(Ok(()))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        end(&self.acceptor, std::slice::from_ref(&self.worker), &mut self.threads);
    }
}

/// Ends the threads of a node.
pub(crate) fn end(acceptor: &Mailbox<Request>, workers: &[WorkerHandle], threads: &mut Vec<JoinHandle<()>>) {
    acceptor.post(Request::Stop);
    for worker in workers {
        worker.mailbox.post(Command::Stop);
    }
    for thread in threads.drain(..) {
        if thread.join().is_err() {
            tracing::error!("a thread of the node panicked");
        }
    }
}
