//! How application threads wait.
//!
//! A thread that waits for an operation on datagrams, or for one of any length over shared memory,
//! where a look costs no system call, first drives progress itself and yields in between, as long
//! as its `Patience` allows. Most small operations end within that time and cost no wake-up. Then
//! the thread sleeps. One of several sleeping threads, the poller, watches the sockets; the others
//! wait until the poller finishes their requests or leaves. While any thread waits here, the
//! helper thread does nothing.

use std::sync::MutexGuard;
use std::time::Duration;

use trib_proto::Nanos;
use trib_waiting::{Pause, Rounds, TURN, Visits, Yields};
use trib_wire::{Directory, RankList, Signature};

use super::looking::Looking;
use super::poll::{Ready, sleep};
use super::{Engine, Shared};
use crate::completion::Completion;
use crate::error::Error;
use crate::processors;

/// Whose thread waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiter {
    /// The caller's, in which its progress function is called.
    Caller,
    /// One of the library's, of which the caller's runtime knows nothing.
    Own,
}

impl Shared {
    /// Waits for a request.
    pub(crate) fn wait(&self, completion: &Completion, timeout: Option<Duration>) -> Result<(), Error> {
        self.fork.check()?;
        if let Some(outcome) = completion.outcome() {
            return outcome;
        }
        let mut engine = self.enter()?;
        engine.now();
        self.wait_inside(engine, completion, timeout, Waiter::Caller)
    }

    /// The same for a thread of the library's, which waits without a limit.
    pub(crate) fn wait_as_own(&self, completion: &Completion) -> Result<(), Error> {
        self.wait_as_own_for(completion, None)
    }

    /// The same with a limit.
    pub(crate) fn wait_as_own_for(&self, completion: &Completion, timeout: Option<Duration>) -> Result<(), Error> {
        if let Some(outcome) = completion.outcome() {
            return outcome;
        }
        let mut engine = self.enter()?;
        engine.now();
        self.wait_inside(engine, completion, timeout, Waiter::Own)
    }

