//! The kinds of resources that are counted, their amounts, and shares of these.

use std::fmt;
use std::str::FromStr;

use trib_messages::reply::Resource;

/// A kind of resource that jobs take.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Jobs,
    Groups,
    Osts,
    Streams,
    Memory,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Kind; 5] = [Kind::Jobs, Kind::Groups, Kind::Osts, Kind::Streams, Kind::Memory];

    /// Its name in the file.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Kind::Jobs => "jobs",
            Kind::Groups => "groups",
            Kind::Osts => "osts",
            Kind::Streams => "streams",
            Kind::Memory => "memory",
        }
    }

    /// This amount of it, as a sentence says it.
    pub(crate) fn counted(self, amount: u64) -> String {
        let (one, many) = match self {
            Kind::Jobs => ("job", "jobs"),
            Kind::Groups => ("group", "groups"),
            Kind::Osts => ("datagram slot (osts)", "datagram slots (osts)"),
            Kind::Streams => ("stream context", "stream contexts"),
            Kind::Memory => ("byte of buffers", "bytes of buffers"),
        };
        format!("{amount} {}", if amount == 1 { one } else { many })
    }

    /// What a refusal calls it.
    pub(crate) const fn resource(self) -> Resource {
        match self {
            Kind::Jobs => Resource::Jobs,
            Kind::Groups => Resource::Groups,
            Kind::Osts => Resource::Osts,
            Kind::Streams => Resource::Streams,
            Kind::Memory => Resource::Memory,
        }
    }
}

/// An amount of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Amounts([u64; Kind::ALL.len()]);

impl Amounts {
    /// These amounts, and nothing of the other kinds.
    pub(crate) fn of(pairs: &[(Kind, u64)]) -> Self {
        let mut amounts = Amounts::default();
        pairs.iter().for_each(|(kind, amount)| amounts.0[*kind as usize] = *amount);
        amounts
    }

    /// The amount of one kind.
    pub(crate) fn get(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    /// Whether all amounts are zero.
    pub(crate) fn is_zero(&self) -> bool {
        self.0 == [0; Kind::ALL.len()]
    }

    pub(crate) fn plus(&self, other: &Amounts) -> Amounts {
        Amounts(std::array::from_fn(|i| self.0[i].saturating_add(other.0[i])))
    }

    pub(crate) fn minus(&self, other: &Amounts) -> Amounts {
        Amounts(std::array::from_fn(|i| self.0[i].saturating_sub(other.0[i])))
    }
}

/// A largest amount of each kind. A kind without one is not bounded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Caps([Option<u64>; Kind::ALL.len()]);

impl Caps {
    /// The largest amount of one kind.
    pub(crate) fn get(&self, kind: Kind) -> Option<u64> {
        self.0[kind as usize]
    }

    pub(crate) fn set(&mut self, kind: Kind, most: Option<u64>) {
        self.0[kind as usize] = most;
    }

    /// Whether no kind is bounded.
    pub(crate) fn are_none(&self) -> bool {
        self.0 == [None; Kind::ALL.len()]
    }
}

/// A share of something: more than nothing, and at most all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    part: u32,
    whole: u32,
}

impl Share {
    /// This share of an amount, rounded down.
    pub(crate) fn of(self, amount: u64) -> u64 {
        let part = u128::from(amount) * u128::from(self.part) / u128::from(self.whole);
        u64::try_from(part).expect("a part is at most the whole")
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = match (text.strip_suffix('%'), text.split_once('/')) {
            (Some(percent), _) => (percent.parse(), Ok(100)),
            (None, Some((part, whole))) => (part.parse(), whole.parse()),
            (None, None) => return Err(format!("`{text}` is no share")),
        };
        match numbers {
            (Ok(part), Ok(whole)) if 1 <= part && part <= whole => Ok(Share { part, whole }),
            _ => Err(format!("`{text}` is no share above nothing and up to all")),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole {
            100 => write!(f, "{}%", self.part),
            whole => write!(f, "{}/{whole}", self.part),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_are_written_as_parts_or_in_percent() {
        let share = |text: &str| text.parse::<Share>().map(|share| share.of(1000));
        assert_eq!((share("1/8"), share("25%"), share("3/3")), (Ok(125), Ok(250), Ok(1000)));
        assert_eq!("1/3".parse::<Share>().unwrap().of(u64::MAX), u64::MAX / 3);
        for text in ["", "8", "0/8", "9/8", "1/0", "0%", "101%", "-1/8", "1/8/2", "half", "%", "/", "12.5%"] {
            let error = share(text).unwrap_err();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_share_is_printed_as_it_is_read(part in 1u32..=100, more in 0u32..100, amount in any::<u64>()) {
            for text in [format!("{part}/{}", part + more), format!("{part}%")] {
                let share: Share = text.parse().unwrap();
                prop_assert_eq!(share.to_string().parse::<Share>().unwrap(), share);
                prop_assert!(share.of(amount) <= amount);
            }
        }
    }
}
