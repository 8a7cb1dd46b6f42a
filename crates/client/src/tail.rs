//! The tail of a group's last results, which some member may still lack.
//!
//! The library does not read the caller's memory after an operation is complete. But if the node
//! above dies before every member has received the last fragments of the result, this rank's copy
//! may be the only one left. So the library keeps its own copy of these fragments, and drops it
//! when the group's mark says that every member has them.

use std::collections::BTreeMap;

use trib_proto::Path;
use trib_proto::leaf::GroupId;

/// The tails of one rank, at most one per group and path.
#[derive(Default)]
pub(crate) struct Tails {
    kept: BTreeMap<(GroupId, Lane), Tail>,
}

/// The copy.
#[derive(Default)]
struct Tail {
    /// The copy covers fragments or segments of the group with numbers below this one.
    end_seq: u64,
    bytes: Vec<u8>,
}

/// `Path` as a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lane(bool);

fn key(group: GroupId, path: Path) -> (GroupId, Lane) {
    (group, Lane(path == Path::Stream))
}

impl Tails {
    /// Replaces the tail of `path`; `bytes` belong to numbers below `end_seq`.
    pub(crate) fn keep(&mut self, group: GroupId, path: Path, end_seq: u64, bytes: &[u8]) {
        let tail = self.kept.entry(key(group, path)).or_default();
        tail.end_seq = end_seq;
        tail.bytes.clear();
        tail.bytes.extend_from_slice(bytes);
    }

    /// Notes that every member has the results below `seq`.
    pub(crate) fn stable(&mut self, group: GroupId, path: Path, seq: u64) {
        if let Some(tail) = self.kept.get_mut(&key(group, path))
            && tail.end_seq <= seq
        {
            // The memory is kept for the next operation.
            tail.bytes.clear();
        }
    }

    /// Drops the tails of a group that was left.
    pub(crate) fn forget(&mut self, group: GroupId) {
        for path in [Path::Datagram, Path::Stream] {
            self.kept.remove(&key(group, path));
        }
    }

    /// What is kept for a path; empty when every member has everything.
    pub(crate) fn get(&self, group: GroupId, path: Path) -> &[u8] {
        self.kept.get(&key(group, path)).map_or(&[], |tail| &tail.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_lives_until_everybody_has_it() {
        let (mut tails, group) = (Tails::default(), GroupId(3));
        tails.keep(group, Path::Stream, 5, b"abc");
        tails.keep(group, Path::Datagram, 2, b"x");
        tails.stable(group, Path::Stream, 4);
        assert_eq!(tails.get(group, Path::Stream), b"abc");
        tails.stable(group, Path::Stream, 5);
        assert_eq!(tails.get(group, Path::Stream), b"");
        assert_eq!(tails.get(group, Path::Datagram), b"x");
        tails.forget(group);
        assert_eq!(tails.get(group, Path::Datagram), b"");
        tails.stable(group, Path::Datagram, 9);
    }
}
