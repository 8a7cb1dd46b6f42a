//! Where an operation's vector lies in the caller's memory.
//!
//! ```text
//!  vector   0 ........ given.start ====== given.end ........ elements     (what this rank gives)
//!  input                    |  element i of the vector is input[i - given.start]
//!  vector   0 .... gotten.start ========== gotten.end ..... elements      (what this rank gets)
//!  output                   |  element i of the result is output[i - gotten.start]
//! ```
//! The core names elements. Their bytes in memory are counted here, and nowhere else in the client.
//! Frames carry them as they are, because the one wire format is that of the program.
//!
//! A reduce-scatter in place is the one case in which the result would overwrite input that may
//! still have to be sent: block r of rank r > 0 belongs at the start of the buffer. This result is
//! collected in a block of ours and copied when the operation is complete.
//!
//! A part of an operation that is cut over lanes (`part`) has a part of every block. In the input
//! of a reduce-scatter and in the output of an allgather these parts do not lie in one piece. Then
//! they are packed into memory of ours: the input before the operation, the result until it is
//! complete.

use core::ops::Range;
use std::collections::TryReserveError;

use trib_proto::leaf::Slice;
use trib_proto::window;
use trib_wire::{Collective, Signature};

/// Where the input of an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// At this address. It may be null if this rank gives nothing.
    At(*const u8),
    /// Already in the output buffer; see `TRIB_IN_PLACE` in `tributary.h`.
    InPlace,
}

/// The memory of one operation in flight.
pub(crate) struct Memory {
    /// The bytes of an element.
    element: usize,
    input: *const u8,
    /// The elements of the vector that this rank gives.
    given: Range<u64>,
    output: *mut u8,
    /// The elements of the vector that this rank gets.
    gotten: Range<u64>,
    /// Buffers of ours, if it needs any.
    private: Option<Box<Private>>,
}

/// Memory of ours.
struct Private {
    /// The packed input; empty where the input lies in one piece.
    input: Vec<u8>,
    /// The result until it is complete; empty where it goes directly to its destination.
    result: Vec<u8>,
    /// Where the result is copied then, in `rows` rows of equal length.
    target: *mut u8,
    rows: usize,
    /// The distance in bytes between the starts of two rows.
    stride: usize,
}

// SAFETY: the caller of the posting function gave the buffers to the library until the request is
// done, whichever thread makes progress. The engine's lock serialises access.
unsafe impl Send for Memory {}

impl Memory {
    /// The memory of an operation without buffers.
    pub(crate) fn none() -> Memory {
        let (input, output) = (std::ptr::null(), std::ptr::null_mut());
        Memory { element: 1, input, given: 0..0, output, gotten: 0..0, private: None }
    }

    /// Lays the vector of `signature` over the buffers of the member with group rank `rank`.
    pub(crate) fn new(
        signature: &Signature,
        size: u32,
        rank: u32,
        input: Input,
        output: *mut u8,
    ) -> Result<Memory, TryReserveError> {
        let (given, gotten) = window::shares(signature, size, rank);
        let element = signature.element_size();
        let mut memory = Memory { element, input: std::ptr::null(), given, output, gotten, private: None };
        memory.input = match input {
            Input::At(address) => address,
            // This rank's block lies at its position in the gathered vector.
            Input::InPlace if signature.collective == Collective::Allgather => {
                output.wrapping_add(memory.given.start as usize * element)
            }
            Input::InPlace => output,
        };
        // Block 0 stays where it is. But if a node dies, the whole input may be needed again.
        let comes = !memory.gotten.is_empty();
        if input == Input::InPlace && signature.collective == Collective::ReduceScatter && comes {
            memory.collect(output, 1, 0)?;
        }
        Ok(memory)
    }

