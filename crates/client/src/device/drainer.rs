//! The thread that waits for the results of chunks and copies them back to the device.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use trib_device::{Relaxed, driver};

use super::buffer::Returned;
use super::chunk::{Chunk, Passed};
use crate::completion::Completion;
use crate::engine::Shared;
use crate::error::Error;

pub(super) struct Drainer {
    shared: Arc<Shared>,
    passed: Receiver<Passed>,
    returned: Returned,
}

impl Drainer {
    pub(super) fn new(shared: Arc<Shared>, passed: Receiver<Passed>, returned: Returned) -> Drainer {
        Drainer { shared, passed, returned }
    }

    /// Runs until the feeder has ended and everything has been seen.
    pub(super) fn run(self) {
        let mut relaxed = None;
        while let Ok(Passed { mut chunk, posted }) = self.passed.recv() {
            relaxed.get_or_insert_with(|| driver().and_then(Relaxed::enter).ok());
            let outcome = posted.and_then(|completion| self.await_result(&completion, &mut chunk));
            match outcome.and_then(|()| chunk.copy_back()) {
                Ok(()) => chunk.work.pass(),
                Err(error) => chunk.work.fail(error),
            }
            if let Some(buffer) = chunk.buffer.take() {
                self.returned.give(Some(buffer));
            }
        }
    }

    fn await_result(&self, completion: &Completion, chunk: &mut Chunk) -> Result<(), Error> {
        let outcome = match &chunk.combined {
            Some((peers, _)) => peers.wait(completion),
            None => self.shared.wait_as_own(completion),
        };
        if !completion.is_done() {
            // The engine has failed for good, and the memory may still be in its hands.
            if let Some(buffer) = chunk.buffer.take() {
                buffer.lose();
                self.returned.give(None);
            }
        }
        outcome
    }
}
