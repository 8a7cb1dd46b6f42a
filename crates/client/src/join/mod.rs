//! Joining a job: a ticket from the manager, a connection to the own node, and one verdict for all ranks.
//!
//! ```text
//!  with an out-of-band exchange                     without
//!  gather  host names           -> rank 0           every rank: Attach at the manager, under one name
//!  rank 0: RequestJob           -> ticket           manager: the same ticket to all
//!  bcast   ticket or error
//!  every rank: connect to its node                  every rank: connect to its node
//!  gather  outcomes, bcast verdict                  a group of all ranks is made: only if everybody is there
//! ```

mod connect;
mod exchange;
mod hold;
mod manager;
mod rendezvous;

use std::time::{Duration, Instant};

pub(crate) use hold::Hold;

use crate::context::Context;
use crate::error::Error;
use crate::params::Params;

/// Joins the job.
pub(crate) fn join(mut params: Params) -> Result<Context, Error> {
    match params.oob.take() {
        Some(oob) => exchange::join(&params, oob),
        // The manager itself ends the others' waiting.
        None => params.check().and_then(|()| rendezvous::join(&params)),
    }
}

/// The end of the caller's patience.
#[derive(Clone, Copy)]
struct Deadline {
    at: Instant,
    whole: Duration,
}

impl Deadline {
    fn after(whole: Duration) -> Deadline {
        Deadline { at: Instant::now() + whole, whole }
    }

    /// The same with `more` before it ends.
    fn plus(self, more: Duration) -> Deadline {
        Deadline { at: self.at + more, whole: self.whole }
    }

    /// What the steps after the manager's answer may take: where the job may have waited for its turn, that does not count.
    fn after_waiting(self, wait: Duration) -> Deadline {
        if wait.is_zero() { self } else { Deadline::after(self.whole) }
    }

    fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// What is left, but enough for one try: a step whose turn comes late is not failed unseen.
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
            E::NoCredentials { .. } | E::BadCredentials { .. } | E::BadCertificate(_) => Error::Auth(text),
            E::VersionMismatch { .. } => Error::Version(text),
            E::Refused(refusal) => manager::refused(&refusal),
            _ => Error::Manager(text),
        }
    }
}
