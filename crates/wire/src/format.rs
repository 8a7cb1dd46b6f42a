//! Wire formats: what the elements of a vector look like in a frame, which need not be what they
//! look like in the program.
//!
//! Protocol, limits and quotas count elements. This is the only file that knows how many bytes
//! these take: a payload's length follows from which elements it has and on which way it is, and
//! from nothing else.
//!
//! ```text
//!   vector     element 0 ...... first ================= first + elements ...... count
//!   piece                         |    skip    |-------payload------|  |
//!   bytes                                      Layout::bytes(these, way)
//! ```
//! A format that is to come adds a code and a layout. One with blocks needs no other interface,
//! because every question names the elements by their position in the vector.
//!
//! A sum that does not depend on order travels as integers, which its members make of the program's
//! elements and back: first a *survey* of the elements, then *limbs* (`trib_sums`). In both, what
//! counts as an element is an integer. Nodes fold these as what they are and know nothing else.
//!
//! A sum that is quantised travels in blocks of [`INT8_BLOCK`] of the program's elements. In it,
//! what counts as an element is a block: nothing can cut one.

use core::ops::Range;

use crate::datatype::DataType;
use crate::header::Kind;
use crate::operation::{ReduceOp, Signature};

code! {
    /// How elements travel.
    WireFormat {
        /// Each as the program has it.
        Plain = 0, "plain";
        /// What members have to know of each other's elements before a `fixed` sum.
        FixedSurvey = 1, "fixed survey";
        /// The same before an `exact` sum.
        ExactSurvey = 2, "exact survey";
        /// The elements as integers of 16 bits.
        Limbs16 = 3, "limbs of 16";
        /// The elements as integers of 32 bits.
        Limbs32 = 4, "limbs of 32";
        /// The elements as integers of 64 bits.
        Limbs64 = 5, "limbs of 64";
        /// Blocks of elements, each as integers of 8 bits and one scale.
        Int8Blocks = 6, "int8 blocks";
    }
}

/// How many of the program's elements are a block of the format "int8 blocks".
pub const INT8_BLOCK: usize = 32;

/// The bytes of such a block: a head, and a code for each of its elements.
pub const INT8_BLOCK_BYTES: usize = 4 + INT8_BLOCK;

/// What is computed where contributions meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// This operator on elements of this type.
    Elements(DataType, ReduceOp),
    /// The sum of blocks, quantised again.
    Int8Blocks,
}

impl Arithmetic {
    /// The bytes of what cannot be cut.
    #[inline]
    pub const fn element_size(self) -> usize {
        match self {
            Arithmetic::Elements(dtype, _) => dtype.size(),
            Arithmetic::Int8Blocks => INT8_BLOCK_BYTES,
        }
    }
}

impl Default for WireFormat {
    /// What a message means that names no format.
    fn default() -> WireFormat {
        WireFormat::Plain
    }
}

impl WireFormat {
    /// How many bytes elements of this type take.
    #[inline]
    pub const fn layout(self, dtype: DataType) -> Layout {
        let size = self.arithmetic(dtype, ReduceOp::Sum).element_size() as u64;
        Layout::new(size, size, size)
    }

    /// What is computed where elements meet that travel so.
    #[inline]
    pub const fn arithmetic(self, dtype: DataType, op: ReduceOp) -> Arithmetic {
        match self {
            WireFormat::Plain => Arithmetic::Elements(dtype, op),
            WireFormat::FixedSurvey | WireFormat::ExactSurvey => Arithmetic::Elements(DataType::I16, ReduceOp::Max),
            WireFormat::Limbs16 => Arithmetic::Elements(DataType::I16, ReduceOp::Sum),
            WireFormat::Limbs32 => Arithmetic::Elements(DataType::I32, ReduceOp::Sum),
            WireFormat::Limbs64 => Arithmetic::Elements(DataType::I64, ReduceOp::Sum),
            WireFormat::Int8Blocks => Arithmetic::Int8Blocks,
        }
    }
}

impl Signature {
    /// How many bytes the elements take.
    #[inline]
    pub const fn layout(&self) -> Layout {
        self.format.layout(self.dtype)
    }

    /// What is computed where contributions meet.
    #[inline]
    pub const fn arithmetic(&self) -> Arithmetic {
        self.format.arithmetic(self.dtype, self.op)
    }

    /// The bytes of an element in the memory of a member that posts the operation.
    #[inline]
    pub const fn element_size(&self) -> usize {
        self.arithmetic().element_size()
    }
}

/// The way on which a payload is. A format may be wider between nodes than at the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// What a rank gives, on its way to the node above it.
    FromRank,
    /// What a node has folded, on its way to the node above it.
    BetweenNodes,
    /// A result, on its way down.
    Down,
}

impl Way {
    /// Every way.
    pub const ALL: &'static [Way] = &[Way::FromRank, Way::BetweenNodes, Way::Down];

    /// The ways on which vector data of this kind can be. A header does not say whether it is a
    /// rank or a node that contributes; the node that gets it knows.
    pub fn of(kind: Kind) -> &'static [Way] {
        match kind {
            Kind::Contribution => &[Way::FromRank, Way::BetweenNodes],
            Kind::Result => &[Way::Down],
            _ => &[],
        }
    }
}

