//! How a thread waits for what others do.
//!
//! There is one policy: *look, give way as long as that pays, then sleep*.
//!
//! - **Look** first. What is there is taken at once, and nothing is asked of the kernel for it.
//!   Where all who wait for each other have cores to themselves, look some hundred times:
//!   **stare**.
//! - **Give way** next: yield the core and look again. A yield costs a tenth of a sleep, and where
//!   there are more threads than cores, it is what lets the awaited thread run. It pays only if the
//!   wait usually ends soon, and only while nobody computes on this core.
//! - **Sleep** when the time for yields is over, or as soon as the core is known to be shared with
//!   a thread that computes. A sleep ends when something wakes the thread, or with a pause that is
//!   a share of the time waited so far, between two bounds.
//!
//! What differs between waiters is data, which stands with them and says why:
//!
//! | waiter | gives way | sleeps |
//! | --- | --- | --- |
//! | a rank in a call of ours | for 300 us, which is learnt | until woken, or to a deadline |
//! | the same, for the caller's runtime | not at all | 1 to 20 ms, after work 5 us |
//! | a worker of a node | 30 times, which is learnt | until woken, or to a deadline |
//! | a program's loop of tests | at every fourth test | 20 us, once its core is shared |
//! | an end that connects again | not at all | 5 to 200 ms, or 0.1 to 2 s, doubling |
//!
//! Map: `patience` (waits in a loop of ours: how many yields, learnt from wait to wait), `stare`
//! (looks before the first yield), `courtesy` (waits in a loop of the caller's), `pause` (how long
//! a sleep lasts if nothing wakes it), `visits` (when a waiting thread looks after other work),
//! `processor` (what all of this asks of the machine, which tests simulate), `clock` (the time,
//! read seldom).
//!
//! Invariants: nothing here knows for what a thread waits; no wait is without an end that its user
//! gives; nothing is allocated.

pub mod clock;
mod courtesy;
mod patience;
mod pause;
mod processor;
mod stare;
mod visits;

pub use courtesy::{Courtesy, Step};
pub use patience::{Patience, TURN, Turns, Yields};
pub use pause::Pause;
pub use stare::Stare;
pub use visits::{Meter, Rounds, Visits};
