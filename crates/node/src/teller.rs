//! Answers what the manager asks about jobs here, in a thread of its own: an answer waits for
//! workers, and grants do not wait for it. Jobs take turns, so that one of which much is asked
//! keeps nobody from asking about another.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use trib_control::{Channel, Error as ControlError};
use trib_messages::explanation::{NodePart, TrafficPart};
use trib_messages::jobs::JobActivity;
use trib_messages::node::NodeMessage;
use trib_messages::recovery::{EpochPart, Replayed};
use trib_wire::JobId;

use crate::accept::Request;
use crate::counters::{self, Counters};
use crate::mailbox::Mailbox;
use crate::worker::{Command, Question, WorkerHandle, guard};

/// What is asked.
pub(crate) enum Asked {
    /// The counters of all threads.
    Counters,
    /// What all jobs do.
    Activity,
    /// The logical nodes of a job, with all groups or those of one tag.
    Job(JobId, Option<u64>),
}

impl Asked {
    /// The job that this is about, if it is about one.
    fn job(&self) -> Option<JobId> {
        match self {
            Asked::Job(job, _) => Some(*job),
            Asked::Counters | Asked::Activity => None,
        }
    }
}

/// The threads that know.
#[derive(Clone)]
pub(crate) struct Threads {
    pub(crate) acceptor: Mailbox<Request>,
    pub(crate) workers: Vec<WorkerHandle>,
}

/// The thread that answers over one connection. Dropping this ends both: a rank that hosts nodes
/// leaves no thread behind when it has left its job.
pub(crate) struct Teller {
    asked: Option<Sender<Asked>>,
    channel: Arc<Channel>,
    thread: Option<JoinHandle<()>>,
}

impl Teller {
    /// Starts the thread.
    pub(crate) fn start(threads: Threads, channel: Arc<Channel>) -> Result<Teller, ControlError> {
        let (asked, questions) = mpsc::channel();
        let failed = |cause| ControlError::Socket { what: "start a thread".into(), cause };
        let over = channel.clone();
        let work = move || answer_all(&threads, &over, &questions);
        let thread = thread::Builder::new().name("teller".into()).spawn(work).map_err(failed)?;
        Ok(Teller { asked: Some(asked), channel, thread: Some(thread) })
    }

    /// Has this answered, in its turn.
    pub(crate) fn ask(&self, asked: Asked) {
        // The thread has ended if the connection has, which who listens to it finds out.
        let _ = self.asked.as_ref().map(|questions| questions.send(asked));
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        // An answer that is on its way ends with the connection, and one that waits for workers
        // after a second.
        self.channel.close();
        self.asked = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a thread of the node panicked");
        }
    }
}

/// Answers until nobody can ask any more, or the connection is gone.
fn answer_all(threads: &Threads, channel: &Channel, questions: &Receiver<Asked>) {
    let mut turns = Turns::default();
    loop {
        if turns.is_empty() {
            let Ok(asked) = questions.recv() else { return };
            turns.put(asked.job(), asked);
        }
        questions.try_iter().for_each(|asked| turns.put(asked.job(), asked));
        let Some(asked) = turns.next() else { continue };
        match guard(|| threads.answer(channel, asked)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "an answer did not reach the manager");
                return;
            }
            Err(why) => {
                tracing::error!(
                    why,
                    "an error of this program's own keeps an answer from the manager; please report it"
                );
            }
        }
    }
}

/// Questions that wait, by what they are about. Each subject has one answered in its turn.
struct Turns<S, T> {
    waiting: BTreeMap<S, VecDeque<T>>,
    order: VecDeque<S>,
}

impl<S, T> Default for Turns<S, T> {
    fn default() -> Self {
        Turns { waiting: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<S: Ord + Copy, T> Turns<S, T> {
    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn put(&mut self, subject: S, question: T) {
        let waiting = self.waiting.entry(subject).or_default();
        if waiting.is_empty() {
            self.order.push_back(subject);
        }
        waiting.push_back(question);
    }

    fn next(&mut self) -> Option<T> {
        let subject = self.order.pop_front()?;
        let waiting = self.waiting.get_mut(&subject)?;
        let question = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&subject);
        } else {
            self.order.push_back(subject);
        }
        question
    }
}

impl Threads {
    fn answer(&self, channel: &Channel, asked: Asked) -> Result<(), ControlError> {
        match asked {
            Asked::Counters => channel.send(&NodeMessage::Counters(collect(self))),
            Asked::Activity => channel.send(&NodeMessage::Activity(self.activity())),
            Asked::Job(job, group) => self.explain(channel, job, group),
        }
    }

