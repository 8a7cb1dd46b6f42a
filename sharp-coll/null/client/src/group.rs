//! Groups, and operations that end as the script says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use trib_wire::Signature;

use crate::error::Error;
use crate::script::{self, Fate};

/// Where the input of an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// The input is at this address.
    At(*const u8),
    /// The input is in the output buffer.
    InPlace,
}

/// A group of ranks, of which only this one exists.
pub struct Group {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    left: AtomicBool,
}

impl Group {
    pub(crate) fn new(rank: u32, size: u32) -> Group {
        Group { rank, size, left: AtomicBool::new(false) }
    }

    /// This process's rank in the group.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Members of the group.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The error that broke the group, if one did: that this rank has left it.
    pub fn error(&self) -> Option<Error> {
        self.has_left().then(gone)
    }

    fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// Leaves the group.
    pub fn leave(&self) -> Result<(), Error> {
        self.left.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Posts an operation.
    ///
    /// # Safety
    /// None of the buffers is looked at.
    pub unsafe fn start(&self, _signature: Signature, input: Input, output: *mut u8) -> Result<Request, Error> {
        if self.has_left() {
            return Err(gone());
        }
        let input = match input {
            Input::At(start) => start,
            Input::InPlace => output.cast_const(),
        };
        Ok(Request { fate: script::next(input) })
    }

    /// Posts an operation and waits for it.
    ///
    /// # Safety
    /// As for [`Group::start`].
    pub unsafe fn run(&self, signature: Signature, input: Input, output: *mut u8) -> Result<(), Error> {
        // SAFETY: the caller's contract.
        unsafe { self.start(signature, input, output) }?.wait(None)
    }
}

#[cold]
fn gone() -> Error {
    Error::Peer("this rank has left the group".into())
}

/// An operation.
pub struct Request {
    pub(crate) fate: Fate,
}

impl Request {
    /// The outcome, if there is one.
    pub fn test(&self) -> Option<Result<(), Error>> {
        match self.fate {
            Fate::Fails => Some(Err(Error::Peer("the script has an operation fail".into()))),
            _ => self.is_done().then_some(Ok(())),
        }
    }

    /// Waits for the outcome.
    pub fn wait(&self, _timeout: Option<Duration>) -> Result<(), Error> {
        loop {
            if let Some(outcome) = self.test() {
                return outcome;
            }
            std::thread::yield_now();
        }
    }

    /// Whether the operation is over.
    pub fn is_done(&self) -> bool {
        self.fate != Fate::Stays || !script::are_held()
    }
}