    /// Lays one part of an operation that is cut over lanes over the buffers. `signature` is that
    /// of the whole operation, and `part` the range of elements of the vector, or of every block,
    /// that belong to the part.
    ///
    /// # Safety
    /// The buffers are as long as the operation says. The input of a reduce-scatter is read at
    /// once.
    pub(crate) unsafe fn part(
        signature: &Signature,
        part: &Range<u64>,
        (size, rank): (u32, u32),
        input: Input,
        output: *mut u8,
    ) -> Result<Memory, TryReserveError> {
        let element = signature.element_size();
        let (from, len) = (part.start as usize * element, (part.end - part.start) as usize * element);
        let block = signature.count as usize * element;
        let own = Signature { count: part.end - part.start, ..*signature };
        // A null pointer stays null.
        let behind = |start: *mut u8, bytes: usize| if start.is_null() { start } else { start.wrapping_add(bytes) };
        let input = match input {
            Input::At(start) => behind(start.cast_mut(), from).cast_const(),
            Input::InPlace if signature.collective == Collective::Allgather => {
                behind(output, rank as usize * block + from).cast_const()
            }
            Input::InPlace => behind(output, from).cast_const(),
        };
        let mut memory = Memory::new(&own, size, rank, Input::At(input), behind(output, from))?;
        if len == 0 || memory.lacks_buffer() {
            return Ok(memory);
        }
        match signature.collective {
            Collective::ReduceScatter => {
                let mut packed = Vec::new();
                packed.try_reserve_exact(len * size as usize)?;
                for row in 0..size as usize {
                    // SAFETY: every row lies inside the input, which has `size` blocks.
                    packed.extend_from_slice(unsafe { core::slice::from_raw_parts(input.add(row * block), len) });
                }
                let (target, result) = (memory.output, Vec::new());
                let private = Box::new(Private { input: packed, result, target, rows: 0, stride: 0 });
                memory.input = private.input.as_ptr();
                memory.private = Some(private);
            }
            Collective::Allgather => memory.collect(memory.output, size as usize, block)?,
            _ => {}
        }
        Ok(memory)
    }

    /// Makes the result come to memory of ours, from which it is copied to `target` in `rows` rows.
    fn collect(&mut self, target: *mut u8, rows: usize, stride: usize) -> Result<(), TryReserveError> {
        let len = self.bytes(&self.gotten);
        let mut result = Vec::new();
        result.try_reserve_exact(len)?;
        result.resize(len, 0);
        self.output = result.as_mut_ptr();
        self.private = Some(Box::new(Private { input: Vec::new(), result, target, rows, stride }));
        Ok(())
    }

    /// The number of bytes that this rank gives, and that it gets.
    pub(crate) fn needs(&self) -> (u64, u64) {
        (self.bytes(&self.given) as u64, self.bytes(&self.gotten) as u64)
    }

    /// Whether a needed buffer is missing.
    pub(crate) fn lacks_buffer(&self) -> bool {
        let (gives, gets) = self.needs();
        (gives > 0 && self.input.is_null()) || (gets > 0 && self.output.is_null())
    }

    /// The address of a slice's input; `None` outside what this rank gives.
    pub(crate) fn input(&self, slice: Slice) -> Option<*const u8> {
        self.offset(&self.given, slice).map(|at| self.input.wrapping_add(at))
    }

    /// The address of a slice's input, if the slice's result comes to the same address.
    pub(crate) fn overwritten(&self, slice: Slice) -> Option<*const u8> {
        self.input(slice).filter(|input| self.output(slice).is_some_and(|output| output.cast_const() == *input))
    }

    /// The input of these elements.
    ///
    /// # Safety
    /// This rank gives all of them, and its input is there, and does not change, as long as the
    /// slice is used.
    pub(crate) unsafe fn input_of(&self, elements: &Range<u64>) -> &[u8] {
        let from = self.bytes(&(self.given.start..elements.start));
        // SAFETY: the elements lie inside the input, and the caller promises the rest.
        unsafe { core::slice::from_raw_parts(self.input.wrapping_add(from), self.bytes(elements)) }
    }

    /// The address of the input of these elements; `None` outside what this rank gives.
    pub(crate) fn given_at(&self, elements: &Range<u64>) -> Option<*const u8> {
        self.behind(&self.given, elements).map(|at| self.input.wrapping_add(at))
    }

    /// The address for the result of these elements; `None` outside what this rank gets.
    pub(crate) fn gotten_at(&self, elements: &Range<u64>) -> Option<*mut u8> {
        self.behind(&self.gotten, elements).map(|at| self.output.wrapping_add(at))
    }

    /// Copies elements that this rank gives to where it gets them, if it does; in place they lie
    /// there.
    pub(crate) fn keep(&mut self, elements: &Range<u64>) {
        let Some((from, to)) = self.given_at(elements).zip(self.gotten_at(elements)) else { return };
        if from != to.cast_const() && !elements.is_empty() {
            // SAFETY: both lie inside the buffers of an operation that is not over.
            unsafe { core::ptr::copy(from, to, self.bytes(elements)) };
        }
    }

    /// The address for a slice's result; `None` outside what this rank gets.
    pub(crate) fn output(&self, slice: Slice) -> Option<*mut u8> {
        self.offset(&self.gotten, slice).map(|at| self.output.wrapping_add(at))
    }

