//! Questions of other threads about what is here. However many there are, they take a sixteenth of
//! the thread's time, and what is left is for the jobs.
//!
//! ```text
//!   mail --> line --due?--> answer, and measure it --> the next is due 15 times as much later
//! ```
//!
//! An answer may go through all groups of a job, of which a tenant can have made tens of thousands.
//! In what order jobs are asked is up to who asks ([`crate::teller`]).

use std::collections::VecDeque;
use std::sync::mpsc::Sender;

use trib_messages::explanation::{NodePart, TrafficPart};
use trib_messages::jobs::JobActivity;
use trib_proto::Nanos;
use trib_wire::JobId;

use super::Worker;
use crate::counters::{self, Counters};
use crate::report::NodeReport;

/// A question, and where the answer goes.
pub(crate) enum Question {
    /// The counters.
    Count(Sender<Counters>),
    /// The counters and the figures of every logical node.
    Report(Sender<NodeReport>),
    /// What the jobs do here.
    Activity(Sender<Vec<JobActivity>>),
    /// The details of the logical nodes of one job, with all their groups or those of one tag.
    Explain(JobId, Option<u64>, Sender<Vec<(NodePart, TrafficPart)>>),
}

/// Things that wait for their turn, each of which rests the thread from its kind in proportion to
/// what it took.
pub(super) struct Line<T> {
    waiting: VecDeque<T>,
    /// When the next one has its turn.
    due: Nanos,
    answered: u64,
    /// What all of them took.
    spent: Nanos,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Line { waiting: VecDeque::new(), due: Nanos(0), answered: 0, spent: Nanos(0) }
    }
}

impl<T> Line<T> {
    /// One more at the end.
    pub(super) fn put(&mut self, one: T) {
        self.waiting.push_back(one);
    }

    /// When there is something to do.
    pub(super) fn next_deadline(&self) -> Nanos {
        if self.waiting.is_empty() { Nanos::NEVER } else { self.due }
    }

    /// The first one, if its turn has come.
    fn take(&mut self, now: Nanos) -> Option<T> {
        if now < self.due {
            return None;
        }
        self.waiting.pop_front()
    }

    /// One was answered, from `began` to `now`.
    fn answered(&mut self, began: Nanos, now: Nanos) {
        let took = now.since(began);
        self.due = now + Nanos((took.0.saturating_mul(REST)).min(REST_MAX.0));
        self.answered += 1;
        self.spent = self.spent + took;
    }

    pub(super) fn add_to(&self, counters: &mut Counters) {
        counters::add(counters, "questions_answered", self.answered);
        counters::add(counters, "questions_ns", self.spent.0);
    }
}

impl Worker {
    /// Answers the question whose turn it is, if it is due. Who asked may have given up.
    pub(super) fn on_questions(&mut self) {
        let began = self.now();
        let Some(question) = self.questions.take(began) else { return };
        match question {
            Question::Count(reply) => drop(reply.send(self.count())),
            Question::Report(reply) => drop(reply.send(self.report())),
            Question::Activity(reply) => drop(reply.send(self.activity())),
            Question::Explain(job, tag, reply) => drop(reply.send(self.explain(job, tag))),
        }
        self.clock.read();
        self.questions.answered(began, self.now());
    }
}

/// How many times as long as it took the thread is not asked again.
const REST: u64 = 15;
/// The longest of these rests: who asks has half a second of patience.
const REST_MAX: Nanos = Nanos::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks all the time; each answer takes so long. Returns how many were answered within a
    /// second, and what they took.
    fn asked_all_the_time(took: Nanos) -> (u64, Nanos) {
        let (mut line, mut now, end) = (Line::default(), Nanos(0), Nanos::from_millis(1_000));
        while now < end {
            line.put(());
            if line.take(now).is_some() {
                line.answered(now, now + took);
                now = now + took;
            } else {
                now = now + Nanos(10_000);
            }
        }
        (line.answered, line.spent)
    }

    #[test]
    fn questions_take_a_sixteenth_of_the_time_whatever_each_takes() {
        for micros in [10, 100, 1_000, 5_000] {
            let (answered, spent) = asked_all_the_time(Nanos(micros * 1_000));
            assert!(answered > 0 && spent.0 <= 1_000_000_000 / 16 + micros * 1_000, "{micros} us: {spent:?}");
        }
    }

    #[test]
    fn who_asks_seldom_is_answered_at_once() {
        let mut line = Line::default();
        assert_eq!(line.next_deadline(), Nanos::NEVER);
        line.put('a');
        line.put('b');
        assert_eq!((line.next_deadline(), line.take(Nanos(7))), (Nanos(0), Some('a')));
        line.answered(Nanos(7), Nanos(9));
        assert_eq!((line.next_deadline(), line.take(Nanos(9))), (Nanos(39), None));
        assert_eq!((line.take(Nanos(39)), line.next_deadline()), (Some('b'), Nanos::NEVER));
        // A thread that was stopped in the middle does not keep who asks waiting for as long again.
        line.answered(Nanos(0), Nanos::from_millis(60_000));
        line.put('c');
        assert_eq!(line.next_deadline(), Nanos::from_millis(60_000) + REST_MAX);
    }
}
