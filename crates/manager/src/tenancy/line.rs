//! The book, which connections share, and the line of jobs that wait.
//!
//! ```text
//!   enter --fits, and no claim before lacks it--> charged --dropped--> given back
//!     `-------------> waits -------turn------------^
//!                       `--- patience over, or the asker is gone ----> refused
//!   the line moves up whenever a claim is given back or refused
//! ```
//! A job with a higher priority stands before others, and among equals the one that came first. The
//! first job that does not fit keeps what it waits for, as far as others would take it: no job
//! behind it gets that, so no job starves. Those behind it that need something else pass. When
//! something is given back, the line moves up for all. A thread whose job waits sleeps until then,
//! except that it looks at its connection now and then.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use trib_control::clock::unix_ms;
use trib_messages::reply::Refusal;
use trib_wire::ids::JobId;

use super::book::{Book, Cap, Claim, Shortage};
use super::policy::Policy;
use super::refusal::{self, End};
use crate::time::Time;

/// The program that asks for a job.
pub(crate) struct Applicant<'a> {
    /// The program's name.
    pub name: &'a str,
    /// The user who runs it, as the program says.
    pub user: &'a str,
    /// The tenant of its certificate.
    pub tenant: Option<&'a str>,
    /// The number of its ranks.
    pub ranks: u32,
    /// Whether the program no longer waits for the answer. This is called with a lock held, so it
    /// must not block.
    pub is_gone: &'a dyn Fn() -> bool,
}

/// The book and the line.
pub(crate) struct Line {
    time: Time,
    state: Mutex<State>,
    moved: Condvar,
}

pub(super) struct State {
    pub book: Book,
    pub policy: Arc<Policy>,
    pub charged: BTreeMap<u64, Charged>,
    /// The claims that wait, in the order of their turns.
    pub waiting: Vec<Waiting>,
    last: u64,
}

/// A claim in the book.
pub(super) struct Charged {
    pub claim: Claim,
    /// The job, which is not known while it is being installed.
    pub job: Option<JobId>,
    /// Whether the job has ended and is still at a node.
    pub ended: bool,
    /// When it was charged, milliseconds since 1970-01-01 UTC.
    pub since_ms: u64,
}

/// A claim in the line.
pub(super) struct Waiting {
    number: u64,
    pub priority: i32,
    pub claim: Claim,
    pub name: String,
    pub user: String,
    pub tenant: Option<String>,
    pub ranks: u32,
    pub since: SystemTime,
    turn: bool,
    /// What it lacked when the line last moved.
    pub lacks: Option<Shortage>,
}

/// A claim that is in the book until this value is dropped.
pub(crate) struct Charge {
    line: Arc<Line>,
    number: u64,
}

impl Line {
    /// An empty line with an empty book.
    pub(super) fn new(policy: Arc<Policy>, time: Time) -> Self {
        let book = Book::new(policy.clone());
        let state = State { book, policy, charged: BTreeMap::new(), waiting: Vec::new(), last: 0 };
        Line { time, state: Mutex::new(state), moved: Condvar::new() }
    }

    /// Enters what a job of an earlier manager has.
    pub(super) fn adopt(self: &Arc<Self>, job: JobId, claim: Claim) -> Charge {
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        state.charge(number, claim, Some(job));
        Charge { line: self.clone(), number }
    }

    /// Takes a claim when it fits and it is its turn. Returns also whether it had to wait for that.
    pub(super) fn enter(
        self: &Arc<Self>,
        claim: Claim,
        applicant: &Applicant<'_>,
        patience: Duration,
    ) -> Result<(Charge, bool), Refusal> {
        let end = self.time.now() + patience;
        let mut state = self.lock();
        if let Err(shortage) = state.book.check_alone(&claim) {
            return Err(refusal::never(&claim.tenant, &shortage));
        }
        let number = state.queue(claim, applicant);
        self.advance(&mut state);
        let mut waited = false;
        loop {
            let at = state.position_of(number);
            if state.waiting[at].turn {
                state.waiting.remove(at);
                return Ok((Charge { line: self.clone(), number }, waited));
            }
            // An applicant without patience is in the line for this moment only, so that it does
            // not pass those before it.
            let full = !patience.is_zero() && !waited && state.waiting.len() > WAITING_MAX;
            let why = match () {
                () if full => Some(End::Full),
                () if self.time.now() >= end => Some(End::Over(patience)),
                () if (applicant.is_gone)() => Some(End::Gone),
                () => None,
            };
            if let Some(why) = why {
                let refusal = refusal::of_waiting(&state, at, why);
                state.waiting.remove(at);
                self.advance(&mut state);
                return Err(refusal);
            }
            waited = true;
            let turn = GLANCE.min(self.time.left(end));
            state = self.time.wait(&self.moved, (&self.state, state), turn);
        }
    }

