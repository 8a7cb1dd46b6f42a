//! How an operation is cut into the pieces of a board, and what of each piece a member gives.
//!
//! ```text
//!   allreduce, reduce, bcast        vector  |-- piece 0 --|-- piece 1 --|-- 2 --|
//!   allgather, reduce-scatter       blocks  |- 0 -|- 1 -|2|- 0 -|- 1 -|2|- 0 -|- 1 -|2|
//! ```
//! A piece has the same elements of every block, so that all members have as much to do in each.
//! Members cut alike, because nothing goes into it but what they have in common.

use std::ops::Range;

use trib_proto::window;
use trib_wire::{Collective, DataType, ReduceOp, Signature, WireFormat};

/// From where a member looks at an operation. Members of a board are counted, not of the group,
/// where that goes beyond the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct View {
    /// How many members the board has, and which of them this is.
    pub(super) members: u32,
    pub(super) me: u32,
    /// The operation's root, if it is one of them.
    pub(super) root: Option<u32>,
    /// The group has members on other hosts: the first member here brings the answer.
    pub(super) beyond: Option<Beyond>,
}

/// Where a member is in a group that has others on other hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Beyond {
    /// How many members the group has, and which of them this is.
    pub(super) size: u32,
    pub(super) rank: u32,
}

impl View {
    fn is_wide(&self) -> bool {
        self.beyond.is_some()
    }

    /// How many members the group has, and which of them this is.
    fn position(&self) -> (u32, u32) {
        self.beyond.map_or((self.members, self.me), |beyond| (beyond.size, beyond.rank))
    }
}

/// An operation of a group, as one member sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) signature: Signature,
    view: View,
    /// It has a block for each member.
    has_blocks: bool,
    /// It has no way over the boards of its group, where it is only shown.
    is_shown: bool,
    /// The elements of the whole vector, or of a block.
    elements: u64,
    /// How many of them a full piece has.
    stride: u64,
    /// How many pieces there are, at least one.
    pieces: u64,
}

/// Whose contributions a member needs before it can take a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    All,
    /// That of the operation's root.
    Root(usize),
    /// Those of all hosts: the answer that the first member shows.
    Answer,
    Nobody,
}

impl Cut {
    pub(super) fn new(signature: Signature, view: View, piece_len: usize) -> Cut {
        let element = signature.element_size() as u64;
        let (size, _) = view.position();
        let blocks = match signature.collective {
            Collective::ReduceScatter => u64::from(size),
            _ => 1,
        };
        let has_blocks = matches!(signature.collective, Collective::ReduceScatter | Collective::Allgather);
        let is_shown = view.is_wide() && !goes_over_boards(&signature, size);
        let elements = match has_blocks {
            _ if is_shown => 0,
            true => signature.count,
            false => window::vector_elements(&signature, view.members).unwrap_or(0),
        };
        let most = (piece_len as u64 / element / blocks).max(1);
        // Pieces of one length leave no short one at the end, which would be waited for as well.
        let stride = elements.div_ceil(elements.div_ceil(most).max(1)).max(1);
        let pieces = elements.div_ceil(stride).max(1);
        Cut { signature, view, has_blocks, is_shown, elements, stride, pieces }
    }

    /// What the heads call for a piece, if `root` is the head of the root's host.
    ///
    /// The group of the heads knows no blocks of the members. Where there are some, each host gives
    /// what it has of the whole vector and gets all of it, which is more than it needs, but short.
    pub(super) fn between(&self, piece: u64, root: u32) -> Signature {
        let count = self.answer_elements(piece).end;
        let carried = Signature { collective: Collective::Allreduce, root: CARRIED, count, ..self.signature };
        match self.signature.collective {
            _ if self.is_shown => Signature { root: 0, count: 0, ..self.signature },
            Collective::Allgather => {
                let count = count * self.signature.element_size() as u64;
                Signature { dtype: DataType::U8, op: ReduceOp::BitOr, count, ..carried }
            }
            Collective::ReduceScatter => carried,
            _ => Signature { root, count, ..self.signature },
        }
    }

    /// Whether it is only shown to members on other hosts, and goes another way.
    pub(super) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Whether a node that compares what the heads call has seen a piece of this call, as far as
    /// that can be told without its root.
    pub(super) fn has_piece(&self, seen: &Signature) -> bool {
        let has_root = matches!(self.signature.collective, Collective::Reduce | Collective::Bcast);
        let root = if has_root { seen.root } else { 0 };
        [0, self.pieces - 1].map(|piece| self.between(piece, root)).contains(seen)
    }

