//! A sum that a thread of the library takes while the caller goes on.

use std::sync::Arc;
use std::time::Duration;

use trib_wire::directory::Numbers;

use super::sum::Sum;
use crate::engine::Shared;
use crate::error::Error;
use crate::gate::Gate;

/// What the caller waits for.
pub(crate) struct Taking {
    sum: Sum,
    outcome: Gate<Result<(), Error>>,
}

impl Taking {
    pub(crate) fn new(sum: Sum) -> Taking {
        Taking { sum, outcome: Gate::new() }
    }

    /// How it ended, if it is over.
    pub(crate) fn outcome(&self) -> Option<Result<(), Error>> {
        self.outcome.value()
    }

    /// Waits until it is over.
    pub(crate) fn wait(&self, shared: &Shared, timeout: Option<Duration>) -> Result<(), Error> {
        self.outcome.wait(shared, timeout).unwrap_or_else(|| {
            let signature = self.sum.signature();
            Err(match self.sum.current() {
                Some(current) => shared.overdue(&current, Some(&signature), timeout),
                None => Error::Timeout(format!(
                    "{} is not done after {} ms; it goes on, wait again or end the job",
                    signature.told(&Numbers),
                    timeout.unwrap_or_default().as_millis()
                )),
            })
        })
    }
}

/// The thread's share: if it is dropped before the sum is over, the caller learns of that.
pub(crate) struct ToTake(Arc<Taking>);

impl ToTake {
    /// Takes the sum with what takes it.
    pub(crate) fn take(self, by: impl FnOnce(&Sum) -> Result<(), Error>) {
        let outcome = by(&self.0.sum);
        self.0.outcome.open(outcome);
    }
}

impl From<Arc<Taking>> for ToTake {
    fn from(taking: Arc<Taking>) -> ToTake {
        ToTake(taking)
    }
}

impl Drop for ToTake {
    fn drop(&mut self) {
        self.0.outcome.open(Err(Error::broken("the thread that posts for the group has ended")));
    }
}