    /// Shows the state to `look`, with the lock held.
    pub(super) fn with<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    fn advance(&self, state: &mut State) {
        if state.advance() {
            self.moved.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn queue(&mut self, claim: Claim, applicant: &Applicant<'_>) -> u64 {
        self.last += 1;
        let (number, priority) = (self.last, self.policy.priority(&claim.tenant));
        let at = self.waiting.partition_point(|other| other.priority >= priority);
        let waiting = Waiting {
            number,
            priority,
            claim,
            name: applicant.name.into(),
            user: applicant.user.into(),
            tenant: applicant.tenant.map(Into::into),
            ranks: applicant.ranks,
            since: SystemTime::now(),
            turn: false,
            lacks: None,
        };
        self.waiting.insert(at, waiting);
        number
    }

    fn position_of(&self, number: u64) -> usize {
        self.waiting.iter().position(|waiting| waiting.number == number).expect("only its own thread takes it out")
    }

    fn charge(&mut self, number: u64, claim: Claim, job: Option<JobId>) {
        self.book.take(&claim);
        self.charged.insert(number, Charged { claim, job, ended: false, since_ms: unix_ms() });
    }

    /// See [`Charge::change_to`].
    fn change(&mut self, number: u64, claim: Claim) -> Result<(), Shortage> {
        let State { book, charged, waiting, .. } = self;
        let Some(charged) = charged.get_mut(&number) else { return Ok(()) };
        let lacking = |waiting: &&Waiting| !waiting.turn && waiting.lacks.is_some();
        let kept = || waiting.iter().filter(lacking).filter_map(|one| Some((&one.claim, one.lacks.as_ref()?.cap)));
        kept().for_each(|(claim, cap)| book.keep(claim, cap));
        let fits = book.check(&claim.beyond(&charged.claim));
        kept().for_each(|(claim, cap)| book.let_go(claim, cap));
        fits?;
        book.give_back(&charged.claim);
        book.take(&claim);
        charged.claim = claim;
        Ok(())
    }

    /// Gives all claims their turn that can have it. Returns whether any can.
    fn advance(&mut self) -> bool {
        let mut kept: Vec<(usize, Cap)> = Vec::new();
        let mut moved = false;
        for at in 0..self.waiting.len() {
            if self.waiting[at].turn {
                continue;
            }
            let claim = &self.waiting[at].claim;
            let lacks = self.book.check(claim).err();
            match &lacks {
                Some(shortage) => {
                    self.book.keep(claim, shortage.cap);
                    kept.push((at, shortage.cap));
                }
                None => {
                    let (number, claim) = (self.waiting[at].number, claim.clone());
                    self.charge(number, claim, None);
                    self.waiting[at].turn = true;
                    moved = true;
                }
            }
            self.waiting[at].lacks = lacks;
        }
        for (at, cap) in kept {
            self.book.let_go(&self.waiting[at].claim, cap);
        }
        moved
    }
}

impl Charge {
    /// Says which job has the claim.
    pub(super) fn attribute(&self, job: JobId) {
        self.change(|charged| charged.job = Some(job));
    }

    /// Replaces the claim by another one, if what this takes besides fits beside what is kept for
    /// those that wait. They do not lose their turns by it.
    pub(super) fn change_to(&self, claim: Claim) -> Result<(), Shortage> {
        let mut state = self.line.lock();
        state.change(self.number, claim)?;
        self.line.advance(&mut state);
        Ok(())
    }

    /// Says that the job has ended and is still at a node.
    pub(super) fn end(&self) {
        self.change(|charged| charged.ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut Charged)) {
        if let Some(charged) = self.line.lock().charged.get_mut(&self.number) {
            change(charged);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut state = self.line.lock();
        if let Some(Charged { claim, .. }) = state.charged.remove(&self.number) {
            state.book.give_back(&claim);
            self.line.advance(&mut state);
        }
    }
}

/// How often a thread whose job waits looks at its connection.
const GLANCE: Duration = Duration::from_millis(250);
/// The largest number of jobs that wait at once. Each has a thread of the manager.
const WAITING_MAX: usize = 1024;

#[cfg(test)]
mod tests;
