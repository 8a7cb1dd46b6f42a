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
        let size = self.folded(dtype, ReduceOp::Sum).0.size() as u64;
        Layout::new(size, size, size)
    }

    /// What is computed where elements meet that travel so: their type there, and the operator.
    #[inline]
    pub const fn folded(self, dtype: DataType, op: ReduceOp) -> (DataType, ReduceOp) {
        match self {
            WireFormat::Plain => (dtype, op),
            WireFormat::FixedSurvey | WireFormat::ExactSurvey => (DataType::I16, ReduceOp::Max),
            WireFormat::Limbs16 => (DataType::I16, ReduceOp::Sum),
            WireFormat::Limbs32 => (DataType::I32, ReduceOp::Sum),
            WireFormat::Limbs64 => (DataType::I64, ReduceOp::Sum),
        }
    }
}

impl Signature {
    /// How many bytes the elements take.
    #[inline]
    pub const fn layout(&self) -> Layout {
        self.format.layout(self.dtype)
    }

    /// The type and the operator with which contributions are folded.
    #[inline]
    pub const fn folded(&self) -> (DataType, ReduceOp) {
        self.format.folded(self.dtype, self.op)
    }

    /// The bytes of an element in the memory of a member that posts the operation.
    #[inline]
    pub const fn element_size(&self) -> usize {
        self.folded().0.size()
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
    fn the_smallest_piece_holds_an_element_of_every_format() {
        for format in WireFormat::ALL {
            for dtype in DataType::ALL {
                assert!(format.layout(*dtype).within(ELEMENT_MAX as u32) >= 1, "{format} of {dtype}");
            }
        }
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
