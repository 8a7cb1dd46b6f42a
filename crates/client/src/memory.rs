//! Where an operation's vector lies in the caller's memory.
//!
//! ```text
//!  vector   0 ........ given.start ====== given.end ............ len      (what this rank gives)
//!  input                    |  byte i of the vector is input[i - given.start]
//!  vector   0 .... gotten.start ========== gotten.end ......... len       (what this rank gets)
//!  output                   |  byte i of the result is output[i - gotten.start]
//! ```
//! A reduce-scatter in place is the one case where the result would land on input that may still have to be sent
//! (again): block r of rank r > 0 belongs at the start of the buffer. It is collected in a block of ours and
//! copied when the operation is complete.

use core::ops::Range;
use std::collections::TryReserveError;

use trib_proto::leaf::Slice;
use trib_proto::window;
use trib_wire::{Collective, Signature};

/// Where the input of an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// At this address; may be null where this rank gives nothing.
    At(*const u8),
    /// Already in the output buffer; see `TRIB_IN_PLACE` in `tributary.h`.
    InPlace,
}

/// The memory of one operation in flight.
pub(crate) struct Memory {
    input: *const u8,
    given: Range<u64>,
    output: *mut u8,
    gotten: Range<u64>,
    /// The result until it may overwrite the input, and where it goes then.
    private: Option<(Vec<u8>, *mut u8)>,
}

// SAFETY: the caller of the posting function gave the buffers to the library until the request is done, from whatever
// thread makes progress; access is serialised by the engine's lock.
unsafe impl Send for Memory {}

impl Memory {
    /// The memory of an operation without any.
    pub(crate) fn none() -> Memory {
        Memory { input: std::ptr::null(), given: 0..0, output: std::ptr::null_mut(), gotten: 0..0, private: None }
    }

    /// Lays the vector of `signature` over the buffers of group rank `rank`.
    pub(crate) fn new(
        signature: &Signature,
        size: u32,
        rank: u32,
        input: Input,
        output: *mut u8,
    ) -> Result<Memory, TryReserveError> {
        let given = window::given(signature, size, rank);
        let gotten = window::gotten(signature, size, rank);
        let mut memory = Memory { input: std::ptr::null(), given, output, gotten, private: None };
        memory.input = match input {
            Input::At(address) => address,
            // The own block lies at its place in the gathered vector.
            Input::InPlace if signature.collective == Collective::Allgather => {
                output.wrapping_add(memory.given.start as usize)
            }
            Input::InPlace => output,
        };
        let shifts = memory.gotten.start > 0 && !memory.gotten.is_empty();
        if input == Input::InPlace && signature.collective == Collective::ReduceScatter && shifts {
            let len = (memory.gotten.end - memory.gotten.start) as usize;
            let mut block = Vec::new();
            block.try_reserve_exact(len)?;
            block.resize(len, 0);
            memory.output = block.as_mut_ptr();
            memory.private = Some((block, output));
        }
        Ok(memory)
    }

    /// Bytes this rank gives and gets.
    pub(crate) fn needs(&self) -> (u64, u64) {
        (self.given.end - self.given.start, self.gotten.end - self.gotten.start)
    }

    /// Whether a needed buffer is missing.
    pub(crate) fn lacks_buffer(&self) -> bool {
        let (gives, gets) = self.needs();
        (gives > 0 && self.input.is_null()) || (gets > 0 && self.output.is_null())
    }

    /// The input bytes of a slice; `None` outside what this rank gives.
    pub(crate) fn input(&self, slice: Slice) -> Option<*const u8> {
        offset(&self.given, slice).map(|at| self.input.wrapping_add(at))
    }

    /// Where the result of a slice goes; `None` outside what this rank gets.
    pub(crate) fn output(&self, slice: Slice) -> Option<*mut u8> {
        offset(&self.gotten, slice).map(|at| self.output.wrapping_add(at))
    }

    /// The part of the result inside `range` of the vector, as bytes.
    ///
    /// # Safety
    /// The operation has just completed: its buffers are still the library's and every byte of the result is there.
    pub(crate) unsafe fn result(&self, range: &Range<u64>) -> &[u8] {
        let (from, to) = (range.start.max(self.gotten.start), range.end.min(self.gotten.end));
        if from >= to {
            return &[];
        }
        let at = self.output.wrapping_add((from - self.gotten.start) as usize);
        // SAFETY: inside the output buffer, which the caller vouches for.
        unsafe { core::slice::from_raw_parts(at, (to - from) as usize) }
    }

