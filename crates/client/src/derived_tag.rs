//! The numbers of groups that the library makes for a group of the program's.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use trib_wire::RankList;

/// The number that tells such a group from others of the same ranks: of the program's group with
/// this number and these members there is one, which has one group for each purpose.
pub(crate) fn derived_tag(purpose: &str, tag: u64, members: &RankList) -> u64 {
    let mut hasher = SipHasher24::new();
    hasher.write(b"tributary ");
    hasher.write(purpose.as_bytes());
    hasher.write_u64(tag.to_le());
    for rank in members.iter() {
        hasher.write_u32(rank.0.to_le());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_the_same_ranks_have_other_numbers() {
        let tag = |purpose, tag, ranks: &[u32]| derived_tag(purpose, tag, &RankList::from_ranks(ranks.iter().copied()));
        assert_ne!(tag("heads", 7, &[0, 1, 2]), tag("heads", 7, &[0, 1, 4]));
        assert_ne!(tag("heads", 7, &[0, 1, 2]), tag("heads", 8, &[0, 1, 2]));
        assert_ne!(tag("heads", 7, &[0, 1, 2]), tag("row", 7, &[0, 1, 2]));
        assert_eq!(tag("heads", 7, &[0, 1, 2]), tag("heads", 7, &[0, 1, 2]));
    }
}
