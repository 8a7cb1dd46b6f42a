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

/// An operation of a group, as the member `me` sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) signature: Signature,
    members: u32,
    me: u32,
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
    Nobody,
}

impl Cut {
    pub(super) fn new(signature: Signature, members: u32, me: u32, piece_len: usize) -> Cut {
        let element = signature.dtype.size() as u64;
        let blocks = match signature.collective {
            Collective::ReduceScatter => u64::from(members),
            _ => 1,
        };
        let elements = match signature.collective {
            Collective::ReduceScatter | Collective::Allgather => signature.count,
            _ => window::vector_elements(&signature, members).unwrap_or(0),
        };
        let most = (piece_len as u64 / element / blocks).max(1);
        // Pieces of one length leave no short one at the end, which would be waited for as well.
        let stride = elements.div_ceil(elements.div_ceil(most).max(1)).max(1);
        let pieces = elements.div_ceil(stride).max(1);
        Cut { signature, members, me, elements, stride, pieces }
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
            Collective::Bcast if self.me != self.signature.root => 0..0,
            Collective::Allreduce | Collective::Reduce | Collective::Bcast => 0..1,
            Collective::Allgather => self.me..self.me + 1,
            Collective::ReduceScatter => 0..self.members,
        };
        let cut = *self;
        blocks.map(move |block| cut.in_block(piece, block))
    }

    /// The bytes that a member which gives to a piece puts there in all.
    pub(super) fn given_bytes(&self, piece: u64) -> usize {
        let blocks = if self.signature.collective == Collective::ReduceScatter { self.members as usize } else { 1 };
        blocks * self.piece_bytes(piece)
    }

    /// Whether this member shows a cell for each piece.
    pub(super) fn gives(&self) -> bool {
        self.signature.collective != Collective::Bcast || self.me == self.signature.root
    }

    /// Whose contributions this member needs.
    pub(super) fn need(&self) -> Need {
        match self.signature.collective {
            Collective::Reduce if self.me != self.signature.root => Need::Nobody,
            Collective::Bcast if self.me == self.signature.root => Need::Nobody,
            Collective::Bcast => Need::Root(self.signature.root as usize),
            _ => Need::All,
        }
    }

    /// Into how many portions the fold of a piece is cut that members fold together, each element
    /// once. 0: each member that needs it folds it for itself, which is less work for two members,
    /// and saves waiting for each other where there is little to fold.
    pub(super) fn portions(&self, piece: u64) -> u64 {
        let folds = matches!(self.signature.collective, Collective::Allreduce | Collective::Reduce);
        let bytes = self.piece_bytes(piece);
        if !folds || self.members < PORTIONS_FROM || bytes * (self.members as usize) < FOLD_ALONE_MAX {
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

/// Groups of fewer members have no portions.
pub(super) const PORTIONS_FROM: u32 = 3;
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
        Cut::new(signature, members, me, 4096)
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
