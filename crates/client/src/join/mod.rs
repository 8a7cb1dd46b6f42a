//! Joining a job: a ticket from the manager, a connection to this rank's node, and one verdict for
//! all ranks.
//!
//! ```text
//!  with an out-of-band exchange                     without
//!  gather  hosts and domains    -> rank 0           every rank: Attach at the manager, by name
//!  rank 0: RequestJob           -> ticket           manager: the same ticket to all
//!  bcast   ticket or error
//!  every rank: connect to its node                  every rank: connect to its node
//!  gather  outcomes, bcast verdict                  a group of all ranks becomes ready
//! ```

mod candidacy;
mod connect;
mod exchange;
mod hold;
mod manager;
mod numa;
mod rendezvous;
mod ties;

use std::time::{Duration, Instant};

pub(crate) use ties::Ties;
use trib_messages::prediction::Prediction;

use crate::error::Error;
use crate::log;
use crate::params::Params;
use hold::Hold;

/// A job that was joined.
pub(crate) struct Joined {
    pub(crate) ties: Ties,
    /// What the manager predicts for its operations.
    pub(crate) prediction: Option<Prediction>,
}

/// Joins the job.
pub(crate) fn join(mut params: Params) -> Result<Joined, Error> {
    log::begin(&params);
    let began = Instant::now();
    let joined = match params.oob.take() {
        Some(oob) => exchange::join(&params, oob),
        // Without an exchange the manager itself ends the wait of the others.
        None => params.check().and_then(|()| rendezvous::join(&params)),
    };
    match &joined {
        Ok(_) => tracing::info!(ranks = params.size, after = ?began.elapsed(), "this rank has joined its job"),
        Err(cause) => tracing::info!(%cause, "this rank has joined no job"),
    }
    joined
}

/// The end of the time that the caller allows.
#[derive(Clone, Copy)]
struct Deadline {
    at: Instant,
    whole: Duration,
}

impl Deadline {
    fn after(whole: Duration) -> Deadline {
        Deadline { at: Instant::now() + whole, whole }
    }

    /// A deadline that ends later by `more`.
    fn plus(self, more: Duration) -> Deadline {
        Deadline { at: self.at + more, whole: self.whole }
    }

    /// The deadline of the steps after the manager's answer. If the job may wait for its turn, the
    /// time that it waited does not count.
    fn after_waiting(self, wait: Duration) -> Deadline {
        if wait.is_zero() { self } else { Deadline::after(self.whole) }
    }

    fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// The time that is left, but at least enough for one try, so that a step whose turn comes late
    /// still gets one.
    fn left_for_a_try(&self) -> Duration {
        self.left().max(Duration::from_millis(500))
    }
}

impl From<trib_control::Error> for Error {
    fn from(error: trib_control::Error) -> Error {
        use trib_control::Error as E;
        let text = error.to_string();
        match error {
            E::BadUrl { .. } => Error::Invalid(text),
            E::NoCredentials { .. }
            | E::BadCredentials { .. }
            | E::BadCertificate(_)
            | E::Ended { .. }
            | E::Withdrawn { .. } => Error::Auth(text),
            E::VersionMismatch { .. } => Error::Version(text),
            E::Refused(refusal) => manager::refused(&refusal),
            _ => Error::Manager(text),
        }
    }
}