    /// Waits with the engine already locked and the clock just read, as after posting.
    pub(super) fn wait_inside<'a>(
        &'a self,
        mut engine: MutexGuard<'a, Engine>,
        completion: &Completion,
        timeout: Option<Duration>,
        waiter: Waiter,
    ) -> Result<(), Error> {
        engine.waiters += 1;
        let limit = timeout.map_or(Nanos::NEVER, |span| engine.lately() + nanos(span));
        engine.flush();
        let keeps_coming;
        (engine, keeps_coming) = self.spin(engine, completion)?;
        engine = self.block(engine, completion, limit, waiter, keeps_coming)?;
        engine.waiters -= 1;
        let overdue = (!completion.is_done()).then(|| engine.overdue(completion, completion.what(), timeout));
        self.leave(engine);
        completion.outcome().unwrap_or_else(|| Err(overdue.expect("it was not done")))
    }

    /// The error of a caller who has waited so long for what this is a part of: for this operation,
    /// or for one that takes several of the kind.
    pub(crate) fn overdue(&self, part: &Completion, what: Option<&Signature>, timeout: Option<Duration>) -> Error {
        match self.enter() {
            Ok(engine) => {
                let error = engine.overdue(part, what, timeout);
                self.leave(engine);
                error
            }
            Err(error) => error,
        }
    }

    /// Returns whether pieces keep coming, as `spin_at_board` does.
    fn spin<'a>(
        &'a self,
        mut engine: MutexGuard<'a, Engine>,
        completion: &Completion,
    ) -> Result<(MutexGuard<'a, Engine>, bool), Error> {
        if let Some(at) = completion.board() {
            return self.spin_at_board(engine, completion, at);
        }
        let at = completion.lane();
        if completion.is_done() || !completion.is_short() && engine.lanes[at].glance().is_none() {
            return Ok((engine, false));
        }
        let began = engine.clock.last_reading();
        let Some(mut turns) = engine.patience.begin(began) else { return Ok((engine, false)) };
        let mut looking = Looking::begin(&mut engine, at);
        while !completion.is_done() && turns.goes_on() {
            drop(engine);
            let has_come = turns.look(|| looking.has_come());
            engine = self.lock()?;
            engine.clock.note(turns.last_look());
            if has_come {
                looking.take(&mut engine, || !completion.is_done());
                engine.flush();
                // It may be an answer for which others wait at a board.
                engine.advance_boards();
                self.announce(&mut engine);
            }
        }
        looking.end(&mut engine);
        engine.patience.end(&turns, completion.is_done());
        engine.tend();
        Ok((engine, false))
    }

    /// The same for an operation over the board of the group with this index. Returns whether it
    /// has stopped though pieces keep coming, because something else is due.
    fn spin_at_board<'a>(
        &'a self,
        mut engine: MutexGuard<'a, Engine>,
        completion: &Completion,
        at: usize,
    ) -> Result<(MutexGuard<'a, Engine>, bool), Error> {
        if completion.is_done() {
            return Ok((engine, false));
        }
        if engine.boards.is_crowded(at) {
            processors::leave_current();
        }
        // What goes beyond the host takes longer than a thread stares, and teaches nothing about
        // what does not.
        let is_wide = engine.boards.is_wide(at);
        let is_roomy = engine.boards.is_roomy(at) && !is_wide;
        let until = engine.lately() + LONGEST_SPIN;
        let mut keeps_coming = false;
        let mut began = engine.clock.last_reading();
        let Some(mut turns) = engine.patience_at_board(is_wide).begin(began) else { return Ok((engine, false)) };
        // What the turns have shown is learnt once.
        let mut is_learnt = false;
        // It is only needed by who speaks for the members of its host.
        let mut looking: Option<Looking> = None;
        while !completion.is_done() && turns.goes_on() {
            // A group that is being founded hears from its lane.
            let Some(lookout) = engine.boards.lookout(at) else { break };
            let is_short = engine.boards.flight(at).map(Completion::is_short);
            if is_short.is_some() && looking.is_none() {
                looking = Some(Looking::begin(&mut engine, 0));
            }
            let mut beyond = looking.as_mut().filter(|_| is_short.is_some());
            // Long operations come over a stream, for which a thread does not look but sleeps.
            if is_short == Some(false) && beyond.as_ref().is_some_and(|looking| !looking.is_near()) {
                break;
            }
            let mut stare = std::mem::take(&mut engine.stare);
            drop(engine);
            let mut has_landed = false;
            let mut look = || {
                has_landed = beyond.as_mut().is_some_and(|looking| looking.has_come());
                has_landed || lookout.has_come()
            };
            let found = (is_roomy && stare.look(&mut look)) || turns.look(&mut look);
            engine = self.lock()?;
            engine.stare = stare;
            engine.clock.note(turns.last_look());
            if !found {
                continue;
            }
            if let Some(looking) = looking.as_mut().filter(|_| has_landed) {
                looking.take(&mut engine, || true);
                engine.flush();
            }
            let position = engine.boards.position(at);
            engine.advance_boards();
            self.announce(&mut engine);
            // Each piece that comes of a long operation ends a wait: how long all of them take says
            // nothing about when the next comes. Those that come from beyond the host do not,
            // because they take longer than it pays to look for.
            if is_wide || completion.is_done() || engine.boards.position(at) == position {
                continue;
            }
            engine.clock.read();
            keeps_coming = engine.lately() >= until;
            if turns.last_look() != began {
                engine.patience_at_board(is_wide).end(&turns, true);
            }
            began = engine.clock.last_reading();
            let next = engine.patience_at_board(is_wide).begin(began).filter(|_| !keeps_coming);
            is_learnt = next.is_none();
            let Some(next) = next else { break };
            turns = next;
        }
        if let Some(looking) = looking {
            looking.end(&mut engine);
        }
        if turns.last_look() != began && !is_learnt {
            engine.patience_at_board(is_wide).end(&turns, completion.is_done());
        }
        // A program may do nothing but this, while others wait for what comes on a lane.
        if engine.lanes_are_busy() {
            engine.progress(Ready::ALL);
            self.announce(&mut engine);
        } else {
            engine.tend();
        }
        Ok((engine, keeps_coming))
    }

    fn block<'a>(
        &'a self,
        mut engine: MutexGuard<'a, Engine>,
        completion: &Completion,
        limit: Nanos,
        waiter: Waiter,
        mut keeps_coming: bool,
    ) -> Result<MutexGuard<'a, Engine>, Error> {
        if completion.is_done() {
            return Ok(engine);
        }
        let began = engine.now();
        let mut visits = Visits::begin(VISITS, engine.visit_meter, engine.clock.last_reading());
        while !completion.is_done() {
            let now = engine.now();
            if now >= limit {
                break;
            }
            let mut until = limit;
            if let Some(progress) = self.progress.as_ref().filter(|_| waiter == Waiter::Caller) {
                let is_due = now >= began + nanos(visits.due());
                if is_due {
                    drop(engine);
                    visits.visit(|| progress());
                    engine = self.lock()?;
                    if completion.is_done() {
                        break;
                    }
                }
                until = until.min(began + nanos(visits.due()));
            }
            if keeps_coming && let Some(at) = completion.board() {
                (engine, keeps_coming) = self.spin_at_board(engine, completion, at)?;
                continue;
            }
            // A sleep takes longer than a visit may be away while others send.
            let now = engine.now();
            let span = until.since(now);
            let until = if span < SHORTEST_SLEEP { now } else { until };
            engine = if engine.poller.is_some() {
                self.follow(engine, until.since(now))?
            } else {
                self.watch(engine, until, now)?
            };
        }
        if self.progress.is_some() && waiter == Waiter::Caller {
            engine.now();
            engine.visit_meter = visits.end(engine.clock.last_reading(), completion.is_done());
        }
        Ok(engine)
    }

    /// Sleeps while another thread is the poller.
    fn follow<'a>(&'a self, mut engine: MutexGuard<'a, Engine>, span: Nanos) -> Result<MutexGuard<'a, Engine>, Error> {
        self.stop_looking(&mut engine);
        engine.followers += 1;
        let slept = self.changed.wait_timeout(engine, Duration::from_nanos(span.0.min(FOLLOW_MAX.0)));
        let (mut engine, _) = slept.map_err(|_| poisoned())?;
        engine.followers -= 1;
        Ok(engine)
    }

    /// Sleeps as the poller, then drives progress.
    fn watch<'a>(
        &'a self,
        mut engine: MutexGuard<'a, Engine>,
        until: Nanos,
        now: Nanos,
    ) -> Result<MutexGuard<'a, Engine>, Error> {
        let sleeping = engine.begin_sleep(until);
        let (write, bell) = (engine.blocked(), engine.boards.bell().is_some());
        engine.poller = Some(super::Watch { write, bell, until: sleeping.until });
        drop(engine);
        let ready = sleep(&self.waker, &sleeping.sockets, sleeping.until.since(now));
        let mut engine = self.lock()?;
        engine.poller = None;
        engine.end_sleep(&sleeping, ready);
        // The context may have been finalized meanwhile, which has ended every operation.
        if !engine.stopping {
            engine.progress(ready);
            self.announce(&mut engine);
        }
        Ok(engine)
    }

    /// Called after progress under the lock. It wakes sleeping threads that the progress concerns.
    #[inline]
    pub(crate) fn announce(&self, engine: &mut Engine) {
        let mut finished = std::mem::take(&mut engine.boards.finished);
        for lane in &mut engine.lanes {
            finished |= std::mem::take(&mut lane.driver.finished);
        }
        if let Some(watch) = engine.poller {
            let more = engine.blocked() & !watch.write != 0 || engine.boards.bell().is_some() && !watch.bell;
            if finished || more || engine.next_deadline() < watch.until {
                self.waker.wake();
            }
        }
        if finished && engine.followers > 0 {
            self.changed.notify_all();
        }
    }

    /// Called when a thread that may have looked for itself sleeps or leaves. It wakes sleeping
    /// threads that its progress concerns, and those that it has looked for.
    pub(super) fn stop_looking(&self, engine: &mut Engine) {
        self.announce(engine);
        if engine.poller.is_some() && engine.boards.stop_looking() {
            self.waker.wake();
        }
    }

    /// Ends a call of the application. If no other thread waits, the helper has to look after what
    /// is still under way.
    pub(crate) fn leave(&self, mut engine: MutexGuard<'_, Engine>) {
        self.stop_looking(&mut engine);
        if engine.followers > 0 && engine.poller.is_none() {
            self.changed.notify_all();
        }
        let now = engine.lately();
        engine.active = now;
        if engine.waiters > 0 {
            return;
        }
        let mut needed = engine.next_deadline();
        if engine.is_busy() {
            engine.left_busy = now;
            needed = now + NEGLECT;
        }
        let unused = engine.may_be_revoked();
        needed = needed.min(engine.unused_lease.call_ends(now, unused));
        if needed < now + engine.heartbeat_half() {
            engine.left_due = now;
        }
        if needed + SLACK < engine.helper_until {
            engine.helper_until = needed;
            drop(engine);
            self.helper_waker.wake();
        }
    }
}

