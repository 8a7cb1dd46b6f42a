//! The engine: the lanes of a job, and the caller's memory, behind one lock.
//!
//! `lane` is the leaf core and the sockets of one lane, `lanes` what concerns several. `driver`
//! does what a core asks for, and `operation` is what it remembers of an operation. `poll` sleeps,
//! `wait` is how application threads wait, `looking` how one looks at a lane meanwhile, `helper` is
//! our one thread, and `lease` says when it has to watch the streams; `sleepers` keeps both of them
//! from being forgotten where they sleep on one bell. `boards` does what ranks of one host do
//! together, without any lane as far as they can.
//!
//! ```text
//!   post, test, wait        helper thread
//!          \                  /
//!           +---- lock ------+
//!                  |
//!    sockets --> LeafCore --> Driver --> sockets, memory, requests      once for each lane
//!    memory of the host <--> Boards --> memory, requests                groups of one host
//! ```

mod boards;
mod driver;
mod helper;
mod kept;
mod lane;
mod lanes;
mod lease;
mod looking;
mod operation;
mod poll;
mod roaming;
mod seals;
mod sleepers;
mod wait;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use trib_messages::job::LANES_MAX;
use trib_proto::{Limits, Nanos};
use trib_transport::tcp::HandshakeError;
use trib_waiting::clock::Clock;
use trib_waiting::{Meter, Patience, Stare};
use trib_wire::{GroupName, RankList};

use crate::completion::Completion;
use crate::counters::Counters;
use crate::error::Error;
use crate::fork::ForkGuard;
use crate::group_state::{GroupState, Purpose};
use crate::lanes::Lanes;
use crate::params::Progress;
use crate::posting::{Part, Posting};
use crate::way::Connection;
pub(crate) use boards::HostTrees;
use boards::{Boards, FirstWait, Ran};
pub(crate) use helper::SignalMask;
use lane::Lane;
pub(crate) use lane::Sources;
use lease::UnusedLease;
use operation::Operation;
use poll::{Ready, Sockets, Waker};
pub(crate) use wait::VISITS;
use wait::{Waiter, poisoned};

/// What all handles of one context share.
pub(crate) struct Shared {
    pub(crate) fork: ForkGuard,
    /// How operations are distributed over the lanes.
    lanes: Lanes,
    trees: Option<Arc<HostTrees>>,
    engine: Mutex<Engine>,
    /// Signalled when requests have ended or a poller is needed.
    changed: Condvar,
    /// Wakes the poller.
    waker: Waker,
    helper_waker: Waker,
    progress: Option<Progress>,
    /// How many operations were begun in which GPUs of a host combine.
    pub(crate) combined: AtomicU64,
}

/// What the poller watches while it sleeps with the engine unlocked.
#[derive(Clone, Copy, Debug)]
struct Watch {
    /// The lanes whose stream is watched for room to write, a bit for each.
    write: u8,
    /// Whether the bell of the boards is watched.
    bell: bool,
    until: Nanos,
}

/// A sleep on the sockets.
#[derive(Clone, Copy, Debug)]
struct Sleep {
    sockets: Sockets,
    until: Nanos,
    /// For each lane, when its stream is no longer trusted to bring as many bytes as its low-water
    /// mark asks for. It is never, where the stream has no such mark.
    marked: [Nanos; LANES_MAX],
}

/// Everything behind the lock.
pub(crate) struct Engine {
    lanes: Box<[Lane]>,
    boards: Boards,
    clock: Clock,
    patience: Patience,
    /// The same for operations over boards, and over those that go beyond the host.
    board_patience: Patience,
    wide_patience: Patience,
    stare: Stare,
    /// What a visit to the caller's progress function costs that finds nothing.
    visit_meter: Meter,
    /// Application threads inside a wait.
    waiters: u32,
    /// How many of them sleep beside the poller.
    followers: u32,
    /// What the poller watches, if one of them sleeps on the sockets.
    poller: Option<Watch>,
    /// When the application last called.
    active: Nanos,
    /// When the application last left a call while operations were under way.
    left_busy: Nanos,
    /// When it last left one after which something was to be done soon.
    left_due: Nanos,
    /// When the helper thread wakes by itself.
    helper_until: Nanos,
    unused_lease: UnusedLease,
    /// A thread has begun to finalize. The helper drives no progress from then on.
    leaving: bool,
    /// It has done so.
    stopping: bool,
}

