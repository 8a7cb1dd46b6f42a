//! The helper thread drives progress while the application computes, and sends heartbeats while it
//! is idle.
//!
//! | the application ...                 | the helper ...                                      |
//! |-------------------------------------|-----------------------------------------------------|
//! | waits in a call of ours             | sleeps for half a heartbeat, or for a millisecond   |
//! |                                     | if the application used non-blocking calls lately   |
//! | called us less than 1 ms ago        | sleeps for the rest of that millisecond             |
//! | computes; operations are under way  | drives progress; sleeps until a socket has          |
//! |                                     | something, at most until the next deadline          |
//! | computes; nothing is under way      | sleeps until the next deadline (a heartbeat)        |
//!
//! So in a program that only uses blocking calls the helper wakes a few times a second, and never
//! for an operation.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use trib_proto::Nanos;

use super::Shared;
use super::poll::{Ready, Sockets, sleep};
use super::wait::NEGLECT;

/// Starts the thread. It ends when the engine is `stopping`.
pub(crate) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    // A thread inherits its creator's mask, and signals are for the application's threads.
    let _mask = SignalMask::block_all();
    Builder::new().name("tributary".into()).stack_size(STACK_LEN).spawn(move || run(&shared))
}

fn run(shared: &Shared) {
    loop {
        // A poisoned engine has failed for good; the application learns this from its next call.
        let Ok(mut engine) = shared.lock() else { return };
        if engine.stopping {
            return;
        }
        let now = engine.now();
        let mut sleeping = None;
        let until = if engine.waiters > 0 {
            // If the helper slept long, a program that posts, computes and waits in turn would have
            // to wake it at every post.
            now + if now.since(engine.left_busy) < LATELY { NEGLECT } else { engine.heartbeat_half() }
        } else if !engine.is_busy() {
            if now >= engine.next_deadline() {
                engine.progress(Ready::ALL);
                shared.announce(&mut engine);
            }
            engine.next_deadline()
        } else if now.since(engine.active) < NEGLECT {
            engine.active + NEGLECT
        } else {
            engine.progress(Ready::ALL);
            shared.announce(&mut engine);
            sleeping.insert(engine.begin_sleep(Nanos::NEVER)).until
        };
        engine.helper_until = until;
        let span = until.since(engine.now()).max(SLEEP_MIN);
        drop(engine);
        let sockets = sleeping.as_ref().map_or(&Sockets::NONE, |sleeping| &sleeping.sockets);
        let ready = sleep(&shared.helper_waker, sockets, span);
        if let (Some(sleeping), Ok(mut engine)) = (&sleeping, shared.lock()) {
            engine.end_sleep(sleeping, ready);
        }
    }
}

/// Blocks every signal of this thread until dropped.
struct SignalMask {
    before: libc::sigset_t,
}

impl SignalMask {
    fn block_all() -> SignalMask {
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