/// How many bytes the elements of a vector take on each way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The bytes of an element, on each way.
    element: [u64; 3],
}

impl Layout {
    /// Elements that take this many bytes each.
    ///
    /// # Panics
    /// If an element takes none.
    #[inline]
    pub const fn new(from_rank: u64, between_nodes: u64, down: u64) -> Layout {
        assert!(from_rank > 0 && between_nodes > 0 && down > 0);
        Layout { element: [from_rank, between_nodes, down] }
    }

    /// The bytes of these elements of the vector on this way; `u64::MAX` if it would be more.
    #[inline]
    pub const fn bytes(self, elements: &Range<u64>, way: Way) -> u64 {
        elements.end.saturating_sub(elements.start).saturating_mul(self.element[way as usize])
    }

    /// The bytes of these elements on the way on which they take most.
    #[inline]
    pub fn most(self, elements: &Range<u64>) -> u64 {
        Way::ALL.iter().map(|way| self.bytes(elements, *way)).fold(0, u64::max)
    }

    /// The elements from `first` on that take exactly this many bytes; `None` if the bytes end
    /// inside an element, or beyond the last number.
    pub fn run(self, first: u64, bytes: u64, way: Way) -> Option<Range<u64>> {
        let element = self.element[way as usize];
        let end = first.checked_add(bytes / element)?;
        bytes.is_multiple_of(element).then_some(first..end)
    }

    /// The most elements of which every piece of a vector fits into this many bytes on each way.
    pub fn within(self, bytes: u32) -> u32 {
        let widest = self.element.into_iter().fold(1, u64::max);
        (u64::from(bytes) / widest) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::ELEMENT_MAX;

    /// A format that does not exist: wide between nodes, narrow on the way down.
    const UNEVEN: Layout = Layout::new(4, 12, 2);

    #[test]
    fn plain_elements_take_what_the_program_has() {
        for dtype in DataType::ALL {
            let layout = WireFormat::Plain.layout(*dtype);
            for way in Way::ALL {
                assert_eq!(layout.bytes(&(7..17), *way), 10 * dtype.size() as u64, "{dtype}");
            }
            assert_eq!(layout.most(&(0..1)), dtype.size() as u64);
        }
    }

    #[test]
    fn what_is_no_element_of_the_program_takes_what_it_is() {
        let bytes = |format: WireFormat, dtype| format.layout(dtype).bytes(&(3..5), Way::Down);
        assert_eq!(bytes(WireFormat::ExactSurvey, DataType::F64), 4);
        assert_eq!(bytes(WireFormat::Limbs16, DataType::F32), 4);
        assert_eq!(bytes(WireFormat::Limbs64, DataType::F16), 16);
        assert_eq!(bytes(WireFormat::Int8Blocks, DataType::F32), 72, "a block cannot be cut");
    }

    #[test]
    fn the_smallest_piece_holds_an_element_of_every_format_without_blocks() {
        for format in WireFormat::ALL {
            let least = if *format == WireFormat::Int8Blocks { INT8_BLOCK_BYTES } else { ELEMENT_MAX };
            for dtype in DataType::ALL {
                assert!(format.layout(*dtype).within(least as u32) >= 1, "{format} of {dtype}");
            }
        }
    }

    #[test]
    fn blocks_take_less_than_a_third_of_a_float32() {
        let layout = WireFormat::Int8Blocks.layout(DataType::F32);
        assert_eq!(layout.bytes(&(3..5), Way::Down), 72);
        assert!(INT8_BLOCK_BYTES * 100 <= INT8_BLOCK * DataType::F32.size() * 30, "the demand is 0.30 of the bytes");
    }

    #[test]
    fn bytes_lead_back_to_the_elements() {
        for way in Way::ALL {
            let bytes = UNEVEN.bytes(&(100..107), *way);
            assert_eq!(UNEVEN.run(100, bytes, *way), Some(100..107));
            assert_eq!(UNEVEN.run(100, bytes + 1, *way), None, "a cut element");
            assert_eq!(UNEVEN.run(u64::MAX, 0, *way), Some(u64::MAX..u64::MAX));
            assert_eq!(UNEVEN.run(u64::MAX - 1, bytes, *way), None);
        }
    }

    #[test]
    fn a_piece_fits_on_every_way() {
        assert_eq!((UNEVEN.within(11), UNEVEN.within(12), UNEVEN.within(100)), (0, 1, 8));
        assert_eq!(UNEVEN.most(&(0..8)), 96);
    }

    #[test]
    fn no_number_overflows() {
        assert_eq!(UNEVEN.bytes(&(0..u64::MAX), Way::Down), u64::MAX);
        assert_eq!(UNEVEN.most(&(0..u64::MAX / 3)), u64::MAX);
        assert_eq!(UNEVEN.bytes(&(Range { start: 9, end: 3 }), Way::Down), 0);
        assert_eq!(Layout::new(1, 1, 1).within(u32::MAX), u32::MAX);
    }
}
