//! Which sum is asked for.

use trib_wire::{DataType, Scalar, WireFormat};

/// A sum that does not depend on order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Each element is rounded once before it is added, relative to the largest of its block.
    Fixed,
    /// The sum is that of the numbers, rounded once.
    Exact,
}

/// Why a sum cannot be taken so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The elements are not floating-point numbers.
    #[error("{0} is not a floating-point type, whose sums are the ones that depend on order")]
    NoFloat(DataType),
    /// The group is too large.
    #[error("a sum that does not depend on order has at most {max} members, not {0}", max = crate::MEMBERS_MAX)]
    Members(u32),
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 2] = [Kind::Fixed, Kind::Exact];

    /// What it is called in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Fixed => "fixed",
            Kind::Exact => "exact",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How its surveys travel.
    pub const fn survey_format(self) -> WireFormat {
        match self {
            Kind::Fixed => WireFormat::FixedSurvey,
            Kind::Exact => WireFormat::ExactSurvey,
        }
    }

    /// The integers of a survey.
    pub const fn survey_len(self) -> usize {
        match self {
            Kind::Fixed => 2,
            Kind::Exact => 3,
        }
    }

    /// Whether a group of `members` can sum elements of this type so.
    pub fn check(self, dtype: DataType, members: u32) -> Result<(), Refusal> {
        if dtype.index().is_some() || !matches!(dtype.value(), Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64) {
            return Err(Refusal::NoFloat(dtype));
        }
        if members > crate::MEMBERS_MAX {
            return Err(Refusal::Members(members));
        }
        Ok(())
    }
}