    fn explain(&self, channel: &Channel, job: JobId, group: Option<u64>) -> Result<(), ControlError> {
        // A core that ends between the two questions is in neither answer, and not in both.
        let epochs = self.epochs(job);
        let (parts, traffic) = self.parts(job, group);
        let mut told = NodeMessage::Explained { job, group, parts, traffic, epochs };
        loop {
            match channel.send(&told) {
                // Lists of members may be long. Groups that wait for nothing come last.
                Err(ControlError::TooLong { .. }) if halve_groups(&mut told) => {}
                ended => return ended,
            }
        }
    }

    /// The job's logical nodes here, without those of workers that do not answer in time.
    fn parts(&self, job: JobId, group: Option<u64>) -> (Vec<NodePart>, Vec<TrafficPart>) {
        self.ask(|reply| Question::Explain(job, group, reply)).flatten().unzip()
    }

    /// The last epochs that the trees of the job have come to.
    fn epochs(&self, job: JobId) -> Vec<EpochPart> {
        let (reply, answer) = mpsc::channel();
        self.acceptor.post(Request::Epochs(job, reply));
        answer.recv_timeout(PATIENCE).unwrap_or_default()
    }

    /// What the jobs do here, with each job once.
    fn activity(&self) -> Vec<JobActivity> {
        let before = self.replayed_before();
        let mut jobs: BTreeMap<JobId, JobActivity> = BTreeMap::new();
        for told in self.ask(Question::Activity).flatten() {
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
        answer.recv_timeout(PATIENCE).unwrap_or_default()
    }

    /// The answers of the workers in the order in which they come, as long as there is patience.
    fn ask<T>(&self, question: impl Fn(Sender<T>) -> Question) -> impl Iterator<Item = T> {
        let (reply, answers) = mpsc::channel();
        for worker in &self.workers {
            worker.mailbox.post(Command::Ask(question(reply.clone())));
        }
        drop(reply);
        gather(answers, PATIENCE)
    }

    /// The counters of each thread in the order in which they come, as long as `patience` lasts.
    pub(crate) fn counters(&self, patience: Duration) -> impl Iterator<Item = Counters> + use<> {
        let (reply, answers) = mpsc::channel();
        self.acceptor.post(Request::Count(reply.clone()));
        for worker in &self.workers {
            worker.mailbox.post(Command::Ask(Question::Count(reply.clone())));
        }
        drop(reply);
        gather(answers, patience)
    }
}

/// Takes half of the groups away. Returns whether there were any.
fn halve_groups(told: &mut NodeMessage) -> bool {
    let NodeMessage::Explained { parts, .. } = told else { return false };
    let had_some = parts.iter().any(|part| !part.groups.is_empty());
    parts.iter_mut().for_each(|part| part.groups.truncate(part.groups.len() / 2));
    had_some
}

/// The counters of all threads, without those of threads that do not answer in time.
pub(crate) fn collect(threads: &Threads) -> Counters {
    let mut sum = Counters::new();
    counters::add(&mut sum, "workers", threads.workers.len() as u64);
    for (name, count) in threads.counters(PATIENCE).flatten() {
        counters::add(&mut sum, &name, count);
    }
    sum
}

/// The answers of threads in the order in which they come, as long as `patience` lasts.
fn gather<T>(answers: Receiver<T>, patience: Duration) -> impl Iterator<Item = T> {
    let deadline = Instant::now() + patience;
    std::iter::from_fn(move || answers.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok())
}

/// How long a thread may take to answer. The manager waits one second for all of them.
const PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_much_about_one_job_keeps_nobody_from_asking_about_another() {
        let mut turns = Turns::default();
        (0..64).for_each(|tag| turns.put(Some(JobId(7)), tag));
        turns.put(Some(JobId(8)), 100);
        turns.put(None, 200);
        let order: Vec<u64> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(order[..5], [0, 100, 200, 1, 2]);
        assert_eq!(order.len(), 66);
        assert!(turns.is_empty() && turns.waiting.is_empty());
    }
}
