//! The helper thread drives progress while the application computes, and sends heartbeats while it
//! is idle.
//!
//! | the application ...                 | the helper ...                                      |
//! |-------------------------------------|-----------------------------------------------------|
//! | waits in a call of ours             | sleeps for half a heartbeat, or for a millisecond   |
//! |                                     | if the application used non-blocking calls lately,  |
//! |                                     | or for ten if it used streams lately, or if its last|
//! |                                     | call left something to be said later                |
//! | called us less than 1 ms ago        | sleeps for the rest of that millisecond             |
//! | computes; operations are under way  | drives progress; sleeps until a socket has          |
//! |                                     | something, at most until the next deadline          |
//! | computes; nothing is under way, but | the same, but sleeps on the streams alone, which    |
//! | the rank has a lease                | bring word if others want the lease (`lease`)       |
//! | computes; nothing at all            | sleeps until the next deadline (a heartbeat)        |
//!
//! So in a program that only uses blocking calls the helper wakes a few times a second, and never
//! for a short operation. With long ones, and in jobs whose nodes may move on, where a rank tells
//! which results it has once it rests, it wakes at most a hundred times a second, since it has to
//! see that the program has ceased to call.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use trib_proto::Nanos;

use super::lease::SETTLE;
use super::poll::{Ready, Sockets, sleep};
use super::wait::NEGLECT;
use super::{Engine, Shared};

/// Starts the thread. It ends when the engine is `leaving`.
pub(crate) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    // A thread inherits its creator's mask, and signals are for the application's threads.
    let _mask = SignalMask::block_all();
    Builder::new().name("tributary".into()).stack_size(STACK_LEN).spawn(move || run(&shared))
}

fn run(shared: &Shared) {
    // The bell was heard. Until it is cleared, no sleep on it lasts.
    let mut rung = false;
    loop {
        // A poisoned engine has failed for good; the application learns this from its next call.
        let Ok(mut engine) = shared.lock() else { return };
        if engine.leaving {
            return;
        }
        let now = engine.now();
        if engine.helper_tends(now) {
            engine.progress(Ready::all_with_bell(std::mem::take(&mut rung)));
            shared.announce(&mut engine);
        }
        let step = engine.next_step(now);
        let mut sleeping = None;
        let (sockets, until) = match step {
            Step::Rest(until) => (Sockets::NONE, until),
            Step::Watch(until) => (engine.begin_watch(), until),
            Step::Drive => {
                let sleep = sleeping.insert(engine.begin_sleep(Nanos::NEVER));
                (sleep.sockets, sleep.until)
            }
        };
        engine.helper_until = until;
        engine.unused_lease.watched = matches!(step, Step::Watch(_));
        let span = until.since(engine.now()).max(SLEEP_MIN);
        drop(engine);
        let ready = sleep(&shared.helper_waker, &sockets, span);
        rung |= ready.bell();
        let Ok(mut engine) = shared.lock() else { return };
        match &sleeping {
            Some(sleeping) => engine.end_sleep(sleeping, ready),
            None if matches!(step, Step::Watch(_)) => engine.end_watch(),
            None => {}
        }
        // What was watched is read even while a thread of the application's waits: it may be in the
        // caller's own progress function, and as long as nobody reads, no sleep lasts.
        if std::mem::take(&mut engine.unused_lease.watched) && ready.any_stream() && !engine.leaving {
            engine.progress(ready);
            shared.stop_looking(&mut engine);
        }
    }
}

/// What the helper does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// It sleeps.
    Rest(Nanos),
    /// It sleeps on the streams of unused leases.
    Watch(Nanos),
    /// It sleeps on all sockets.
    Drive,
}

impl Engine {
    /// Whether the helper drives progress before it sleeps: operations are under way, or a deadline
    /// has passed, and the application is elsewhere.
    fn helper_tends(&self, now: Nanos) -> bool {
        let due = if self.is_busy() { self.active + NEGLECT } else { self.next_deadline() };
        self.waiters == 0 && now >= due
    }

    fn next_step(&self, now: Nanos) -> Step {
        let called = self.waiters > 0;
        let watch_from = self.unused_lease.watch_from(self.may_be_revoked(), called);
        let until = match called {
            // If the helper slept long, a program that posts, computes and waits in turn would have
            // to wake it at every post.
            true if now.since(self.left_busy) < LATELY => now + NEGLECT,
            true if self.unused_lease.was_left_lately(now) => now + SETTLE,
            // The same for one whose calls leave something to be said after a pause.
            true if now.since(self.left_due) < LATELY => now + SETTLE,
            true => now + self.heartbeat_half(),
            false if self.is_busy() && now.since(self.active) < NEGLECT => self.active + NEGLECT,
            false if self.is_busy() => return Step::Drive,
            false => self.next_deadline(),
        };
        if now >= watch_from { Step::Watch(until) } else { Step::Rest(until.min(watch_from)) }
    }
}

/// Blocks every signal of this thread until dropped.
pub(crate) struct SignalMask {
    before: libc::sigset_t,
}

impl SignalMask {
    pub(crate) fn block_all() -> SignalMask {
        // SAFETY: a sigset_t is plain data; both sets are ours and live across the calls.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            SignalMask { before }
        }
    }
}

impl Drop for SignalMask {
    fn drop(&mut self) {
        // SAFETY: the set was filled in by `block_all`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// The stack's size in bytes. It is enough for the protocol core, whose frames on the stack are
/// small.
const STACK_LEN: usize = 512 * 1024;
/// A program that has left operations to the helper within this time is expected to do so again.
const LATELY: Nanos = Nanos::from_millis(10);
/// The shortest sleep, so that a deadline that has passed does not make the helper spin.
const SLEEP_MIN: Nanos = Nanos::from_micros(50);
