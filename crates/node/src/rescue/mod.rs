//! The rescue of threads that are ready to run and get no processor.
//!
//! A node's neighbours cannot tell one that has no processor from one that is dead. On a machine
//! with more work than cores a thread waits milliseconds as a rule; but schedulers share time among
//! sessions and control groups, and programs that wait by yielding, as many of an MPI do, have kept
//! all others from a core for many seconds. Such a program waits for the node, and the node for the
//! core.
//!
//! ```text
//!   Fair --ready at two looks, and has not run between them--> First: before other programs
//!     ^                                                          |
//!     '-----------------------------HOLD is over-----------------'
//! ```
//!
//! One thread looks after all others of the process. It does nothing for the node's work, so it may
//! always go before other programs; the others may not, because a worker that interrupts the ranks
//! at every frame finds one frame at a time.

mod scheduling;

use std::collections::HashMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use scheduling::{Policy, Thread};

/// Starts the thread. It lives as long as the process, or ends at once where the process may not
/// put threads before other programs.
pub(crate) fn start() -> io::Result<()> {
    let watch = || {
        let own = scheduling::own();
        if let Err(error) = scheduling::put_first(own) {
            tracing::info!(%error, "no thread may go before other programs: on a busy machine the node may be late (LimitRTPRIO=1 lets it)");
            return;
        }
        let mut watched = Watched::default();
        loop {
            thread::sleep(LOOK);
            watched.look(own, Instant::now());
        }
    };
    thread::Builder::new().name("rescue".into()).spawn(watch).map(drop)
}

/// What the thread knows of the others.
#[derive(Default)]
struct Watched {
    all: HashMap<Thread, Record>,
}

#[derive(Default)]
struct Record {
    /// What it had run if it was ready to run when it was last looked at.
    ready: Option<u64>,
    /// Until when it goes before other programs, and how it was scheduled before that.
    first: Option<(Instant, Policy)>,
}

impl Watched {
    /// Looks at all threads of the process but its `own`.
    fn look(&mut self, own: Thread, now: Instant) {
        let threads = scheduling::threads();
        self.all.retain(|thread, _| threads.contains(thread));
        for thread in threads.into_iter().filter(|thread| *thread != own) {
            // A thread that is not to be seen has ended.
            let ready = scheduling::ready(thread);
            match self.all.entry(thread).or_default().step(ready, now) {
                None => {}
                Some(Step::Put(first)) => match scheduling::put_first(thread) {
                    Ok(policy) => {
                        let (name, looks_ms) = (scheduling::name(thread), LOOK.as_millis());
                        tracing::warn!(name, looks_ms, "a thread gets no processor: it goes before other programs now");
                        self.all.entry(thread).or_default().first = Some((first, policy));
                    }
                    Err(error) => tracing::debug!(%error, "a thread that gets no processor cannot be helped"),
                },
                Some(Step::Restore(policy)) => {
                    if let Err(error) = scheduling::restore(thread, policy) {
                        tracing::debug!(%error, "a thread still goes before other programs");
                    }
                }
            }
        }
    }
}

/// What becomes of a thread.
#[derive(PartialEq, Eq, Debug)]
enum Step {
    /// It goes before other programs until this time.
    Put(Instant),
    /// It is scheduled as before.
    Restore(Policy),
}

impl Record {
    /// The thread was looked at. `ready` is what it has run so far, if it is ready to run.
    fn step(&mut self, ready: Option<u64>, now: Instant) -> Option<Step> {
        let waits = ready.is_some() && ready == self.ready;
        self.ready = ready;
        match self.first {
            None if waits => Some(Step::Put(now + HOLD)),
            Some((until, policy)) if now >= until => {
                self.first = None;
                Some(Step::Restore(policy))
            }
            _ => None,
        }
    }
}

/// How often threads are looked at. One that is ready for as long as that and has not run is late.
const LOOK: Duration = Duration::from_millis(500);
/// How long such a thread goes before others. What kept it from a processor goes on, as a rule.
const HOLD: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
