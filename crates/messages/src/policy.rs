//! What a job promises when a node of its trees dies.

/// The policy by which a job recovers, the same at all its ranks and nodes. `docs/reliability.md`
/// says what each promises.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// Nothing is replaced: a dead node fails the groups that need it.
    Notify,
    /// Another process stands in for a dead node, and every operation ends as it would have.
    #[default]
    Retry,
    /// The same, and an operation ends with success at a rank only when every rank of its group
    /// holds the result. No rank reports an error for an operation that has succeeded elsewhere.
    Strict,
}

impl Recovery {
    /// All of them, each at the index that is its number.
    pub const ALL: [Recovery; 3] = [Recovery::Notify, Recovery::Retry, Recovery::Strict];
    /// Their names, in the same order.
    pub const NAMES: [&'static str; 3] = ["notify", "retry", "strict"];

    /// Its number in the table of limits.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The policy with this number.
    pub fn from_number(number: u64) -> Option<Recovery> {
        Recovery::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Its name wherever people write it.
    pub fn name(self) -> &'static str {
        Recovery::NAMES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn each_policy_has_its_number_and_its_name_everywhere() {
        for (number, policy) in Recovery::ALL.into_iter().enumerate() {
            assert_eq!((policy.number(), Recovery::from_number(policy.number())), (number as u64, Some(policy)));
            assert_eq!(serde_json::to_string(&policy).unwrap(), format!("\"{}\"", policy.name()));
        }
        assert_eq!(Recovery::from_number(3), None);
    }
}
