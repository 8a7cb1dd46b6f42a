//! An operation in flight, as the caller that posted it holds it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trib_device::UserStream;

use crate::completion::Completion;
use crate::device::{Behind, Delivery};
use crate::engine::Shared;
use crate::error::Error;
use crate::sums::Taking;

/// A posted operation, or the creation of a group. Dropping it lets the operation go on; its
/// buffers stay the library's until it is done.
pub struct Request {
    shared: Arc<Shared>,
    under_way: UnderWay,
}

/// What tells how an operation ends.
enum UnderWay {
    /// The engine has it.
    Posted(Arc<Completion>),
    /// It is posted when those before it are.
    Behind(Arc<Behind>),
    /// It is a sum of several operations.
    Sum(Arc<Taking>),
    /// It is over memory of a GPU.
    Device(Arc<Delivery>),
}

impl Request {
    pub(crate) fn new(shared: Arc<Shared>, completion: Arc<Completion>) -> Request {
        Request { shared, under_way: UnderWay::Posted(completion) }
    }

    pub(crate) fn behind(shared: Arc<Shared>, behind: Arc<Behind>) -> Request {
        Request { shared, under_way: UnderWay::Behind(behind) }
    }

    pub(crate) fn taking(shared: Arc<Shared>, taking: Arc<Taking>) -> Request {
        Request { shared, under_way: UnderWay::Sum(taking) }
    }

    pub(crate) fn on_device(shared: Arc<Shared>, delivery: Arc<Delivery>) -> Request {
        Request { shared, under_way: UnderWay::Device(delivery) }
    }

    /// Drives progress once without waiting, and returns the outcome if there is one.
    pub fn test(&self) -> Option<Result<(), Error>> {
        let polled = if self.is_done() { Ok(()) } else { self.shared.poll() };
        // What the engine has is over where the engine is. All else is over when the threads say so
        // that have the buffers; a child after fork has no such threads.
        let of_engine = |completion: &Completion| match completion.outcome() {
            None => polled.as_ref().err().cloned().map(Err),
            outcome => outcome,
        };
        if !matches!(self.under_way, UnderWay::Posted(_))
            && let Err(error) = self.shared.fork.check()
        {
            return Some(Err(error));
        }
        match &self.under_way {
            UnderWay::Posted(completion) => of_engine(completion),
            UnderWay::Behind(behind) => match behind.posted()? {
                Ok(completion) => of_engine(&completion),
                Err(error) => Some(Err(error)),
            },
            UnderWay::Sum(taking) => taking.outcome(),
            UnderWay::Device(delivery) => delivery.outcome(),
        }
    }

    /// Waits for the outcome, at most `timeout`. After `Error::Timeout` the operation goes on.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<(), Error> {
        match &self.under_way {
            UnderWay::Posted(completion) => self.shared.wait(completion, timeout),
            UnderWay::Behind(behind) => {
                self.shared.fork.check()?;
                let began = Instant::now();
                let completion = behind.wait(&self.shared, timeout)?;
                match self.shared.wait(&completion, timeout.map(|span| span.saturating_sub(began.elapsed()))) {
                    Err(Error::Timeout(_)) => Err(self.shared.overdue(&completion, completion.what(), timeout)),
                    outcome => outcome,
                }
            }
            UnderWay::Sum(taking) => {
                self.shared.fork.check()?;
                taking.wait(&self.shared, timeout)
            }
            UnderWay::Device(delivery) => {
                self.shared.fork.check()?;
                delivery.wait(&self.shared, timeout)
            }
        }
    }

    /// Waits, at most `timeout`, until all that is left to do of an operation over memory of a GPU
    /// is queued there, and makes the stream wait for it: what the program queues from now on finds
    /// the result. An operation over memory of the host is waited for.
    pub fn wait_on_stream(&self, stream: UserStream, timeout: Option<Duration>) -> Result<(), Error> {
        match &self.under_way {
            UnderWay::Device(delivery) => {
                self.shared.fork.check()?;
                delivery.wait_on_stream(&self.shared, stream, timeout)
            }
            _ => self.wait(timeout),
        }
    }

    /// Whether the operation is over. It does not drive progress.
    pub fn is_done(&self) -> bool {
        match &self.under_way {
            UnderWay::Posted(completion) => completion.is_done(),
            UnderWay::Behind(behind) => behind.is_done(),
            UnderWay::Sum(taking) => taking.outcome().is_some(),
            // A child after fork must not call the driver.
            UnderWay::Device(delivery) => self.shared.fork.is_home() && delivery.outcome().is_some(),
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // A child after fork must not call the driver, as the end of the operation would.
        if let UnderWay::Device(delivery) = &self.under_way
            && !self.shared.fork.is_home()
        {
            std::mem::forget(delivery.clone());
        }
    }
}