    /// How far behind the first of these elements a slice lies, in bytes. `None` if it is not among
    /// them, or if its payload is not what lies in memory.
    fn offset(&self, elements: &Range<u64>, slice: Slice) -> Option<usize> {
        let own = slice.range();
        self.behind(elements, &own).filter(|_| self.bytes(&own) == slice.bytes as usize)
    }

    /// How far behind the first of these elements others begin, in bytes. `None` if they are not
    /// among them.
    fn behind(&self, elements: &Range<u64>, own: &Range<u64>) -> Option<usize> {
        let inside = own.start >= elements.start && own.start <= own.end && own.end <= elements.end;
        inside.then(|| self.bytes(&(elements.start..own.start)))
    }

    /// The bytes that elements take in memory.
    fn bytes(&self, elements: &Range<u64>) -> usize {
        (elements.end - elements.start) as usize * self.element
    }

    /// Copies a privately collected result into the caller's buffer.
    ///
    /// # Safety
    /// The operation has just completed: its buffers are still the library's, and every byte of the
    /// result is there.
    #[inline]
    pub(crate) unsafe fn finish(&mut self) {
        if let Some(private) = self.private.take() {
            // SAFETY: the caller's promise.
            unsafe { private.hand_over() };
        }
    }
}

impl Private {
    /// Copies the result to where the caller wants it.
    ///
    /// # Safety
    /// As for `Memory::finish`.
    unsafe fn hand_over(&self) {
        let &Private { ref result, target, rows, stride, .. } = self;
        for (row, bytes) in result.chunks_exact((result.len() / rows.max(1)).max(1)).enumerate() {
            // SAFETY: the caller's buffer has room for every row of the result at its position.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), target.add(row * stride), bytes.len()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trib_proto::leaf::OpId;
    use trib_wire::{DataType, ReduceOp, WireFormat};

    fn signature(collective: Collective, count: u64) -> Signature {
        Signature { collective, dtype: DataType::U8, op: ReduceOp::BitOr, format: WireFormat::Plain, root: 0, count }
    }

    fn slice(first: u64, elements: u32) -> Slice {
        Slice { op: OpId(0), first, elements, bytes: elements }
    }

    #[test]
    fn blocks_are_found_by_their_position_in_the_vector() {
        let (own, mut all) = ([0u8; 4], [0u8; 12]);
        let gather = signature(Collective::Allgather, 4);
        let m = Memory::new(&gather, 3, 1, Input::At(own.as_ptr()), all.as_mut_ptr()).unwrap();
        assert_eq!(m.needs(), (4, 12));
        assert_eq!(m.input(slice(6, 2)), Some(own.as_ptr().wrapping_add(2)));
        assert_eq!(m.input(slice(3, 2)), None);
        assert_eq!(m.output(slice(11, 1)), Some(all.as_mut_ptr().wrapping_add(11)));
        assert_eq!(m.output(slice(11, 2)), None);

        let mut in_place = Memory::new(&gather, 3, 1, Input::InPlace, all.as_mut_ptr()).unwrap();
        assert_eq!(in_place.input(slice(4, 4)), Some(all.as_ptr().wrapping_add(4)));
        in_place.keep(&(4..8));
        assert_eq!(all, [0; 12]);
        let mut own = *b"abcd";
        let mut m = Memory::new(&gather, 3, 1, Input::At(own.as_ptr()), all.as_mut_ptr()).unwrap();
        m.keep(&(5..7));
        m.keep(&(3..5));
        assert_eq!(&all, b"\0\0\0\0\0bc\0\0\0\0\0", "what it does not give it does not have");

        let scatter = signature(Collective::ReduceScatter, 4);
        let m = Memory::new(&scatter, 3, 2, Input::At(all.as_ptr()), own.as_mut_ptr()).unwrap();
        assert_eq!(m.output(slice(8, 4)), Some(own.as_mut_ptr()));
        assert_eq!(m.output(slice(0, 4)), None);
    }

    #[test]
    fn elements_are_found_by_the_bytes_of_those_before() {
        let pair = DataType::from_name("float64:int32").expect("a pair of 12 bytes");
        let gather = Signature { dtype: pair, ..signature(Collective::Allgather, 4) };
        let (own, mut all) = ([0u8; 48], [0u8; 144]);
        let m = Memory::new(&gather, 3, 1, Input::At(own.as_ptr()), all.as_mut_ptr()).unwrap();
        assert_eq!(m.needs(), (48, 144));
        let pairs = |first: u64, elements: u32| Slice { bytes: 12 * elements, ..slice(first, elements) };
        assert_eq!(m.input(pairs(6, 2)), Some(own.as_ptr().wrapping_add(24)));
        assert_eq!(m.input(pairs(7, 2)), None);
        assert_eq!(m.output(pairs(11, 1)), Some(all.as_mut_ptr().wrapping_add(132)));
        assert_eq!(m.output(slice(11, 1)), None, "a payload that is not what lies in memory");
        let in_place = Memory::new(&gather, 3, 1, Input::InPlace, all.as_mut_ptr()).unwrap();
        assert_eq!(in_place.input(pairs(4, 4)), Some(all.as_ptr().wrapping_add(48)));
        let scatter = Signature { collective: Collective::ReduceScatter, op: ReduceOp::MaxLoc, ..gather };
        let mut m = Memory::new(&scatter, 3, 2, Input::InPlace, all.as_mut_ptr()).unwrap();
        let address = m.output(pairs(8, 4)).unwrap();
        assert!(!all.as_ptr_range().contains(&address.cast_const()));
        // SAFETY: the result has 48 bytes.
        unsafe { core::ptr::write_bytes(address, 7, 48) };
        // SAFETY: the result is complete, and `all` still exists.
        unsafe { m.finish() };
        assert_eq!((&all[..48], &all[48..]), (&[7; 48][..], &[0; 96][..]));
    }

    #[test]
    fn a_reduce_scatter_in_place_leaves_its_input_alone_until_the_end() {
        let mut all = *b"aabbcc";
        let scatter = signature(Collective::ReduceScatter, 2);
        let mut m = Memory::new(&scatter, 3, 1, Input::InPlace, all.as_mut_ptr()).unwrap();
        let address = m.output(slice(2, 2)).unwrap();
        assert!(!all.as_ptr_range().contains(&address.cast_const()));
        // SAFETY: both addresses have two bytes.
        unsafe { core::ptr::copy_nonoverlapping(b"XY".as_ptr(), address, 2) };
        assert_eq!(&all, b"aabbcc");
        // SAFETY: the result is complete, and `all` still exists.
        unsafe { m.finish() };
        assert_eq!(&all, b"XYbbcc");
    }

    #[test]
    fn parts_of_blocks_are_moved_together_and_apart() {
        // There are three blocks of four bytes, of which the part has the second and the third.
        let mut all = *b"abcdefghijkl";
        let scatter = signature(Collective::ReduceScatter, 4);
        // SAFETY: `all` holds three blocks.
        let mut m = unsafe { Memory::part(&scatter, &(1..3), (3, 2), Input::InPlace, all.as_mut_ptr()) }.unwrap();
        let input = m.input(slice(0, 6)).unwrap();
        // SAFETY: the input has six bytes.
        assert_eq!(unsafe { core::slice::from_raw_parts(input, 6) }, b"bcfgjk");
        assert_eq!(m.output(slice(4, 2)), Some(all.as_mut_ptr().wrapping_add(1)));
        // SAFETY: nothing was collected.
        unsafe { m.finish() };
        assert_eq!(&all, b"abcdefghijkl");

        let gather = signature(Collective::Allgather, 4);
        // SAFETY: `all` holds three blocks.
        let mut m = unsafe { Memory::part(&gather, &(1..3), (3, 1), Input::InPlace, all.as_mut_ptr()) }.unwrap();
        assert_eq!(m.input(slice(2, 2)), Some(all.as_ptr().wrapping_add(5)));
        let address = m.output(slice(0, 6)).unwrap();
        // SAFETY: the result has six bytes.
        unsafe { core::ptr::copy_nonoverlapping(b"BC??JK".as_ptr(), address, 6) };
        m.keep(&(2..3));
        m.keep(&(3..4));
        // SAFETY: the result is complete, and `all` still exists.
        unsafe { m.finish() };
        assert_eq!(&all, b"aBCdefghiJKl", "nobody sends a rank its own block");

        let reduce = signature(Collective::Allreduce, 12);
        // SAFETY: `all` holds twelve bytes.
        let m = unsafe { Memory::part(&reduce, &(5..12), (3, 1), Input::InPlace, all.as_mut_ptr()) }.unwrap();
        assert_eq!(m.input(slice(0, 7)), Some(all.as_ptr().wrapping_add(5)));
        assert_eq!(m.output(slice(6, 1)), Some(all.as_mut_ptr().wrapping_add(11)));
        // SAFETY: no buffer is read.
        let m =
            unsafe { Memory::part(&reduce, &(5..12), (3, 1), Input::At(std::ptr::null()), all.as_mut_ptr()) }.unwrap();
        assert!(m.lacks_buffer());
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