impl Shared {
    /// Starts an engine and its helper thread; `sources` are the sockets of the lanes. With
    /// `trees` groups of one host look for boards, on which this process takes part if it `shares`
    /// memory.
    pub(crate) fn start(
        lanes: Lanes,
        sources: Vec<Sources>,
        (trees, shares): (Option<Arc<HostTrees>>, bool),
        progress: Option<Progress>,
    ) -> Result<(Arc<Shared>, JoinHandle<()>), Error> {
        let failed = |what: &str, cause: std::io::Error| Error::Memory(format!("cannot make {what}: {cause}"));
        let waker = || Waker::new().map_err(|cause| failed("a wake-up event", cause));
        let (waker, helper_waker) = (waker()?, waker()?);
        let boards = Boards::new(trees.clone(), shares);
        let shared = Arc::new_cyclic(|home| Shared {
            fork: ForkGuard::new(),
            lanes,
            trees,
            engine: Mutex::new(Engine::new(sources, boards, home)),
            changed: Condvar::new(),
            waker,
            helper_waker,
            progress,
            combined: AtomicU64::new(0),
        });
        let helper = helper::start(shared.clone()).map_err(|cause| failed("the helper thread", cause))?;
        Ok((shared, helper))
    }

    /// How operations are distributed over the lanes.
    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Whether a group of these members looks for a board. All ranks get the same answer.
    pub(crate) fn looks_for_board(&self, members: &RankList) -> bool {
        self.trees.as_ref().is_some_and(|trees| trees.have_board(members))
    }

    /// The members of each host of a group, in the order in which they are folded, if hosts have
    /// equally many. All ranks get the same answer.
    pub(crate) fn rows_of_hosts(&self, members: &RankList) -> Option<Vec<Vec<u32>>> {
        self.trees.as_ref()?.rows(members)
    }

