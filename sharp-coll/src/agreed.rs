//! What the environment of rank 0 decides for all ranks of a job.
//!
//! Ranks whose settings differ would wait for each other, or take different collectives for
//! possible.

use crate::error::Failure;
use crate::exchange::Exchange;
use crate::statistics::Mode;

/// The settings that all ranks share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// How counters are written.
    pub mode: Mode,
    /// Whether long vectors go by streams.
    pub has_streams: bool,
}

impl Agreed {
    /// Returns rank 0's. Collective over the job.
    pub fn by_rank_0(self, exchange: &mut Exchange) -> Result<Agreed, Failure> {
        let mut byte = [self.written()];
        exchange.broadcast(&mut byte)?;
        Ok(Agreed::read(byte[0]))
    }

    fn written(self) -> u8 {
        self.mode as u8 | if self.has_streams { STREAMS } else { 0 }
    }

    fn read(byte: u8) -> Agreed {
        let mode = Mode::of(u64::from(byte & !STREAMS)).unwrap_or(Mode::Off);
        Agreed { mode, has_streams: byte & STREAMS != 0 }
    }
}

/// The bit beside the mode.
const STREAMS: u8 = 1 << 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_says_all() {
        for mode in [Mode::Off, Mode::Each, Mode::Sum] {
            for has_streams in [false, true] {
                let agreed = Agreed { mode, has_streams };
                assert_eq!(Agreed::read(agreed.written()), agreed);
            }
        }
    }
}