    /// The elements of the answer to a piece, from 0 on: all blocks, if there are some.
    fn answer_elements(&self, piece: u64) -> Range<u64> {
        let Range { start, end } = self.elements_of(piece);
        let blocks = if self.has_blocks && !self.is_shown { u64::from(self.view.position().0) } else { 1 };
        0..(end - start) * blocks
    }

    /// The bytes of the answer to a piece in a group that has members on other hosts.
    pub(super) fn answer_bytes(&self, piece: u64) -> usize {
        self.answer_elements(piece).end as usize * self.signature.element_size()
    }

    /// What this member gets of the answer to a piece: from which byte of it on, and the elements
    /// of the result.
    pub(super) fn of_answer(&self, piece: u64) -> (usize, Range<u64>) {
        match self.signature.collective {
            Collective::Allgather => (0, self.answer_elements(piece)),
            Collective::ReduceScatter => {
                let (_, rank) = self.view.position();
                (rank as usize * self.piece_bytes(piece), self.in_block(piece, rank))
            }
            _ => (0, self.in_block(piece, 0)),
        }
    }

    /// How many pieces there are, at least one.
    pub(super) fn pieces(&self) -> u64 {
        self.pieces
    }

    fn elements_of(&self, piece: u64) -> Range<u64> {
        let start = piece * self.stride;
        start..(start + self.stride).min(self.elements)
    }

    /// The bytes of a piece in the vector, or in one block of it.
    pub(super) fn piece_bytes(&self, piece: u64) -> usize {
        let Range { start, end } = self.elements_of(piece);
        (end.saturating_sub(start) as usize) * self.signature.element_size()
    }

    /// The elements of a piece in block `block` of the vector, whose blocks have `count` elements.
    pub(super) fn in_block(&self, piece: u64, block: u32) -> Range<u64> {
        let before = u64::from(block) * self.signature.count;
        let Range { start, end } = self.elements_of(piece);
        before + start..before + end
    }

    /// What a member puts into its cell for a piece, one stretch of the vector after the other.
    pub(super) fn given(&self, piece: u64) -> impl Iterator<Item = Range<u64>> {
        let blocks = match self.signature.collective {
            Collective::Barrier => 0..0,
            Collective::Bcast if !self.is_root() => 0..0,
            Collective::Allreduce | Collective::Reduce | Collective::Bcast => 0..1,
            Collective::Allgather => self.view.position().1..self.view.position().1 + 1,
            Collective::ReduceScatter => 0..self.view.position().0,
        };
        let cut = *self;
        blocks.map(move |block| cut.in_block(piece, block))
    }

    /// The bytes that a member which gives to a piece puts there in all.
    pub(super) fn given_bytes(&self, piece: u64) -> usize {
        let blocks =
            if self.signature.collective == Collective::ReduceScatter { self.view.position().0 as usize } else { 1 };
        blocks * self.piece_bytes(piece)
    }

    fn is_root(&self) -> bool {
        self.view.root == Some(self.view.me)
    }

    /// The member whose bytes are those of all; `None` if it is none of the board's.
    pub(super) fn source(&self) -> Option<usize> {
        self.view.root.filter(|_| self.signature.collective == Collective::Bcast).map(|root| root as usize)
    }

    /// Whether this member shows a cell for each piece. In a wide group all do, because the first
    /// compares what they have called before it speaks for them.
    pub(super) fn gives(&self) -> bool {
        self.view.is_wide() || self.signature.collective != Collective::Bcast || self.is_root()
    }

    /// Whether this member gets anything.
    pub(super) fn gets(&self) -> bool {
        match self.signature.collective {
            Collective::Barrier => false,
            Collective::Reduce => self.is_root(),
            Collective::Bcast => !self.is_root(),
            Collective::Allreduce | Collective::Allgather | Collective::ReduceScatter => true,
        }
    }

    /// Whose contributions this member needs before it has done with a piece.
    pub(super) fn need(&self) -> Need {
        // The others' pieces stay where they are until it has done with them.
        if self.view.is_wide() && self.view.me == 0 {
            return Need::Answer;
        }
        match (self.signature.collective, self.source()) {
            (Collective::Reduce | Collective::Bcast, _) if !self.gets() => Need::Nobody,
            _ if self.is_shown => Need::Nobody,
            (Collective::Bcast, Some(root)) => Need::Root(root),
            _ if self.view.is_wide() => Need::Answer,
            _ => Need::All,
        }
    }

