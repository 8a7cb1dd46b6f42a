//! The caller's out-of-band collectives. Their root is always rank 0.
//!
//! For each call, a client allocates the message's length times the number of ranks on every rank,
//! and some clients count this in 32 bits. So long messages go in pieces. No message is empty.

use std::ffi::{c_int, c_void};

use trib_client::OutOfBand;
use trib_client::agreement::SHORT;

use crate::abi::{Bcast, Gather, OutOfBandCalls};
use crate::error::{EOOB, Failure};

/// The callbacks with their context.
pub struct Exchange {
    context: *mut c_void,
    bcast: Bcast,
    gather: Gather,
    /// Most ranks that take part.
    size: u32,
}

impl Exchange {
    /// The callbacks of a job or group of at most `size` ranks.
    pub fn new(calls: &OutOfBandCalls, context: *mut c_void, size: u32) -> Result<Exchange, Failure> {
        let missing = |name: &str| {
            Failure::invalid(format!(
                "oob_colls.{name} is NULL: without it this rank cannot tell the others, which wait for it in their exchange"
            ))
        };
        let bcast = calls.bcast.ok_or_else(|| missing("bcast"))?;
        let gather = calls.gather.ok_or_else(|| missing("gather"))?;
        Ok(Exchange { context, bcast, gather, size })
    }

    /// Returns every rank's bytes at rank 0, in the order of ranks. On other ranks the result has
    /// no meaning.
    pub fn gathered(&mut self, mine: &[u8]) -> Result<Vec<u8>, Failure> {
        // Some clients write to the receive buffer on every rank.
        let mut all = vec![0; mine.len() * self.size as usize];
        self.gather_into(mine, &mut all).map_err(|code| failed("gather", code))?;
        Ok(all)
    }

    /// Copies rank 0's bytes to all ranks.
    pub fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        self.bcast(bytes).map_err(|code| failed("bcast", code))
    }

    /// Gathers into `all`, which has room for every rank's bytes.
    fn gather_into(&mut self, mine: &[u8], all: &mut [u8]) -> Result<(), c_int> {
        let (context, len) = (self.context, length(mine.len())?);
        // SAFETY: the header's contract of the callback; both buffers are as long as it demands.
        outcome(unsafe { (self.gather)(context, 0, mine.as_ptr().cast_mut().cast(), all.as_mut_ptr().cast(), len) })
    }
}

impl OutOfBand for Exchange {
    fn gather(&mut self, mine: &[u8], all: Option<&mut [u8]>) -> Result<(), i32> {
        let room = mine.len() * self.size as usize;
        match all {
            Some(all) if all.len() >= room => self.gather_into(mine, all),
            // The caller wants the bytes of the first ranks only.
            Some(all) => {
                let mut whole = vec![0; room];
                self.gather_into(mine, &mut whole)?;
                all.copy_from_slice(&whole[..all.len()]);
                Ok(())
            }
            // Some clients write to the receive buffer on every rank.
            None => self.gather_into(mine, &mut vec![0; room]),
        }
    }

    fn bcast(&mut self, bytes: &mut [u8]) -> Result<(), i32> {
        // A message of at most [`SHORT`] bytes is never cut: it is sent before all ranks agree on
        // the size, and ranks that took the size for different numbers would cut it differently.
        let piece_len = (SCRATCH_MAX / self.size.max(1) as usize).max(SHORT);
        bytes.chunks_mut(piece_len).try_for_each(|piece| {
            // SAFETY: the header's contract of the callback; the buffer is as long as it demands.
            outcome(unsafe { (self.bcast)(self.context, piece.as_mut_ptr().cast(), length(piece.len())?, 0) })
        })
    }
}

fn length(len: usize) -> Result<c_int, c_int> {
    c_int::try_from(len).map_err(|_| EOOB)
}

fn outcome(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}

fn failed(what: &str, code: c_int) -> Failure {
    Failure::new(EOOB, format!("the out-of-band {what} of the caller gave {code}"))
}

/// The most bytes that one broadcast may make a client allocate, in a job of up to 65536 ranks.
const SCRATCH_MAX: usize = 64 << 20;
