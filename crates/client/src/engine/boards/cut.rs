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
    pub(super) is_wide: bool,
}

/// An operation of a group, as one member sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) signature: Signature,
    view: View,
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
        let element = signature.dtype.size() as u64;
        let blocks = match signature.collective {
            Collective::ReduceScatter => u64::from(view.members),
            _ => 1,
        };
        let elements = match signature.collective {
            // They go another way, and are only shown.
            Collective::ReduceScatter | Collective::Allgather if view.is_wide => 0,
            Collective::ReduceScatter | Collective::Allgather => signature.count,
            _ => window::vector_elements(&signature, view.members).unwrap_or(0),
        };
        let most = (piece_len as u64 / element / blocks).max(1);
        // Pieces of one length leave no short one at the end, which would be waited for as well.
        let stride = elements.div_ceil(elements.div_ceil(most).max(1)).max(1);
        let pieces = elements.div_ceil(stride).max(1);
        Cut { signature, view, elements, stride, pieces }
    }

    /// Whether a node that compares what the heads call has seen a piece of this call, as far as
    /// that can be told without its root.
    pub(super) fn has_piece(&self, seen: &Signature) -> bool {
        let Signature { collective, dtype, op, .. } = self.signature;
        let lens = [0, self.pieces - 1].map(|piece| self.elements_of(piece)).map(|range| range.end - range.start);
        (collective, dtype, op) == (seen.collective, seen.dtype, seen.op) && lens.contains(&seen.count)
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
        (end.saturating_sub(start) as usize) * self.signature.dtype.size()
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
            Collective::Allgather => self.view.me..self.view.me + 1,
            Collective::ReduceScatter => 0..self.view.members,
        };
        let cut = *self;
        blocks.map(move |block| cut.in_block(piece, block))
    }

    /// The bytes that a member which gives to a piece puts there in all.
    pub(super) fn given_bytes(&self, piece: u64) -> usize {
        let blocks =
            if self.signature.collective == Collective::ReduceScatter { self.view.members as usize } else { 1 };
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
        self.view.is_wide || self.signature.collective != Collective::Bcast || self.is_root()
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
        if self.view.is_wide && self.view.me == 0 {
            return Need::Answer;
        }
        match (self.signature.collective, self.source()) {
            (Collective::Reduce | Collective::Bcast, _) if !self.gets() => Need::Nobody,
            (Collective::Allgather | Collective::ReduceScatter, _) if self.view.is_wide => Need::Nobody,
            (Collective::Bcast, Some(root)) => Need::Root(root),
            _ if self.view.is_wide => Need::Answer,
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
        if !folds || members < portions_from(self.view.is_wide) || bytes * (members as usize) < FOLD_ALONE_MAX {
            return 0;
        }
        bytes.div_ceil(self.portion_len()) as u64
    }

    /// The bytes of a portion, a whole number of elements.
    fn portion_len(&self) -> usize {
        let element = self.signature.dtype.size();
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
        Cut::new(signature, View { members, me, root: Some(root), is_wide: false }, 4096)
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
            Cut::new(plain.signature, View { members: 3, me, root, is_wide: true }, 64 * 1024)
        };
        let needs = |collective, root| [0, 1, 2].map(|me| cut(collective, me, root).need());
        use Need::{Answer, Nobody, Root};
        assert_eq!(needs(Collective::Allreduce, None), [Answer; 3]);
        assert_eq!(needs(Collective::Barrier, None), [Answer; 3]);
        assert_eq!(needs(Collective::Reduce, Some(1)), [Answer, Answer, Nobody]);
        assert_eq!(needs(Collective::Reduce, None), [Answer, Nobody, Nobody]);
        assert_eq!(needs(Collective::Bcast, Some(1)), [Answer, Nobody, Root(1)]);
        assert_eq!(needs(Collective::Bcast, None), [Answer; 3]);
        assert_eq!(needs(Collective::Allgather, None), [Answer, Nobody, Nobody], "it goes another way");
        assert_eq!(cut(Collective::ReduceScatter, 1, None).given_bytes(0), 0);
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
