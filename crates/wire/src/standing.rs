//! How far the ranks below have come in a group: what a join says of a group that was begun in an
//! earlier epoch.
//!
//! ```text
//! marks     fragments u64 | segments u64
//! standing  flags u32 | marks
//! ```

use crate::bytes::{Reader, Writer};
use crate::error::ParseError;
use crate::header::{Header, NUMBER_MAX};

/// The largest number of a piece with which a group may begin in an epoch.
pub const MARK_MAX: u64 = NUMBER_MAX;

/// Numbers of a group's pieces, one for each path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Marks {
    /// The number of a fragment.
    pub fragments: u64,
    /// The number of a segment.
    pub segments: u64,
}

impl Marks {
    pub(crate) const LEN: usize = 16;

    /// The numbers that a Join, Refused or GroupError of a job under `strict` has in its header.
    pub fn of(header: &Header) -> Marks {
        Marks { fragments: header.mark.min(MARK_MAX), segments: header.seq.min(MARK_MAX) }
    }

    /// A header that says these numbers. No number is larger than the field may have, whatever
    /// a peer has said before.
    pub fn said_by(self, header: Header) -> Header {
        Header { mark: self.fragments.min(MARK_MAX), seq: self.segments.min(MARK_MAX), ..header }
    }

    /// The higher number on each path.
    pub fn higher(self, other: Marks) -> Marks {
        Marks { fragments: self.fragments.max(other.fragments), segments: self.segments.max(other.segments) }
    }

    /// The lower number on each path.
    pub fn lower(self, other: Marks) -> Marks {
        Marks { fragments: self.fragments.min(other.fragments), segments: self.segments.min(other.segments) }
    }

    pub(crate) fn emit(self, w: &mut Writer<'_>) {
        w.u64(self.fragments);
        w.u64(self.segments);
    }

    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Marks, ParseError> {
        let marks = Marks { fragments: r.u64()?, segments: r.u64()? };
        if marks.fragments.max(marks.segments) > MARK_MAX {
            return Err(ParseError::BadField("marks"));
        }
        Ok(marks)
    }
}

/// What the ranks at or below the sender of a join have of the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Some have begun its creation in an earlier epoch.
    pub resumed: bool,
    /// Some know that it exists.
    pub exists: bool,
    /// Some have done with it, and will not say another word about it.
    pub some_left: bool,
    /// All have.
    pub all_left: bool,
    /// The programs of all have freed it, so that it goes as soon as nobody lacks anything.
    pub freed: bool,
    /// At some node there is room for it only when groups are gone that all have freed.
    pub waits: bool,
    /// It is made for another group, which the quota of groups counts.
    pub companion: bool,
    /// All that have not done with it hold every result below these numbers.
    pub marks: Marks,
}

impl Standing {
    /// Nothing has happened in the group yet.
    pub const NEW: Standing = Standing {
        resumed: false,
        exists: false,
        some_left: false,
        all_left: false,
        freed: false,
        waits: false,
        companion: false,
        marks: Marks { fragments: 0, segments: 0 },
    };

    pub(crate) const LEN: usize = 4 + Marks::LEN;

    /// The standing of two sets of ranks together.
    pub fn with(self, other: Standing) -> Standing {
        let (companion, marks) = match (self.all_left, other.all_left) {
            (true, _) => (other.companion, other.marks),
            (_, true) => (self.companion, self.marks),
            _ => (self.companion && other.companion, self.marks.lower(other.marks)),
        };
        Standing {
            resumed: self.resumed || other.resumed,
            exists: self.exists || other.exists,
            some_left: self.some_left || other.some_left,
            all_left: self.all_left && other.all_left,
            freed: self.freed && other.freed,
            waits: self.waits || other.waits,
            companion,
            marks,
        }
    }

    pub(crate) fn emit(&self, w: &mut Writer<'_>) {
        let flags = [self.resumed, self.exists, self.some_left, self.all_left, self.freed, self.waits, self.companion];
        w.u32(flags.iter().enumerate().fold(0, |bits, (i, flag)| bits | u32::from(*flag) << i));
        self.marks.emit(w);
    }

    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Standing, ParseError> {
        let flags = r.u32()?;
        let flag = |i: u32| flags >> i & 1 != 0;
        let [resumed, exists, some_left, all_left, freed, waits, companion] = [0, 1, 2, 3, 4, 5, 6].map(flag);
        if flags >> 7 != 0 || (all_left && !(some_left && freed)) {
            return Err(ParseError::BadField("standing"));
        }
        Ok(Standing { resumed, exists, some_left, all_left, freed, waits, companion, marks: Marks::parse(r)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{HEADER_LEN, Kind};
    use crate::ids::{ChildIndex, Epoch, JobId, NodeId};

    /// A node above may say any mark, and what a rank has heard it says again when it joins: the
    /// next node's parser would end every connection of that rank.
    #[test]
    fn a_mark_beyond_all_numbers_is_said_as_one_that_the_parser_takes() {
        let heard = Marks { fragments: u64::MAX, segments: u64::MAX - 3 };
        let mut bytes = [0; HEADER_LEN];
        let header = Header::new(Kind::Join, JobId(1), Epoch(1), NodeId(0), ChildIndex(0));
        heard.said_by(header).emit(0, &mut bytes);
        let (header, _) = Header::parse(&bytes).expect("the parser takes it");
        assert_eq!(Marks::of(&header), Marks { fragments: MARK_MAX, segments: MARK_MAX });
    }

    #[test]
    fn who_has_left_has_no_say_in_where_an_epoch_begins() {
        let at = |fragments, segments| Standing { marks: Marks { fragments, segments }, ..Standing::NEW };
        let left = Standing { some_left: true, all_left: true, freed: true, ..Standing::NEW };
        assert_eq!(at(7, 3).with(at(5, 4)).marks, Marks { fragments: 5, segments: 3 });
        for both in [left.with(at(7, 3)), at(7, 3).with(left)] {
            assert_eq!((both.marks, both.some_left, both.all_left), (at(7, 3).marks, true, false));
        }
        let companion = Standing { companion: true, ..Standing::NEW };
        assert!(
            companion.with(companion).companion && companion.with(left).companion && left.with(companion).companion
        );
        assert!(!companion.with(Standing::NEW).companion, "a group for which some have asked as a group of its own");
    }

    #[test]
    fn a_group_is_freed_when_all_have_freed_it() {
        let freed = Standing { freed: true, ..Standing::NEW };
        assert!(freed.with(freed).freed && !freed.with(Standing::NEW).freed && !Standing::NEW.with(freed).freed);
    }
}
