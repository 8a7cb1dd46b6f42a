//! The conversation with the manager. Nothing of a running job waits for it: if the manager is gone
//! or stopped, only this thread notices, and it calls again until the manager is back.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use trib_control::clock::date;
use trib_control::{Certificate, Channel, Error as ControlError, ManagerUrl, node_folder};
use trib_messages::explanation::{NodePart, TrafficPart};
use trib_messages::hello::Role;
use trib_messages::job::NodeGrant;
use trib_messages::jobs::JobActivity;
use trib_messages::node::{ManagerMessage, NodeMessage};
use trib_messages::recovery::{EpochPart, Replayed};
use trib_messages::request::{Request as Asked, ServeRequest};
use trib_waiting::Pause;
use trib_wire::JobId;

use crate::Error;
use crate::accept::Request;
use crate::counters::{self, Counters};
use crate::ending::Ending;
use crate::mailbox::Mailbox;
use crate::news::News;
use crate::worker::{Command, WorkerHandle, guard};

/// What the control thread needs.
pub(crate) struct Manager {
    pub url: ManagerUrl,
    pub who: Who,
    pub acceptor: Mailbox<Request>,
    pub workers: Vec<WorkerHandle>,
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
                Err(error) if is_final(&error) && matches!(self.who, Who::Deputy(_)) => {
                    tracing::info!(%error, "the manager is not told what this rank hosts");
                    return;
                }
                Err(error) if is_final(&error) && !said => {
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
        let mut certificate = self.certificate_ends();
        let mut looked = Instant::now();
        while !self.ending.has_come() {
            self.tell_news(&channel)?;
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.tell_renewed(&channel, &mut certificate)?;
            }
            match channel.recv(Some(GLANCE)) {
                Ok(message) => self.on_message(&channel, message)?,
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

    /// Tells the manager if the certificate in the node's folder was renewed. The connection stays,
    /// because a new one would cost the jobs that are admitted meanwhile this node.
    fn tell_renewed(&self, channel: &Channel, known: &mut Option<u64>) -> Result<(), ControlError> {
        let Some(certificate_ends) = self.certificate_ends().filter(|ends| Some(*ends) != *known) else {
            return Ok(());
        };
        *known = Some(certificate_ends);
        tracing::info!(until = date(certificate_ends), "the certificate was renewed; the next connection takes it");
        channel.send(&NodeMessage::Renewed { certificate_ends })
    }

    /// When the certificate in the node's folder ends.
    fn certificate_ends(&self) -> Option<u64> {
        let Who::Node { name, .. } = &self.who else { return None };
        let folder = node_folder(self.url.credentials(), name);
        Certificate::in_folder(&folder, Role::Node).ok().map(|certificate| certificate.ends)
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
                    datagram_buffer_bytes: self.workers.iter().map(|w| w.datagram_buffer as u64).min().unwrap_or(0),
                    workers: self.workers.len() as u32,
                    jobs: self.hosted(),
                })?;
                Ok(channel)
            }
            Who::Deputy(request) => {
                let channel = Channel::connect(&self.url, Role::User, DEPUTY_CALL)?;
                channel.send(&Asked::Serve(request.clone()))?;
                Ok(channel)
            }
        }
    }

    fn on_message(&self, channel: &Channel, message: ManagerMessage) -> Result<(), ControlError> {
        match message {
            ManagerMessage::Install(grant) => channel.send(&self.install(*grant)),
            ManagerMessage::End { job } => {
                self.acceptor.post(Request::End(job));
                Ok(())
            }
            ManagerMessage::Ping => channel.send(&NodeMessage::Alive),
            ManagerMessage::QueryCounters => channel.send(&NodeMessage::Counters(self.count())),
            ManagerMessage::QueryActivity => channel.send(&NodeMessage::Activity(self.activity())),
            ManagerMessage::Explain { job, group } => {
                // A core that ends between the two questions is in neither answer, and not in both.
                let epochs = self.epochs(job);
                let (parts, traffic) = self.explain(job, group);
                channel.send(&NodeMessage::Explained { job, group, parts, traffic, epochs })
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
        self.acceptor.post(Request::Hosted(reply));
        // The acceptor always answers. It ends only with the process.
        answer.recv().unwrap_or_default()
    }

    fn install(&self, grant: NodeGrant) -> NodeMessage {
        let (job, node) = (grant.job, grant.node);
        let (reply, answer) = mpsc::channel();
        self.acceptor.post(Request::Install(Box::new(grant), reply));
        match answer.recv() {
            Ok(Err(refusal)) => NodeMessage::Rejected { job, node, refusal },
            // The acceptor always answers. It ends only with the process.
            Ok(Ok(())) | Err(_) => NodeMessage::Installed { job, node },
        }
    }

    /// The job's logical nodes here, without those of workers that do not answer in time.
    fn explain(&self, job: JobId, group: Option<u64>) -> (Vec<NodePart>, Vec<TrafficPart>) {
        let (reply, answers) = mpsc::channel();
        for worker in &self.workers {
            worker.mailbox.post(Command::Explain(job, group, reply.clone()));
        }
        drop(reply);
        gather(answers, COUNT).flatten().unzip()
    }

    /// The last epochs that the trees of the job have come to.
    fn epochs(&self, job: JobId) -> Vec<EpochPart> {
        let (reply, answer) = mpsc::channel();
        self.acceptor.post(Request::Epochs(job, reply));
        answer.recv_timeout(COUNT).unwrap_or_default()
    }

    /// What the jobs do here, with each job once.
    fn activity(&self) -> Vec<JobActivity> {
        let before = self.replayed_before();
        let (reply, answers) = mpsc::channel();
        for worker in &self.workers {
            worker.mailbox.post(Command::Activity(reply.clone()));
        }
        drop(reply);
        let mut jobs: BTreeMap<JobId, JobActivity> = BTreeMap::new();
        for told in gather(answers, COUNT).flatten() {
            match jobs.get_mut(&told.job) {
                Some(known) => known.join(told),
                None => drop(jobs.insert(told.job, told)),
            }
        }
        for (job, replayed) in before {
            if let Some(told) = jobs.get_mut(&job) {
                told.replayed += replayed;
            }
        }
        jobs.into_values().collect()
    }

    /// What cores that have ended have replayed.
    fn replayed_before(&self) -> BTreeMap<JobId, Replayed> {
        let (reply, answer) = mpsc::channel();
        self.acceptor.post(Request::ReplayedBefore(reply));
        answer.recv_timeout(COUNT).unwrap_or_default()
    }

    fn count(&self) -> Counters {
        collect(&self.acceptor, &self.workers)
    }

    fn sleep(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.ending.has_come() && Instant::now() < until {
            thread::park_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

/// The counters of all threads, without those of threads that do not answer in time.
pub(crate) fn collect(acceptor: &Mailbox<Request>, workers: &[WorkerHandle]) -> Counters {
    let mut sum = Counters::new();
    counters::add(&mut sum, "workers", workers.len() as u64);
    for (name, count) in answers(acceptor, workers, COUNT).flatten() {
        counters::add(&mut sum, &name, count);
    }
    sum
}

/// The counters of each thread in the order in which they come, as long as `patience` lasts.
pub(crate) fn answers(
    acceptor: &Mailbox<Request>,
    workers: &[WorkerHandle],
    patience: Duration,
) -> impl Iterator<Item = Counters> + use<> {
    let (reply, answers) = mpsc::channel();
    acceptor.post(Request::Count(reply.clone()));
    for worker in workers {
        worker.mailbox.post(Command::Count(reply.clone()));
    }
    drop(reply);
    gather(answers, patience)
}

/// The answers of threads in the order in which they come, as long as `patience` lasts.
fn gather<T>(answers: Receiver<T>, patience: Duration) -> impl Iterator<Item = T> {
    let deadline = Instant::now() + patience;
    std::iter::from_fn(move || answers.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok())
}

/// Whether trying again will not help.
fn is_final(error: &ControlError) -> bool {
    !matches!(
        error,
        ControlError::Unreachable { .. }
            | ControlError::Timeout { .. }
            | ControlError::Closed { .. }
            | ControlError::Socket { .. }
    )
}

/// How long the manager may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a rank tries to reach the manager each time. It may have to wait for that when it
/// leaves its job, and nothing of the job depends on the call.
const DEPUTY_CALL: Duration = Duration::from_secs(1);
/// How often it looks whether the node's certificate was renewed.
const LOOK: Duration = Duration::from_secs(10);
/// How often the thread looks for news.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a worker may take to count. The manager waits one second for all of them.
const COUNT: Duration = Duration::from_millis(500);
/// Between two tries to reach the manager. A manager that starts again has all its nodes within
/// seconds, and one that is away for hours costs nothing to speak of.
const PAUSE: Pause = Pause::doubling(Duration::from_millis(100), Duration::from_secs(2));
