//! An operation in flight, as the caller that posted it holds it.

use std::sync::Arc;
use std::time::Duration;

use crate::completion::Completion;
use crate::engine::Shared;
use crate::error::Error;

/// A posted operation, or the creation of a group. Dropping it lets the operation go on; its
/// buffers stay the library's until it is done.
pub struct Request {
    shared: Arc<Shared>,
    completion: Arc<Completion>,
}

impl Request {
    pub(crate) fn new(shared: Arc<Shared>, completion: Arc<Completion>) -> Request {
        Request { shared, completion }
    }

    /// Drives progress once without waiting, and returns the outcome if there is one.
    pub fn test(&self) -> Option<Result<(), Error>> {
        if !self.completion.is_done()
            && let Err(error) = self.shared.poll()
        {
            return Some(Err(error));
        }
        self.completion.outcome()
    }

    /// Waits for the outcome, at most `timeout`. After `Error::Timeout` the operation goes on.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<(), Error> {
        self.shared.wait(&self.completion, timeout)
    }

    /// Whether the operation is over. It does not drive progress.
    pub fn is_done(&self) -> bool {
        self.completion.is_done()
    }
}
