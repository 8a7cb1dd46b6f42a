//! Which levels below the aggregation nodes the tree of a job has.

/// The levels of a job's tree whose nodes are in processes of its ranks. Each has those before it,
/// too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Levels {
    /// None: every rank is a child of an aggregation node.
    #[default]
    None,
    /// The hosts that have several ranks.
    Host,
    /// The NUMA domains that have several ranks.
    Numa,
}

impl Levels {
    /// All of them, each at the index that is its number.
    pub const ALL: [Levels; 3] = [Levels::None, Levels::Host, Levels::Numa];
    /// Their names, in the same order.
    pub const NAMES: [&'static str; 3] = ["none", "host", "numa"];

    /// Its number in the table of limits.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The levels with this number.
    pub fn from_number(number: u64) -> Option<Levels> {
        Levels::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Their name wherever people write it.
    pub fn name(self) -> &'static str {
        Levels::NAMES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn each_has_its_number_and_its_name_everywhere() {
        for (number, levels) in Levels::ALL.into_iter().enumerate() {
            assert_eq!((levels.number(), Levels::from_number(levels.number())), (number as u64, Some(levels)));
            assert_eq!(serde_json::to_string(&levels).unwrap(), format!("\"{}\"", levels.name()));
        }
        assert_eq!(Levels::from_number(3), None);
    }
}