    /// Locks the engine for a call of the application.
    #[inline]
    pub(crate) fn enter(&self) -> Result<MutexGuard<'_, Engine>, Error> {
        self.fork.check()?;
        let engine = self.lock()?;
        if engine.stopping {
            return Err(Error::Invalid("the context is finalized".into()));
        }
        Ok(engine)
    }

    #[inline]
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Engine>, Error> {
        self.engine.lock().map_err(|_| poisoned())
    }

    /// Drives progress once, without waiting.
    pub(crate) fn poll(&self) -> Result<(), Error> {
        let mut engine = self.enter()?;
        engine.progress(Ready::ALL);
        self.leave(engine);
        Ok(())
    }

    /// Posts an operation.
    pub(crate) fn post(&self, group: &GroupState, posting: Posting) -> Result<Arc<Completion>, Error> {
        let mut engine = self.enter()?;
        let posted = engine.post(&self.lanes, group, posting);
        engine.flush();
        self.leave(engine);
        posted
    }

    /// Posts an operation and waits for it.
    pub(crate) fn run(&self, group: &GroupState, mut posting: Posting) -> Result<(), Error> {
        let mut engine = self.enter()?;
        let completion = match engine.run(group, &mut posting) {
            // Nothing has changed but the board. If lanes are neglected for it, the helper has to
            // look after them.
            Ran::Over => return Ok(()),
            Ran::Begun(completion) => completion,
            Ran::Not => match engine.post(&self.lanes, group, posting) {
                Ok(completion) => completion,
                Err(error) => {
                    self.leave(engine);
                    return Err(error);
                }
            },
        };
        self.wait_inside(engine, &completion, None, Waiter::Caller)
    }

    /// Starts to make a group in which this process has `rank`.
    pub(crate) fn create_group(
        &self,
        purpose: Purpose,
        rank: u32,
        members: RankList,
        tag: u64,
        name: GroupName,
    ) -> Result<Arc<GroupState>, Error> {
        let mut engine = self.enter()?;
        let created = engine.create_group(purpose, rank, &members, tag, name);
        engine.flush();
        self.leave(engine);
        created
    }

    /// Leaves a group, which fails with `why` from now on; once is enough. After finalize there is
    /// none to leave, and a forked child may not.
    pub(crate) fn leave_group(&self, state: &GroupState, why: Error) -> Result<(), Error> {
        if !state.leave() {
            return Ok(());
        }
        let worked = state.fail(why);
        self.fork.check()?;
        let mut engine = self.lock()?;
        if !engine.stopping {
            engine.free_group(state, worked);
            engine.flush();
            self.leave(engine);
        }
        Ok(())
    }

    /// What the caller's runtime wants to be called while one of its threads waits.
    pub(crate) fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }

    pub(crate) fn counters(&self) -> Result<Counters, Error> {
        let operations_combined = self.combined.load(Ordering::Relaxed);
        Ok(Counters { operations_combined, ..self.enter()?.counters() })
    }

    pub(crate) fn limits(&self) -> Result<Limits, Error> {
        Ok(self.enter()?.lanes[0].limits())
    }

    /// A lane's call of its node has ended.
    fn called(&self, at: usize, outcome: Result<Connection, HandshakeError>) {
        // A poisoned engine has failed for good.
        let Ok(mut engine) = self.lock() else { return };
        if engine.stopping {
            return;
        }
        let now = engine.now();
        engine.lanes[at].called(now, outcome);
        engine.spread_failures();
        self.announce(&mut engine);
        drop(engine);
        // Those that sleep have yet to watch the new connection.
        self.waker.wake();
        self.helper_waker.wake();
    }

    /// Leaves every group, waits at most `linger` for queued frames and for what other ranks may
    /// still need of this one, or longer if they may ask it how a group has ended, and closes the
    /// sockets. The helper thread ends first: what it read would not wake this one.
    pub(crate) fn stop(&self, linger: Duration) -> Result<(), Error> {
        let mut engine = self.enter()?;
        engine.leaving = true;
        self.helper_waker.wake();
        engine.leave_groups();
        let began = engine.now();
        loop {
            engine.progress(Ready::ALL);
            self.announce(&mut engine);
            let now = engine.now();
            let left_behind = engine.lanes.iter().any(|lane| lane.groups_left_behind() > 0);
            let asked = engine.lanes.iter().filter_map(|lane| lane.stays_for()).max();
            let end = began + asked.unwrap_or(Nanos(linger.as_nanos() as u64));
            if (engine.blocked() == 0 && !left_behind && asked.is_none()) || now >= end {
                break;
            }
            let sleeping = engine.begin_sleep(end);
            drop(engine);
            let ready = poll::sleep(&self.waker, &sleeping.sockets, sleeping.until.since(now));
            engine = self.lock()?;
            engine.end_sleep(&sleeping, ready);
        }
        engine.stopping = true;
        engine.lanes.iter_mut().for_each(Lane::close);
        Ok(())
    }
}

impl Engine {
    fn new(sources: Vec<Sources>, boards: Boards, home: &Weak<Shared>) -> Engine {
        let alone = sources.len() == 1;
        let lanes = sources.into_iter().enumerate();
        Engine {
            lanes: lanes.map(|(at, sources)| Lane::new(sources, (home.clone(), at), alone)).collect(),
            boards,
            clock: Clock::start(),
            patience: Patience::new(wait::YIELDS),
            board_patience: Patience::new(wait::BOARD_YIELDS),
            wide_patience: Patience::new(wait::YIELDS),
            stare: Stare::default(),
            visit_meter: Meter::default(),
            waiters: 0,
            followers: 0,
            poller: None,
            active: Nanos(0),
            left_busy: Nanos(0),
            left_due: Nanos(0),
            helper_until: Nanos(0),
            unused_lease: UnusedLease::default(),
            leaving: false,
            stopping: false,
        }
    }

