//! The conversation with the manager. Nothing of a running job waits for it: if the manager is gone
//! or stopped, only this thread notices, and it calls again until the manager is back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use trib_control::clock::date;
use trib_control::{Channel, Error as ControlError, ManagerUrl};
use trib_messages::hello::Role;
use trib_messages::job::NodeGrant;
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::request::{Request as UserRequest, ServeRequest};
use trib_waiting::Pause;
use trib_wire::JobId;

use crate::Error;
use crate::accept::Request;
use crate::ending::Ending;
use crate::news::News;
use crate::renewal::Renewal;
use crate::teller::{Asked, Teller, Threads};
use crate::worker::guard;

/// What the control thread needs.
pub(crate) struct Manager {
    pub url: ManagerUrl,
    pub who: Who,
    pub threads: Threads,
    pub ending: Arc<Ending>,
    /// Gets one message: that the process is registered, or why it never will be.
    pub registered: Sender<Result<(), Error>>,
    /// What happens to jobs, to be told to the manager.
    pub news: Receiver<News>,
}

/// Who talks to the manager.
pub(crate) enum Who {
    /// An aggregation node: its name in the topology, and the addresses at which it takes streams.
    Node { name: String, addresses: Vec<SocketAddr> },
    /// A rank that hosts nodes of its own job.
    Deputy(ServeRequest),
}

impl Manager {
    /// Talks to the manager until the node stops, or the manager says that it does not want this
    /// node.
    pub(crate) fn run(self) {
        let mut pause = PAUSE.first();
        let mut said = false;
        while !self.ending.has_come() {
            let ended = guard(|| self.conversation(&mut said)).unwrap_or_else(|why| {
                tracing::error!(
                    why,
                    "an error of this program's own ends the conversation with the manager; please report it"
                );
                Ok(())
            });
            match ended {
                Ok(()) => pause = PAUSE.first(),
                Err(_) if self.ending.has_come() => {}
                // The manager does not know the job any more, or this rank as its deputy.
                Err(error) if self.is_final(&error) && matches!(self.who, Who::Deputy(_)) => {
                    tracing::info!(%error, "the manager is not told what this rank hosts");
                    return;
                }
                Err(error) if self.is_final(&error) && !said => {
                    // The thread that started the node may not wait for this.
                    let _ = self.registered.send(Err(Error::Control(error)));
                    return;
                }
                Err(error) => tracing::warn!(%error, "no manager; running jobs go on"),
            }
            self.sleep(pause);
            pause = PAUSE.after_pause(pause);
        }
    }