impl Engine {
    /// The error of a wait that is over before this operation, which is told as `what`.
    fn overdue(&self, part: &Completion, what: Option<&Signature>, timeout: Option<Duration>) -> Error {
        let directory = &*self.lanes[part.lane()].driver.directory;
        let what = what.map_or_else(|| "the group".to_owned(), |what| what.told(directory));
        let seen = part.board().and_then(|at| self.boards.late(at));
        let who = late_words(&seen.map(|standstill| standstill.late).unwrap_or_default(), directory);
        let ms = timeout.unwrap_or_default().as_millis();
        Error::Timeout(format!("{what} is not done after {ms} ms: {who}; it goes on, wait again or end the job"))
    }
}

/// Who is late, as far as this rank sees it.
fn late_words(late: &RankList, by: &dyn Directory) -> String {
    let names: Vec<String> = late.iter().map(|rank| by.rank(rank)).collect();
    match &names[..] {
        [] => "ranks are late, which `trib explain` names".to_owned(),
        [one] => format!("{one} is late"),
        [first @ .., last] if names.len() <= NAMED_MAX => format!("{} and {last} are late", first.join(", ")),
        _ => format!("{} and others are late, which `trib explain` names", names[..NAMED_MAX].join(", ")),
    }
}

/// A span of a caller's. What is longer than centuries is as long.
pub(super) fn nanos(span: Duration) -> Nanos {
    Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

/// The error after a thread panicked while it held the engine.
pub(crate) fn poisoned() -> Error {
    Error::broken("a thread panicked inside the protocol engine")
}

/// Of more late ranks an error names the first.
const NAMED_MAX: usize = 3;
/// How long a waiter drives progress itself before it sleeps. A small operation over two or three
/// levels takes about as long, however many yields that is.
pub(super) const YIELDS: Yields = Yields { span: Duration::from_micros(300), count: u32::MAX, turn: TURN };
/// The same at a board. Where members share processors, each of those that have this one's next
/// copies and folds up to a window of pieces before it waits, too.
pub(super) const BOARD_YIELDS: Yields = Yields { turn: Duration::from_millis(2), ..YIELDS };
/// How long a thread goes on at a board while pieces keep coming, before it looks at what else is
/// due: its own limit, the caller's progress function, the lanes.
const LONGEST_SPIN: Nanos = Nanos::from_micros(500);
/// Between two calls of the caller's progress function while a call blocks. A thousand wake-ups a
/// second cost 2 to 3 % of a core, which is too much over minutes; and a long wait is a wait for a
/// late rank and not for the network, so longer pauses cost nothing then. But other ranks may send
/// to this one through the caller's runtime meanwhile, in pieces each of which waits for a visit.
/// While visits find some and pay for it, the next piece is delayed by no more than a tenth of the
/// time that it took to come, so that a stream of pieces hardly stops; else by a third: on a loaded
/// machine its sender may have waited that long for a processor.
pub(crate) const VISITS: Rounds = Rounds {
    idle: Pause::growing(Duration::from_millis(1), Duration::from_millis(20), 100),
    close: Pause::growing(Duration::from_micros(5), Duration::from_millis(20), 10),
    busy: Pause::growing(Duration::from_millis(1), Duration::from_millis(20), 3),
};
/// The kernel lets a thread sleep for about as much longer than it asked to.
const SHORTEST_SLEEP: Nanos = Nanos::from_micros(50);
/// A follower wakes this often even if it is never woken.
const FOLLOW_MAX: Nanos = Nanos::from_millis(1000);
/// When the application has made no call for this long, the helper thread takes over.
pub(crate) const NEGLECT: Nanos = Nanos::from_millis(1);
/// The helper is not woken if it would wake by itself no more than this much later.
const SLACK: Nanos = Nanos::from_micros(200);

#[cfg(test)]
mod tests {
    use trib_wire::directory::Numbers;

    use super::*;

    #[test]
    fn late_ranks_are_named_and_many_are_not_listed() {
        let words = |count: u32| late_words(&RankList::from_ranks(3..3 + count), &Numbers);
        assert_eq!(words(0), "ranks are late, which `trib explain` names");
        assert_eq!(words(1), "rank 3 is late");
        assert_eq!(words(3), "rank 3, rank 4 and rank 5 are late");
        assert_eq!(words(4), "rank 3, rank 4, rank 5 and others are late, which `trib explain` names");
    }
}
