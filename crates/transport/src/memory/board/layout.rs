//! What stands where in a board.
//!
//! ```text
//!   head      how many members are asleep
//!   members   one line each: pieces taken, asleep?, left?, piece that it folds, processor
//!   slots     WINDOW times: portions claimed, portions folded,
//!             a cell for each member, and one for the answer: number, signature, pieces taken,
//!             few bytes
//!             a room for each member, and one for the sum and the answer: many bytes
//! ```
//! The cells of a slot lie side by side, so that who looks who has given, and what, if that is
//! short, touches one line for each member and few pages.
//! Whatever one processor writes while another waits for something else has a line of its own.

/// Two cache lines, because processors fetch them in pairs.
pub(super) const LINE: usize = 128;
/// How many pieces are on the board at once.
pub const WINDOW: u64 = 4;
/// The largest number of members.
pub const MEMBERS_MAX: usize = 256;
/// What a cell begins with, before its bytes: the number, the signature, and the pieces taken.
pub(super) const CELL_HEAD: usize = 32;
/// So many bytes fit into the cell itself.
pub(super) const SHORT: usize = LINE - CELL_HEAD;
/// Rooms do not begin at the same offset of a page, because processors would take their addresses
/// for one another's.
const SKEW: usize = 64;
/// The bytes of a piece. Longer ones hardly save any waiting for each other, and fit into no cache
/// that a core has to itself.
const PIECE_MAX: usize = 256 * 1024;
/// What the pieces on a board are to take of the cache that cores share, beside the members'
/// vectors: pieces are shorter for it where there are many members, down to a length below which
/// waiting for each other costs more.
const CACHED: usize = 5 << 20;
const PIECE_CACHED: usize = 128 * 1024;
const PIECE_MIN: usize = 4 * 1024;
/// The memory of a board of many members: its pieces are shorter.
const BYTES_MAX: usize = 16 << 20;

/// The offsets in the board of a group of so many members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) members: usize,
    /// The bytes of a piece that one member gives.
    pub(super) piece: usize,
    /// Where the first slot begins, and the bytes of each: every look asks for these.
    head: usize,
    slot: usize,
}

impl Layout {
    /// `None` if no board has so many members.
    pub(super) fn of(members: usize) -> Option<Layout> {
        if !(1..=MEMBERS_MAX).contains(&members) {
            return None;
        }
        let cells = WINDOW as usize * (members + 1);
        let cached = (CACHED / cells).clamp(PIECE_CACHED, PIECE_MAX);
        let piece = (cached.min(BYTES_MAX / cells) / PIECE_MIN).max(1) * PIECE_MIN;
        let head = LINE + 2 * LINE * members;
        let slot = 2 * LINE + (members + 1) * (LINE + piece + SKEW);
        Some(Layout { members, piece, head, slot })
    }

    pub(super) fn len(self) -> usize {
        self.slot(WINDOW)
    }

    #[inline]
    pub(super) fn sleepers(self) -> usize {
        0
    }

    #[inline]
    fn member(self, member: usize) -> usize {
        assert!(member < self.members);
        LINE + 2 * LINE * member
    }

    #[inline]
    pub(super) fn taken(self, member: usize) -> usize {
        self.member(member)
    }

    pub(super) fn asleep(self, member: usize) -> usize {
        self.member(member) + 8
    }

    pub(super) fn left(self, member: usize) -> usize {
        self.member(member) + 16
    }

    pub(super) fn folding(self, member: usize) -> usize {
        self.member(member) + 24
    }

    pub(super) fn processor(self, member: usize) -> usize {
        self.member(member) + 32
    }

    /// Where the slot of this number begins, or where it would.
    #[inline]
    fn slot(self, slot: u64) -> usize {
        self.head + slot as usize * self.slot
    }

    #[inline]
    fn slot_of(self, piece: u64) -> usize {
        self.slot(piece % WINDOW)
    }

    pub(super) fn claimed(self, piece: u64) -> usize {
        self.slot_of(piece)
    }

    pub(super) fn folded(self, piece: u64) -> usize {
        self.slot_of(piece) + LINE
    }

    /// Who has the cell and the room behind those of the members: nobody, it is for the answer.
    #[inline]
    pub(super) fn answer(self) -> usize {
        self.members
    }

    /// Where a member's cell is; those of all members lie side by side.
    #[inline]
    pub(super) fn cell(self, piece: u64, member: usize) -> usize {
        assert!(member <= self.members);
        self.slot_of(piece) + 2 * LINE + member * LINE
    }

    /// Where a member puts `len` bytes.
    ///
    /// # Panics
    /// If it has not so much room.
    #[inline]
    pub(super) fn given(self, piece: u64, member: usize, len: usize) -> usize {
        assert!(len <= self.piece);
        let cell = self.cell(piece, member);
        if len <= SHORT { cell + CELL_HEAD } else { self.room(piece, member) }
    }

    fn room(self, piece: u64, member: usize) -> usize {
        self.slot_of(piece) + 2 * LINE + (self.members + 1) * LINE + member * (self.piece + SKEW)
    }

    pub(super) fn result(self, piece: u64) -> usize {
        self.room(piece, self.answer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_and_everything_is_aligned() {
        for members in [1, 2, 3, 8, 64, 192, MEMBERS_MAX] {
            let layout = Layout::of(members).unwrap();
            let mut used = vec![(layout.sleepers(), 8)];
            for member in 0..members {
                used.extend([layout.taken(member), layout.asleep(member)].map(|at| (at, 8)));
                used.extend([layout.left(member), layout.folding(member)].map(|at| (at, 8)));
                used.push((layout.processor(member), 8));
            }
            for piece in 7..7 + WINDOW {
                used.extend([layout.claimed(piece), layout.folded(piece)].map(|at| (at, 8)));
                used.push((layout.result(piece), layout.piece));
                for member in 0..members {
                    used.push((layout.cell(piece, member), CELL_HEAD));
                    used.push((layout.given(piece, member, SHORT), SHORT));
                    used.push((layout.given(piece, member, layout.piece), layout.piece));
                }
                used.push((layout.cell(piece, layout.answer()), CELL_HEAD));
                used.push((layout.given(piece, layout.answer(), SHORT), SHORT));
                assert_eq!(layout.given(piece, layout.answer(), layout.piece), layout.result(piece));
            }
            used.sort_unstable();
            assert!(used.iter().all(|(at, _)| at % 8 == 0));
            assert!(used.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{members} members");
            let (last, len) = used[used.len() - 1];
            assert!(last + len <= layout.len() && layout.len() <= BYTES_MAX + (1 << 20), "{members} members");
        }
        assert_eq!((Layout::of(0), Layout::of(MEMBERS_MAX + 1)), (None, None));
    }
}