    /// One connection, from registration to its end.
    fn conversation(&self, said: &mut bool) -> Result<(), ControlError> {
        let channel = Arc::new(self.introduce()?);
        self.ending.talks_over(Arc::downgrade(&channel));
        match channel.recv(Some(ANSWER))? {
            ManagerMessage::Registered => {}
            ManagerMessage::Refused(refusal) => return Err(ControlError::Refused(refusal)),
            other => tracing::warn!(?other, "the manager speaks before it has registered this node"),
        }
        match &self.who {
            Who::Node { name, addresses } => tracing::info!(name, ?addresses, "registered"),
            Who::Deputy(ServeRequest { job, rank, .. }) => {
                tracing::info!(job = job.0, rank, "the manager knows what this rank hosts");
            }
        }
        if !core::mem::replace(said, true) {
            let _ = self.registered.send(Ok(()));
        }
        self.tell_hosted(&channel)?;
        let teller = Teller::start(self.threads.clone(), channel.clone())?;
        let mut renewal = match &self.who {
            Who::Node { name, .. } => Some(Renewal::new(self.url.credentials(), name)),
            Who::Deputy(_) => None,
        };
        while !self.ending.has_come() {
            self.tell_news(&channel)?;
            if let Some(certificate_ends) = renewal.as_mut().and_then(Renewal::look_now_and_then) {
                // The connection stays, because a new one would cost the jobs that are admitted
                // meanwhile this node.
                tracing::info!(
                    until = date(certificate_ends),
                    "the certificate was renewed; the next connection takes it"
                );
                channel.send(&NodeMessage::Renewed { certificate_ends })?;
            }
            match channel.recv(Some(GLANCE)) {
                Ok(message) => self.on_message(&channel, &teller, message)?,
                Err(ControlError::Timeout { .. }) => {}
                Err(ControlError::Closed { .. }) if self.ending.has_come() => {}
                Err(ControlError::Closed { .. }) => {
                    tracing::warn!("the manager has closed the channel; running jobs go on");
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.tell_news(&channel)?;
        channel.close();
        Ok(())
    }

    /// Tells the manager what has happened to jobs.
    fn tell_news(&self, channel: &Channel) -> Result<(), ControlError> {
        self.news.try_iter().try_for_each(|news| {
            channel.send(&match news {
                News::Left(job) => NodeMessage::Left { job },
                News::Faulty { job, fault, why } => NodeMessage::Faulty { job, fault, why },
            })
        })
    }

    /// Connects, and says who this is.
    fn introduce(&self) -> Result<Channel, ControlError> {
        match &self.who {
            Who::Node { name, addresses } => {
                let channel = Channel::connect_node(&self.url, name, ANSWER)?;
                channel.send(&NodeMessage::Register {
                    name: name.clone(),
                    stream: addresses[0],
                    further: addresses[1..].to_vec(),
                    datagram_buffer_bytes: self
                        .threads
                        .workers
                        .iter()
                        .map(|w| w.datagram_buffer as u64)
                        .min()
                        .unwrap_or(0),
                    workers: self.threads.workers.len() as u32,
                    jobs: self.hosted(),
                })?;
                Ok(channel)
            }
            Who::Deputy(request) => {
                let channel = Channel::connect(&self.url, Role::User, DEPUTY_CALL)?;
                channel.send(&UserRequest::Serve(request.clone()))?;
                Ok(channel)
            }
        }
    }

    fn on_message(&self, channel: &Channel, teller: &Teller, message: ManagerMessage) -> Result<(), ControlError> {
        match message {
            ManagerMessage::Install(grant) => channel.send(&self.install(*grant)),
            ManagerMessage::End { job } => {
                self.threads.acceptor.post(Request::End(job));
                Ok(())
            }
            ManagerMessage::Ping => channel.send(&NodeMessage::Alive),
            ManagerMessage::QueryCounters => {
                teller.ask(Asked::Counters);
                Ok(())
            }
            ManagerMessage::QueryActivity => {
                teller.ask(Asked::Activity);
                Ok(())
            }
            ManagerMessage::Explain { job, group } => {
                teller.ask(Asked::Job(job, group));
                Ok(())
            }
            ManagerMessage::Refused(refusal) => Err(ControlError::Refused(refusal)),
            ManagerMessage::Registered => Ok(()),
        }
    }

    /// Tells the manager all that is here now, whatever was missed before.
    fn tell_hosted(&self, channel: &Channel) -> Result<(), ControlError> {
        let missed: Vec<News> = self.news.try_iter().collect();
        channel.send(&NodeMessage::Hosts { jobs: self.hosted() })?;
        missed.into_iter().try_for_each(|news| match news {
            News::Faulty { job, fault, why } => channel.send(&NodeMessage::Faulty { job, fault, why }),
            // The job is not among those that are here, so the manager knows it by now.
            News::Left(_) => Ok(()),
        })
    }

    fn hosted(&self) -> Vec<JobId> {
        let (reply, answer) = mpsc::channel();
        self.threads.acceptor.post(Request::Hosted(reply));
        // The acceptor always answers. It ends only with the process.
        answer.recv().unwrap_or_default()
    }

    fn install(&self, grant: NodeGrant) -> NodeMessage {
        let (job, node) = (grant.job, grant.node);
        let (reply, answer) = mpsc::channel();
        self.threads.acceptor.post(Request::Install(Box::new(grant), reply));
        match answer.recv() {
            Ok(Err(refusal)) => NodeMessage::Rejected { job, node, refusal },
            // The acceptor always answers. It ends only with the process.
            Ok(Ok(())) | Err(_) => NodeMessage::Installed { job, node },
        }
    }

    /// Whether trying again will not help.
    fn is_final(&self, error: &ControlError) -> bool {
        match error {
            ControlError::Unreachable { .. }
            | ControlError::Timeout { .. }
            | ControlError::Closed { .. }
            | ControlError::Socket { .. } => false,
            // While a fabric is upgraded, a node meets a manager of the other release for a while.
            // A rank has its library for good.
            ControlError::VersionMismatch { .. } => matches!(self.who, Who::Deputy(_)),
            _ => true,
        }
    }

    fn sleep(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.ending.has_come() && Instant::now() < until {
            thread::park_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

/// How long the manager may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a rank tries to reach the manager each time. It may have to wait for that when it
/// leaves its job, and nothing of the job depends on the call.
const DEPUTY_CALL: Duration = Duration::from_secs(1);
/// How often the thread looks for news.
const GLANCE: Duration = Duration::from_millis(100);
/// Between two tries to reach the manager. A manager that starts again has all its nodes within
/// seconds, and one that is away for hours costs nothing to speak of.
const PAUSE: Pause = Pause::doubling(Duration::from_millis(100), Duration::from_secs(2));