    /// Reads the clock.
    fn now(&mut self) -> Nanos {
        Nanos(self.clock.read())
    }

    /// The clock's last reading, at the last post, poll or return from a sleep.
    fn lately(&self) -> Nanos {
        Nanos(self.clock.last())
    }

    /// Does an operation whose caller waits for it at once, if it can.
    #[inline]
    fn run(&mut self, group: &GroupState, posting: &mut Posting) -> Ran {
        let Posting::Whole(Part { signature, memory, .. }) = posting else { return Ran::Not };
        let Engine { boards, stare, board_patience: patience, clock, .. } = self;
        let ran = boards.run(group, *signature, memory, &mut FirstWait { stare, patience, clock });
        if let Ran::Begun(_) = ran {
            self.now();
        }
        ran
    }

    /// The index of the group among those that have boards, if this operation goes there.
    #[inline]
    fn board_for(&self, group: &GroupState, posting: &Posting) -> Option<usize> {
        let Posting::Whole(Part { signature, .. }) = posting else { return None };
        self.boards.takes(group, signature)
    }

    fn post(&mut self, lanes: &Lanes, group: &GroupState, posting: Posting) -> Result<Arc<Completion>, Error> {
        let posted = self.post_now(lanes, group, posting);
        self.unused_lease.posted(self.may_be_revoked());
        posted
    }

    fn post_now(&mut self, lanes: &Lanes, group: &GroupState, posting: Posting) -> Result<Arc<Completion>, Error> {
        let now = self.now();
        if let Some(at) = self.board_for(group, &posting)
            && let Posting::Whole(part) = posting
        {
            return self.boards.post(at, (now, &mut self.lanes[0]), part);
        }
        match (&mut self.lanes[..], posting) {
            ([lane], Posting::Whole(Part { signature, memory, stretch_of })) => {
                let completion = Arc::new(Completion::on_lane(0, signature));
                let [id] = group.ids() else { return Err(unnamed()) };
                let operation = Operation::new(*id, memory, completion.clone()).stretch_of(stretch_of);
                let posted = lane.post(now, None, signature, operation);
                // The core has forgotten a group that was left; the group says why it fails.
                posted.map_err(|error| group.error().cloned().unwrap_or(error))?;
                if group.board().is_some() {
                    self.boards.note(group, (now, lane), signature);
                }
                Ok(completion)
            }
            (_, posting) => self.post_on_lanes(now, lanes, group, posting),
        }
    }

    /// Reads what the sockets have, lets timers act, writes what is queued.
    fn progress(&mut self, ready: Ready) {
        let now = self.now();
        self.lanes[0].done_at_boards(self.boards.operations());
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            lane.progress(now, ready.datagram(at), ready.stream(at));
        }
        self.spread_failures();
        self.boards.progress(now, &mut self.lanes[0], ready.bell());
    }

    fn patience_at_board(&mut self, is_wide: bool) -> &mut Patience {
        if is_wide { &mut self.wide_patience } else { &mut self.board_patience }
    }

    /// Goes on with the groups that have boards.
    fn advance_boards(&mut self) {
        let now = self.lately();
        self.boards.progress(now, &mut self.lanes[0], false);
    }

    /// Lets timers act.
    fn tend(&mut self) {
        let now = self.lately();
        self.lanes[0].done_at_boards(self.boards.operations());
        self.lanes.iter_mut().for_each(|lane| lane.tend(now));
        self.spread_failures();
    }

    fn flush(&mut self) {
        let now = self.lately();
        self.lanes.iter_mut().for_each(|lane| lane.flush(now));
        self.spread_failures();
    }
}

/// The lanes name a group before a caller gets it, so this is a bug.
fn unnamed() -> Error {
    Error::broken("an operation for a group without a name")
}
