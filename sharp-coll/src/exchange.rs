//! The caller's out-of-band collectives, on the root 0 only.
//!
//! Clients make room of length times size at every rank for each call, some of them counted in 32 bits: long messages go in
//! pieces. Nothing empty is ever sent.

use std::ffi::{c_int, c_void};

use trib_client::OutOfBand;

use crate::abi::{Bcast, Gather, OutOfBandCalls};
use crate::error::{EOOB, Failure};

/// The callbacks with the context that they belong to.
pub struct Exchange {
    context: *mut c_void,
    bcast: Bcast,
    gather: Gather,
    size: u32,
}

impl Exchange {
    /// For a job or group of `size` ranks.
    pub fn new(calls: &OutOfBandCalls, context: *mut c_void, size: u32) -> Result<Exchange, Failure> {
        let missing = |name: &str| Failure::invalid(format!("oob_colls.{name} is NULL"));
        let bcast = calls.bcast.ok_or_else(|| missing("bcast"))?;
        let gather = calls.gather.ok_or_else(|| missing("gather"))?;
        Ok(Exchange { context, bcast, gather, size })
    }

    /// Everybody's bytes at rank 0, in the order of ranks; of no meaning elsewhere.
    pub fn gathered(&mut self, mine: &[u8]) -> Result<Vec<u8>, Failure> {
        // Some clients write to it on every rank.
        let mut all = vec![0; mine.len() * self.size as usize];
        // SAFETY: the header's contract of the callback; both buffers are as long as it says.
        let code = unsafe {
            (self.gather)(
                self.context,
                0,
                mine.as_ptr().cast_mut().cast(),
                all.as_mut_ptr().cast(),
                length(mine.len())?,
            )
        };
        outcome("gather", code)?;
        Ok(all)
    }

    /// Rank 0's bytes, everywhere.
    pub fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        let piece_len = (SCRATCH_MAX / self.size.max(1) as usize).max(1);
        for piece in bytes.chunks_mut(piece_len) {
            // SAFETY: as above.
            let code = unsafe { (self.bcast)(self.context, piece.as_mut_ptr().cast(), length(piece.len())?, 0) };
            outcome("bcast", code)?;
        }
        Ok(())
    }
}

impl OutOfBand for Exchange {
    fn gather(&mut self, mine: &[u8], all: Option<&mut [u8]>) -> Result<(), i32> {
        let gathered = self.gathered(mine).map_err(|failure| failure.code)?;
        if let Some(all) = all {
            all.copy_from_slice(&gathered);
        }
        Ok(())
    }

    fn bcast(&mut self, bytes: &mut [u8]) -> Result<(), i32> {
        self.broadcast(bytes).map_err(|failure| failure.code)
    }
}

fn length(len: usize) -> Result<c_int, Failure> {
    c_int::try_from(len).map_err(|_| Failure::new(EOOB, format!("{len} bytes are too many for an out-of-band call")))
}

fn outcome(what: &str, code: c_int) -> Result<(), Failure> {
    if code == 0 {
        Ok(())
    } else {
        Err(Failure::new(EOOB, format!("the out-of-band {what} of the caller gave {code}")))
    }
}

/// Most bytes that one broadcast may make a client allocate.
const SCRATCH_MAX: usize = 64 << 20;
