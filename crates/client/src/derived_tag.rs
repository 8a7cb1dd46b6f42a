//! The numbers of groups that the library makes for a group of the program's.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use trib_wire::RankList;

/// The number that tells such a group from others of the same ranks: of the program's group with
/// this number and these members there is one at a time, which has one group for each purpose. If
/// all that make it know something that no other such group ever has, `which` tells that.
pub(crate) fn derived_tag(purpose: &str, tag: u64, members: &RankList, which: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new();
    hasher.write(b"tributary ");
    hasher.write(purpose.as_bytes());
    hasher.write_u64(tag.to_le());
    for rank in members.iter() {
        hasher.write_u32(rank.0.to_le());
    }
    hasher.write(which);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_the_same_ranks_have_other_numbers() {
        let derived = |purpose, tag, ranks: &[u32], which: &[u8]| {
            derived_tag(purpose, tag, &RankList::from_ranks(ranks.iter().copied()), which)
        };
        let tag = |purpose, tag, ranks| derived(purpose, tag, ranks, &[]);
        assert_ne!(derived("heads", 7, &[0, 1, 2], &[1]), derived("heads", 7, &[0, 1, 2], &[2]));
        assert_ne!(tag("heads", 7, &[0, 1, 2]), tag("heads", 7, &[0, 1, 4]));
        assert_ne!(tag("heads", 7, &[0, 1, 2]), tag("heads", 8, &[0, 1, 2]));
        assert_ne!(tag("heads", 7, &[0, 1, 2]), tag("row", 7, &[0, 1, 2]));
        assert_eq!(tag("heads", 7, &[0, 1, 2]), tag("heads", 7, &[0, 1, 2]));
    }
}
