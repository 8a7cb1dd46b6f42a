//! What the limbs of a block are. It follows from the merged survey, the type and the number of
//! members alone, so all members find the same.
//!
//! ```text
//!   fixed   one limb per element, and behind all of these the limbs of counters, if there are some
//!   exact   value and counters as one integer, in limbs of which each has a limb
//!
//!           limb 2 ........ limb 1 ........ limb 0 ........
//!           0000 element, from its top to its low | counters
//!   block   | limb 0 of every element | limb 1 of every element | ...
//! ```
//! A limb has so many bits that the sum of all members' fits into its limb with its sign: nothing
//! can overflow, and nodes carry nothing from limb to limb.

use trib_wire::{DataType, WireFormat};

use crate::float::{Float, for_float};
use crate::survey::{NONE, Survey};
use crate::tail::Tail;
use crate::{BLOCK, Kind};

/// The bits of a limb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// 16 bits.
    Two,
    /// 32 bits.
    Four,
    /// 64 bits.
    Eight,
}

impl Width {
    /// Bytes of a limb.
    pub const fn bytes(self) -> usize {
        match self {
            Width::Two => 2,
            Width::Four => 4,
            Width::Eight => 8,
        }
    }

    /// How such limbs travel.
    pub const fn format(self) -> WireFormat {
        match self {
            Width::Two => WireFormat::Limbs16,
            Width::Four => WireFormat::Limbs32,
            Width::Eight => WireFormat::Limbs64,
        }
    }

    /// How many counters of so many bits a limb of them holds.
    pub(crate) fn counters(self, counter: u32) -> u32 {
        (8 * self.bytes() as u32 - 1) / counter
    }

    /// The bits below the sign that are left beside the number of members.
    fn bits_of_limb(self, counter: u32) -> u32 {
        (8 * self.bytes() as u32 - 1).saturating_sub(counter)
    }
}

/// The limbs of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The exponent of the unit in which elements are integers.
    pub(crate) unit: i32,
    /// The bits of such an integer; 0 if all elements are zero or no numbers.
    pub(crate) bits: u32,
    pub(crate) tail: Tail,
    /// The limbs of an element.
    pub(crate) limbs: u32,
}

/// The limbs of a vector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    pub(crate) kind: Kind,
    pub(crate) dtype: DataType,
    pub(crate) count: usize,
    pub(crate) width: Width,
    /// The bits in which the members can be counted.
    pub(crate) counter: u32,
    /// The bits of a limb.
    pub(crate) bits_of_limb: u32,
    pub(crate) blocks: Vec<Shape>,
}

impl Layout {
    /// That of a vector of `count` elements, of which `surveys` are the merged surveys, in a group
    /// of `members`.
    ///
    /// # Panics
    /// If `surveys` has another length than [`Kind::survey_bytes`] says.
    pub fn new(kind: Kind, dtype: DataType, members: u32, count: usize, surveys: &[u8]) -> Layout {
        assert_eq!(surveys.len(), kind.survey_bytes(count), "surveys of {count} elements");
        let surveys = surveys.chunks_exact(2 * kind.survey_len()).map(|bytes| Survey::read(kind, bytes));
        Layout::of(kind, dtype, members, count, surveys)
    }

    /// That of a vector which is too short to be surveyed: every element can be summed in it. Both
    /// kinds of sums have it.
    pub fn unsurveyed(dtype: DataType, members: u32, count: usize) -> Layout {
        let (top, low) = for_float!(dtype, F => (F::TOP as i16, -F::FINEST as i16));
        let any = std::iter::repeat_n(Survey { top, low, tail: 2 }, count.div_ceil(BLOCK));
        Layout::of(Kind::Exact, dtype, members, count, any)
    }

    fn of(
        kind: Kind,
        dtype: DataType,
        members: u32,
        count: usize,
        surveys: impl Iterator<Item = Survey> + Clone,
    ) -> Layout {
        let counter = u32::BITS - members.leading_zeros();
        let lay = |width: Width| {
            let bits_of_limb = width.bits_of_limb(counter);
            let shape = |survey| for_float!(dtype, F => Shape::of::<F>(kind, width, counter, survey));
            Layout { kind, dtype, count, width, counter, bits_of_limb, blocks: surveys.clone().map(shape).collect() }
        };
        match kind {
            Kind::Fixed if dtype.size() > 2 => lay(Width::Eight),
            Kind::Fixed => lay(Width::Four),
            // Limbs that are narrow waste less of their last limb, wide ones less on members.
            Kind::Exact => [Width::Eight, Width::Four, Width::Two]
                .into_iter()
                .filter(|width| width.bits_of_limb(counter) >= LIMB_MIN)
                .map(lay)
                .min_by_key(Layout::bytes)
                .expect("a limb of 64 bits has room"),
        }
    }

    /// The limbs' width.
    pub fn width(&self) -> Width {
        self.width
    }

    /// How the limbs travel.
    pub fn format(&self) -> WireFormat {
        self.width.format()
    }

    /// How many limbs the vector has.
    pub fn limbs(&self) -> usize {
        self.each().map(|(shape, elements)| shape.limbs as usize * elements).sum()
    }

    /// Their bytes.
    pub fn bytes(&self) -> usize {
        self.limbs() * self.width.bytes()
    }

    /// The blocks, each with its number of elements.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&Shape, usize)> {
        let elements = |block: usize| BLOCK.min(self.count - block * BLOCK);
        self.blocks.iter().enumerate().map(move |(block, shape)| (shape, elements(block)))
    }
}

impl Shape {
    /// The bits of the counters, which are below those of the element.
    pub(crate) fn below(&self, counter: u32) -> u32 {
        self.tail.counters() * counter
    }

    fn of<F: Float>(kind: Kind, width: Width, counter: u32, survey: Survey) -> Shape {
        let tail = match survey.tail {
            ..=0 => Tail::Absent,
            1 => Tail::Zeros,
            _ => Tail::All,
        };
        // What no element of the type can be is not believed.
        let top = i32::from(survey.top).min(F::TOP);
        let low = -i32::from(survey.low);
        let low = low.max(F::FINEST);
        match kind {
            Kind::Fixed => {
                let bits = if survey.top == NONE { 0 } else { width.bits_of_limb(counter) };
                let unit = top.max(F::FINEST + 1) - bits as i32;
                let limbs = u32::from(bits > 0) + tail.counters().div_ceil(width.counters(counter));
                Shape { unit, bits, tail, limbs }
            }
            Kind::Exact => {
                let is_zero = survey.top == NONE || survey.low == NONE || top <= low;
                let bits = if is_zero { 0 } else { (top - low) as u32 };
                let unit = if is_zero { 0 } else { low };
                let limbs = (bits + tail.counters() * counter).div_ceil(width.bits_of_limb(counter));
                Shape { unit, bits, tail, limbs }
            }
        }
    }
}

/// A limb with fewer bits would be mostly room for the members.
const LIMB_MIN: u32 = 4;
