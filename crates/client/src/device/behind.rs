//! An operation over memory of the host that was begun while chunks of others were still to be
//! posted: it is posted behind them, because members post in the same order.

use std::sync::Arc;
use std::time::Duration;

use trib_wire::Signature;
use trib_wire::directory::Numbers;

use crate::completion::Completion;
use crate::engine::Shared;
use crate::error::Error;
use crate::gate::Gate;

/// What the caller waits for.
pub(crate) struct Behind {
    signature: Signature,
    posted: Gate<Result<Arc<Completion>, Error>>,
}

impl Behind {
    pub(super) fn new(signature: Signature) -> Behind {
        Behind { signature, posted: Gate::new() }
    }

    /// What tells how it ends, once it has been posted, or why it has not.
    pub(crate) fn posted(&self) -> Option<Result<Arc<Completion>, Error>> {
        self.posted.value()
    }

    /// Whether it is over.
    pub(crate) fn is_done(&self) -> bool {
        self.posted().is_some_and(|posted| posted.map_or(true, |completion| completion.is_done()))
    }

    /// Waits until it has been posted.
    pub(crate) fn wait(&self, shared: &Shared, timeout: Option<Duration>) -> Result<Arc<Completion>, Error> {
        self.posted.wait(shared, timeout).unwrap_or_else(|| {
            Err(Error::Timeout(format!(
                "{} is not done after {} ms: it comes behind operations of its group that could not be posted yet, over \
                 memory of a GPU or sums whose members are late; it goes on, wait again or end the job",
                self.signature.told(&Numbers),
                timeout.unwrap_or_default().as_millis()
            )))
        })
    }
}

/// The feeder's share: if it is dropped before the operation is posted, the caller learns of that.
pub(super) struct ToPost(Arc<Behind>);

impl ToPost {
    pub(super) fn post(self, posted: Result<Arc<Completion>, Error>) {
        self.0.posted.open(posted);
    }
}

impl From<Arc<Behind>> for ToPost {
    fn from(behind: Arc<Behind>) -> ToPost {
        ToPost(behind)
    }
}

impl Drop for ToPost {
    fn drop(&mut self) {
        self.0.posted.open(Err(Error::broken("the thread that posts for the group has ended")));
    }
}
