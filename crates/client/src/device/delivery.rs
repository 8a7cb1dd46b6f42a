//! An operation over memory of a GPU, as its caller sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trib_device::{Event, UserStream};
use trib_waiting::Pause;
use trib_wire::Signature;
use trib_wire::directory::Numbers;

use super::from_device;
use crate::engine::Shared;
use crate::error::Error;
use crate::gate::Gate;

/// What the caller waits for.
pub(crate) struct Delivery {
    signature: Signature,
    issued: Gate<Issued>,
}

/// What has become of an operation.
#[derive(Clone)]
pub(super) enum Issued {
    /// All copies of the result are queued; it is there when the event has come.
    Copies(Arc<Event>),
    /// It is over, and no copy is under way.
    Over(Result<(), Error>),
}

impl Delivery {
    pub(super) fn new(signature: Signature) -> Delivery {
        Delivery { signature, issued: Gate::new() }
    }

    /// Says what has become of it.
    pub(super) fn issue(&self, issued: Issued) {
        self.issued.open(issued);
    }

    /// How it has ended, if it has.
    pub(crate) fn outcome(&self) -> Option<Result<(), Error>> {
        match self.issued.value()? {
            Issued::Over(outcome) => Some(outcome),
            Issued::Copies(event) => match event.has_come() {
                Ok(false) => None,
                Ok(true) => Some(Ok(())),
                Err(error) => Some(Err(from_device(error))),
            },
        }
    }

    /// Waits until the result is there.
    pub(crate) fn wait(&self, shared: &Shared, timeout: Option<Duration>) -> Result<(), Error> {
        let began = Instant::now();
        let event = match self.issued(shared, timeout)? {
            Issued::Over(outcome) => return outcome,
            Issued::Copies(event) => event,
        };
        let Some(limit) = timeout else { return event.wait().map_err(from_device) };
        // The driver knows no wait with a limit.
        loop {
            if event.has_come().map_err(from_device)? {
                return Ok(());
            }
            let waited = began.elapsed();
            if waited >= limit {
                return Err(self.late(limit));
            }
            std::thread::sleep(LOOKS.after(waited).min(limit - waited));
        }
    }

    /// Waits until all copies are queued, and makes the stream wait for them.
    pub(crate) fn wait_on_stream(
        &self,
        shared: &Shared,
        stream: UserStream,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        let event = match self.issued(shared, timeout)? {
            Issued::Over(outcome) => return outcome,
            Issued::Copies(event) => event,
        };
        let current = event.context().enter().map_err(from_device)?;
        stream.refuse_capture(&current).map_err(from_device)?;
        stream.wait(&current, &event).map_err(from_device)
    }

    fn issued(&self, shared: &Shared, timeout: Option<Duration>) -> Result<Issued, Error> {
        self.issued.wait(shared, timeout).ok_or_else(|| self.late(timeout.unwrap_or_default()))
    }

    fn late(&self, timeout: Duration) -> Error {
        Error::Timeout(format!(
            "{} is not done after {} ms: a stream of this rank's GPU is late, or ranks are, which `trib explain` names; \
             it goes on, wait again or end the job",
            self.signature.told(&Numbers),
            timeout.as_millis()
        ))
    }
}

/// How often a thread looks whether a copy is done. A copy of a chunk takes some 20 us or more.
const LOOKS: Pause = Pause::growing(Duration::from_micros(20), Duration::from_millis(1), 4);