    /// Moves a privately collected result into the caller's buffer.
    ///
    /// # Safety
    /// As for `result`.
    pub(crate) unsafe fn finish(&mut self) {
        if let Some((block, target)) = self.private.take() {
            // SAFETY: the caller's buffer holds the whole input vector, of which the block is a part.
            unsafe { core::ptr::copy_nonoverlapping(block.as_ptr(), target, block.len()) };
            self.output = target;
        }
    }
}

fn offset(window: &Range<u64>, slice: Slice) -> Option<usize> {
    let end = slice.from.checked_add(u64::from(slice.len))?;
    (slice.from >= window.start && end <= window.end).then(|| (slice.from - window.start) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trib_proto::leaf::OpId;
    use trib_wire::{DataType, ReduceOp};

    fn signature(collective: Collective, count: u64) -> Signature {
        Signature { collective, dtype: DataType::U8, op: ReduceOp::BitOr, root: 0, count }
    }

    fn slice(from: u64, len: u32) -> Slice {
        Slice { op: OpId(0), from, len }
    }

    #[test]
    fn blocks_are_found_by_their_place_in_the_vector() {
        let (mut own, mut all) = ([0u8; 4], [0u8; 12]);
        let gather = signature(Collective::Allgather, 4);
        let m = Memory::new(&gather, 3, 1, Input::At(own.as_ptr()), all.as_mut_ptr()).unwrap();
        assert_eq!(m.needs(), (4, 12));
        assert_eq!(m.input(slice(6, 2)), Some(own.as_ptr().wrapping_add(2)));
        assert_eq!(m.input(slice(3, 2)), None);
        assert_eq!(m.output(slice(11, 1)), Some(all.as_mut_ptr().wrapping_add(11)));
        assert_eq!(m.output(slice(11, 2)), None);

        let in_place = Memory::new(&gather, 3, 1, Input::InPlace, all.as_mut_ptr()).unwrap();
        assert_eq!(in_place.input(slice(4, 4)), Some(all.as_ptr().wrapping_add(4)));

        let scatter = signature(Collective::ReduceScatter, 4);
        let m = Memory::new(&scatter, 3, 2, Input::At(all.as_ptr()), own.as_mut_ptr()).unwrap();
        assert_eq!(m.output(slice(8, 4)), Some(own.as_mut_ptr()));
        assert_eq!(m.output(slice(0, 4)), None);
    }

    #[test]
    fn a_reduce_scatter_in_place_leaves_its_input_alone_until_the_end() {
        let mut all = *b"aabbcc";
        let scatter = signature(Collective::ReduceScatter, 2);
        let mut m = Memory::new(&scatter, 3, 1, Input::InPlace, all.as_mut_ptr()).unwrap();
        let place = m.output(slice(2, 2)).unwrap();
        assert!(!all.as_ptr_range().contains(&place.cast_const()));
        // SAFETY: both point at two bytes.
        unsafe { core::ptr::copy_nonoverlapping(b"XY".as_ptr(), place, 2) };
        assert_eq!(&all, b"aabbcc");
        // SAFETY: the result is complete and `all` still there.
        unsafe { m.finish() };
        assert_eq!(&all, b"XYbbcc");
        // SAFETY: as above.
        assert_eq!(unsafe { m.result(&(0..3)) }, b"X");
    }

    #[test]
    fn a_missing_buffer_is_only_missed_where_it_is_needed() {
        let reduce = signature(Collective::Reduce, 4);
        let data = [0u8; 4];
        let null = std::ptr::null_mut();
        let at_root = Memory::new(&reduce, 2, 0, Input::At(data.as_ptr()), null).unwrap();
        assert!(at_root.lacks_buffer());
        let elsewhere = Memory::new(&reduce, 2, 1, Input::At(data.as_ptr()), null).unwrap();
        assert!(!elsewhere.lacks_buffer());
        assert!(!Memory::none().lacks_buffer());
    }
}
