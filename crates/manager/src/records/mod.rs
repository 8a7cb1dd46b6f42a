//! What the manager writes down of jobs: while they live, and when they are over.
//!
//! ```text
//!   jobs       which jobs are admitted
//!   departed   names of jobs that left, for what nodes may still say of them
//!   past       the newest jobs that ended and the newest requests that were refused
//!     keeper   brings refusals to the file, while nobody waits for that
//!   store      the file of both, for the next manager
//!   ledger     how many requests were granted and refused, and how long that took
//! ```

mod departed;
pub(crate) mod jobs;
pub(crate) mod ledger;
pub(crate) mod past;
pub(crate) mod store;
