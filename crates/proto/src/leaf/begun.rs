//! How many creations a rank has begun with each tag and list of members. It never forgets one, so
//! it keeps no list, which may be long, but a digest of it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use trib_wire::{GroupKey, RankList};

/// The creations that a rank has begun.
#[derive(Default)]
pub(super) struct Begun {
    counts: BTreeMap<Digest, u32>,
}

/// What stands for a tag and a list of members. Two of 128 bits are not equal by chance. The lists
/// that are counted are those of the rank's own program, so the digest need not resist anybody who
/// looks for two lists with the same.
type Digest = u128;

impl Begun {
    /// Begins another creation. Returns how many with this tag and these members were begun before.
    pub(super) fn count(&mut self, tag: u64, members: &RankList) -> u32 {
        let count = self.counts.entry(digest(tag, members)).or_default();
        *count += 1;
        *count - 1
    }

    /// Whether the creation of this key was begun.
    pub(super) fn contains(&self, key: &GroupKey) -> bool {
        self.counts.get(&digest(key.tag, &key.members)).is_some_and(|count| key.creation < *count)
    }
}

fn digest(tag: u64, members: &RankList) -> Digest {
    let half = |which: u8| {
        let mut hasher = DefaultHasher::new();
        (which, tag).hash(&mut hasher);
        members.runs().iter().for_each(|run| (run.first, run.count, run.stride).hash(&mut hasher));
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of many runs, in another order for each number.
    fn shuffled(number: u32) -> RankList {
        RankList::from_ranks((0..1009).map(|rank| (rank * rank + number) % 1009 * 3 + rank % 3))
    }

    #[test]
    fn creations_are_counted_by_tag_and_members() {
        let mut begun = Begun::default();
        for creation in 0..3 {
            for (tag, members) in [(1, 1), (2, 1), (1, 2)] {
                let key = GroupKey { tag, creation, members: shuffled(members) };
                assert!(!begun.contains(&key), "{tag} {members} {creation}");
                assert_eq!(begun.count(tag, &key.members), creation);
                assert!(begun.contains(&key), "{tag} {members} {creation}");
            }
        }
    }

    #[test]
    fn every_list_takes_the_same_room() {
        let mut begun = Begun::default();
        let lists = 0..500;
        lists.clone().for_each(|number| assert_eq!(begun.count(number.into(), &shuffled(number)), 0));
        assert_eq!(begun.counts.len(), lists.len());
        assert!(!owns_memory(&begun.counts), "what is kept of a list grows with it");
    }

    fn owns_memory<K, V>(_: &BTreeMap<K, V>) -> bool {
        std::mem::needs_drop::<(K, V)>()
    }
}