    /// Into how many portions the fold of a piece is cut that members fold together, each element
    /// once. 0: each member that needs it folds it for itself, which is less work for two members,
    /// and saves waiting for each other where there is little to fold; or in a wide group the first
    /// does.
    pub(super) fn portions(&self, piece: u64) -> u64 {
        let folds = matches!(self.signature.collective, Collective::Allreduce | Collective::Reduce);
        let bytes = self.piece_bytes(piece);
        let members = self.view.members;
        if !folds || members < portions_from(self.view.is_wide()) || bytes * (members as usize) < FOLD_ALONE_MAX {
            return 0;
        }
        bytes.div_ceil(self.portion_len()) as u64
    }

    /// The bytes of a portion, a whole number of elements.
    fn portion_len(&self) -> usize {
        let element = self.signature.element_size();
        PORTION / element * element
    }

    /// Where a portion lies in its piece.
    pub(super) fn portion(&self, piece: u64, portion: u64) -> Range<usize> {
        let from = portion as usize * self.portion_len();
        from..(from + self.portion_len()).min(self.piece_bytes(piece))
    }

    /// What members compare before they take each other's pieces: the signature, in two words.
    pub(super) fn words(&self) -> [u64; 2] {
        let Signature { collective, dtype, op, format, root, count } = self.signature;
        let codes = [collective.code(), dtype.code(), op.code(), format.code()];
        [u64::from(u32::from_le_bytes(codes)) | u64::from(root) << 32, count]
    }
}

/// Whether an operation goes over the boards of a group that has members on several hosts: if it
/// has a block for each, only as long as all blocks are short, because each host gets them all.
pub(super) fn goes_over_boards(signature: &Signature, size: u32) -> bool {
    let has_blocks = matches!(signature.collective, Collective::Allgather | Collective::ReduceScatter);
    let bytes = window::vector_elements(signature, size).unwrap_or(u64::MAX);
    !has_blocks || bytes.saturating_mul(signature.element_size() as u64) <= CARRIED_MAX
}

/// The signature in such words, if they are one.
pub(super) fn signature_of([codes, count]: [u64; 2]) -> Option<Signature> {
    let [collective, dtype, op, format] = (codes as u32).to_le_bytes();
    Some(Signature {
        collective: Collective::from_code(collective)?,
        dtype: DataType::from_code(dtype)?,
        op: ReduceOp::from_code(op)?,
        format: WireFormat::from_code(format)?,
        root: (codes >> 32) as u32,
        count,
    })
}

/// With fewer members there are no portions. Of two that both need the sum each folds it, but that
/// which goes to other hosts is needed once.
pub(super) fn portions_from(is_wide: bool) -> u32 {
    if is_wide { 2 } else { 3 }
}

