//! One operation of the benchmark: its buffers, and the result that must come out.
//!
//! Two rounds of input are made beforehand and used in turn, so that a result left over from the
//! last iteration is a wrong one. The comparison with the expected bytes is then cheap enough for
//! every element of every iteration.

use trib_client::{Collective, DataType, Error, Group, Input, ReduceOp, Request, operation};

use super::values::{Values, raw};

/// The operation.
pub(super) struct Work {
    pub(super) collective: Collective,
    /// The length of the vector in bytes.
    pub(super) bytes: u64,
    dtype: DataType,
    op: ReduceOp,
    rounds: [Round; 2],
    output: Vec<u8>,
}

/// Input and result of one round. They are empty if this rank gives or gets nothing.
struct Round {
    input: Vec<u8>,
    expected: Vec<u8>,
}

/// Where a result differs from the expected one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wrong {
    pub(super) byte: usize,
    pub(super) bytes: usize,
}

impl Work {
    /// Prepares the operation on a vector of about `bytes`, rounded up to whole elements and
    /// blocks.
    pub(super) fn new(
        collective: Collective,
        dtype: DataType,
        op: ReduceOp,
        bytes: u64,
        rank: u32,
        ranks: u32,
    ) -> Work {
        let values = Values { dtype, op, ranks };
        let elements = bytes.div_ceil(dtype.size() as u64);
        let per_rank = |whole: u64| whole.div_ceil(u64::from(ranks));
        let (block, byte_block) = (per_rank(elements), per_rank(bytes));
        let own = u64::from(rank);
        let make = |round: u64| -> Round {
            let (input, expected) = match collective {
                Collective::Barrier => (Vec::new(), Vec::new()),
                Collective::Allreduce => (values.given(rank, round, 0, elements), values.expected(round, 0, elements)),
                Collective::Reduce => {
                    let expected = if rank == ROOT { values.expected(round, 0, elements) } else { Vec::new() };
                    (values.given(rank, round, 0, elements), expected)
                }
                Collective::Bcast => {
                    let input = if rank == ROOT { raw(round, 0, bytes) } else { Vec::new() };
                    (input, raw(round, 0, bytes))
                }
                Collective::ReduceScatter => {
                    let whole = block * u64::from(ranks);
                    (values.given(rank, round, 0, whole), values.expected(round, own * block, block))
                }
                Collective::Allgather => {
                    let whole = byte_block * u64::from(ranks);
                    (raw(round, own * byte_block, byte_block), raw(round, 0, whole))
                }
            };
            Round { input, expected }
        };
        let rounds = [make(0), make(1)];
        let output = vec![0; rounds[0].expected.len()];
        let bytes = match collective {
            Collective::Barrier => 0,
            Collective::Allreduce | Collective::Reduce => elements * dtype.size() as u64,
            Collective::Bcast => bytes,
            Collective::ReduceScatter => block * u64::from(ranks) * dtype.size() as u64,
            Collective::Allgather => byte_block * u64::from(ranks),
        };
        Work { collective, bytes, dtype, op, rounds, output }
    }

    /// Does what has to be done before the clock starts: a bcast's root puts its vector into the
    /// one buffer there is.
    pub(super) fn prepare(&mut self, iteration: u64) {
        let round = &self.rounds[(iteration % 2) as usize];
        if self.collective == Collective::Bcast && !round.input.is_empty() {
            self.output.copy_from_slice(&round.input);
        }
    }

    /// The operation.
    pub(super) fn run(&mut self, group: &Group, iteration: u64) -> Result<(), Error> {
        let round = &self.rounds[(iteration % 2) as usize];
        let (input, output) = (&round.input[..], &mut self.output[..]);
        match self.collective {
            Collective::Barrier => group.barrier(),
            Collective::Allreduce => group.allreduce(Some(input), output, self.dtype, self.op),
            Collective::Reduce => group.reduce(Some(input), output, self.dtype, self.op, ROOT),
            Collective::Bcast => group.bcast(output, ROOT),
            Collective::ReduceScatter => group.reduce_scatter(input, output, self.dtype, self.op),
            Collective::Allgather => group.allgather(input, output),
        }
    }

    /// Posts the operation without waiting.
    ///
    /// # Safety
    /// This value stays where it is and is not touched until the request is done.
    pub(super) unsafe fn start(&mut self, group: &Group, iteration: u64) -> Result<Request, Error> {
        let round = &self.rounds[(iteration % 2) as usize];
        let elements = |bytes: usize| (bytes / self.dtype.size()) as u64;
        let signature = match self.collective {
            Collective::Barrier => operation::barrier(),
            Collective::Allreduce => operation::allreduce(elements(round.input.len()), self.dtype, self.op),
            Collective::Reduce => operation::reduce(elements(round.input.len()), self.dtype, self.op, ROOT),
            Collective::Bcast => operation::bcast(self.output.len() as u64, ROOT),
            Collective::ReduceScatter => operation::reduce_scatter(elements(self.output.len()), self.dtype, self.op),
            Collective::Allgather => operation::allgather(round.input.len() as u64),
        };
        let output = self.output.as_mut_ptr();
        let input = if self.collective == Collective::Bcast { output.cast_const() } else { round.input.as_ptr() };
        // SAFETY: the buffers have the lengths that the signature says, and the caller keeps them.
        unsafe { group.start(signature, Input::At(input), output) }
    }

    /// Compares every element of the result.
    pub(super) fn check(&self, iteration: u64) -> Result<(), Wrong> {
        let expected = &self.rounds[(iteration % 2) as usize].expected;
        if *expected == self.output {
            return Ok(());
        }
        let differs = |(a, b): (&u8, &u8)| a != b;
        let byte = expected.iter().zip(&self.output).position(differs).unwrap_or(0);
        let bytes = expected.iter().zip(&self.output).filter(|pair| differs(*pair)).count();
        Err(Wrong { byte, bytes })
    }
}

/// The root of the collectives that have one.
const ROOT: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_and_a_damaged_result_are_wrong() {
        let mut work = Work::new(Collective::Allreduce, DataType::I32, ReduceOp::Sum, 10, 0, 3);
        assert_eq!(work.bytes, 12);
        work.output = work.rounds[0].expected.clone();
        assert!(work.check(0).is_ok() && work.check(2).is_ok());
        assert!(work.check(1).is_err());
        work.output[5] ^= 1;
        let wrong = work.check(0).unwrap_err();
        assert_eq!((wrong.byte, wrong.bytes), (5, 1));
    }

    #[test]
    fn blocks_are_those_of_the_rank() {
        let whole = Work::new(Collective::Allgather, DataType::U8, ReduceOp::BitOr, 10, 2, 3);
        assert_eq!(whole.bytes, 12);
        assert_eq!(whole.rounds[0].input, whole.rounds[0].expected[8..12]);
        let scattered = Work::new(Collective::ReduceScatter, DataType::F64, ReduceOp::Max, 100, 1, 3);
        assert_eq!(scattered.bytes, 120);
        assert_eq!((scattered.rounds[0].input.len(), scattered.output.len()), (120, 40));
        let elsewhere = Work::new(Collective::Reduce, DataType::F32, ReduceOp::Sum, 8, 1, 3);
        assert!(elsewhere.output.is_empty());
    }
}