/// What the heads call as the root of an allreduce that carries something else. A plain one has 0.
const CARRIED: u32 = 1;
/// In bytes, of all blocks together. It is less than every board has room for.
const CARRIED_MAX: u64 = 4096;
/// In bytes. A claim costs about as much as folding a tenth of it.
const PORTION: usize = 8 * 1024;
/// A member folds alone what all members together give so many bytes to.
const FOLD_ALONE_MAX: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(collective: Collective, count: u64, members: u32, me: u32, root: u32) -> Cut {
        let signature =
            Signature { collective, dtype: DataType::F64, op: ReduceOp::Sum, format: WireFormat::Plain, root, count };
        Cut::new(signature, View { members, me, root: Some(root), beyond: None }, 4096)
    }

    proptest! {
        #[test]
        fn the_pieces_of_all_members_together_are_what_they_give(
            which in 0usize..Collective::ALL.len(), count in 0u64..5000, members in 1u32..9, root in 0u32..9,
        ) {
            let (collective, root) = (Collective::ALL[which], root % members);
            for me in 0..members {
                let cut = cut(collective, count, members, me, root);
                let mut given: Vec<u64> = (0..cut.pieces()).flat_map(|piece| cut.given(piece)).flatten().collect();
                given.sort_unstable();
                let expected: Vec<u64> = match collective {
                    Collective::Barrier => vec![],
                    _ => window::given(&cut.signature, members, me).collect(),
                };
                prop_assert_eq!(given, expected);
                for piece in 0..cut.pieces() {
                    let bytes: usize = cut.given(piece).map(|elements| (elements.end - elements.start) as usize * 8).sum();
                    prop_assert!(bytes <= 4096 && (bytes == 0 || bytes == cut.given_bytes(piece)));
                    let portions: Vec<_> = (0..cut.portions(piece)).flat_map(|portion| cut.portion(piece, portion)).collect();
                    prop_assert!(portions.is_empty() || portions == (0..cut.piece_bytes(piece)).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn in_a_wide_group_the_first_member_speaks_for_the_others() {
        let cut = |collective, me, root: Option<u32>| {
            let plain = cut(collective, 4096, 3, me, root.unwrap_or(7));
            let beyond = Some(Beyond { size: 5, rank: me + 1 });
            Cut::new(plain.signature, View { members: 3, me, root, beyond }, 64 * 1024)
        };
        let needs = |collective, root| [0, 1, 2].map(|me| cut(collective, me, root).need());
        use Need::{Answer, Nobody, Root};
        assert_eq!(needs(Collective::Allreduce, None), [Answer; 3]);
        assert_eq!(needs(Collective::Barrier, None), [Answer; 3]);
        assert_eq!(needs(Collective::Reduce, Some(1)), [Answer, Answer, Nobody]);
        assert_eq!(needs(Collective::Reduce, None), [Answer, Nobody, Nobody]);
        assert_eq!(needs(Collective::Bcast, Some(1)), [Answer, Nobody, Root(1)]);
        assert_eq!(needs(Collective::Bcast, None), [Answer; 3]);
        assert_eq!(needs(Collective::Allgather, None), [Answer, Nobody, Nobody], "it is long, and goes another way");
        assert_eq!(cut(Collective::ReduceScatter, 1, None).given_bytes(0), 0);
        // Short ones go this way, and members have the ranks that they have in the group.
        let of = |collective, count| {
            let Cut { signature, view, .. } = cut(collective, 1, None);
            Cut::new(Signature { count, ..signature }, view, 64 * 1024)
        };
        let short = |collective| of(collective, 7);
        let (gather, scatter) = (short(Collective::Allgather), short(Collective::ReduceScatter));
        assert_eq!((gather.need(), scatter.need()), (Answer, Answer));
        assert_eq!((gather.given(0).next(), gather.given_bytes(0)), (Some(14..21), 56));
        assert_eq!((scatter.given(0).count(), scatter.given_bytes(0)), (5, 280));
        assert_eq!((gather.answer_bytes(0), scatter.answer_bytes(0)), (280, 280));
        assert_eq!((gather.of_answer(0), scatter.of_answer(0)), ((0, 0..35), (112, 14..21)));
        let seen = [gather, scatter].map(|cut| cut.between(0, 0));
        assert_eq!(
            seen.map(|seen| (seen.collective, seen.count)),
            [(Collective::Allreduce, 280), (Collective::Allreduce, 35)]
        );
        assert!(gather.has_piece(&seen[0]) && !gather.has_piece(&seen[1]));
        assert!(!of(Collective::Allreduce, 35).has_piece(&seen[1]), "a plain one has another root");
        let bcast = cut(Collective::Bcast, 2, Some(1));
        assert!(bcast.gives() && bcast.given(0).next().is_none(), "all show what they have called");
        assert!(cut(Collective::Allreduce, 0, None).portions(0) > 0);
    }

    #[test]
    fn an_operation_without_data_has_one_piece() {
        for collective in Collective::ALL {
            let cut = cut(*collective, 0, 3, 1, 0);
            assert_eq!((cut.pieces(), cut.piece_bytes(0), cut.portions(0)), (1, 0, 0), "{collective}");
        }
    }

    #[test]
    fn other_operations_have_other_words() {
        let one = cut(Collective::Reduce, 9, 3, 1, 2);
        for other in [cut(Collective::Reduce, 8, 3, 1, 2), cut(Collective::Reduce, 9, 3, 1, 1)] {
            assert_ne!(one.words(), other.words());
        }
        assert_ne!(one.words(), cut(Collective::Allreduce, 9, 3, 1, 2).words());
        assert_eq!(one.words(), cut(Collective::Reduce, 9, 3, 0, 2).words());
        assert_eq!(signature_of(one.words()), Some(one.signature));
        assert_eq!(signature_of([u64::MAX, 1]), None);
    }
}
