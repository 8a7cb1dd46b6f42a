//! How an operation is cut into the pieces of a board, and what of each piece a member gives.
//!
//! ```text
//!   allreduce, reduce, bcast        vector  |-- piece 0 --|-- piece 1 --|-- 2 --|
//!   allgather, reduce-scatter       blocks  |- 0 -|- 1 -|2|- 0 -|- 1 -|2|- 0 -|- 1 -|2|
//! ```
//! A piece has the same elements of every block, so that all members have as much to do in each.
//! Members cut alike, because nothing goes into it but what they have in common.
//!
//! Between hosts that would bring each host every block. So where blocks are long they take turns:
//! each piece is a bcast from the rank whose block it is of, or a reduce to that rank.
//!
//! ```text
//!   allgather, reduce-scatter       blocks  |0|3|6|1|4|7|2|5|8|     three members
//! ```
//! A host's link then carries what its ranks give and need, and nothing else. With a short stretch
//! of each block in turn, all links are in use all the time.

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
    /// What the program has called.
    pub(super) called: Signature,
    /// The same; in a piece of a block whose turn it is, the collective that brings the piece.
    signature: Signature,
    view: View,
    form: Form,
    /// The block of the vector whose turn it is.
    block: u32,
    /// The elements of the whole vector, or of a block.
    elements: u64,
    /// How many of them a full piece has.
    stride: u64,
    /// How many pieces there are, at least one.
    pieces: u64,
}

/// What a piece has of the vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// A stretch of it.
    Stretch,
    /// The same stretch of every block.
    Abreast,
    /// A stretch of one block, whose turn it is.
    InTurn,
    /// Nothing: the operation has no way over the boards of its group, where it is only shown.
    Shown,
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
        let form = if view.is_wide() { form_between_hosts(&signature, size) } else { form(&signature) };
        let elements = match form {
            Form::Shown => 0,
            Form::Abreast | Form::InTurn => signature.count,
            Form::Stretch => window::vector_elements(&signature, view.members).unwrap_or(0),
        };
        let abreast = if form == Form::Abreast { blocks } else { 1 };
        let most = (piece_len as u64 / element / abreast).max(1);
        // Pieces of one length leave no short one at the end, which would be waited for as well.
        let stride = elements.div_ceil(elements.div_ceil(most).max(1)).max(1);
        let cut = Cut { called: signature, signature, view, form, block: 0, elements, stride, pieces: 1 };
        Cut { pieces: elements.div_ceil(stride).max(1) * cut.turns(), ..cut }
    }

    /// How many blocks take turns; 1 if none do.
    fn turns(&self) -> u64 {
        if self.form == Form::InTurn { u64::from(self.view.position().0) } else { 1 }
    }

    /// Whose turn it is in a piece, if blocks take turns: a number that `Span` has a rank for.
    pub(super) fn turn_of(&self, piece: u64) -> Option<u32> {
        (self.form == Form::InTurn).then(|| (piece % self.turns()) as u32)
    }

    /// The operation as it looks from a piece in which it is `rank`'s turn. `root` is that member,
    /// if it is one of the board's.
    pub(super) fn in_turn(&self, rank: u32, root: Option<u32>) -> Cut {
        let collective = match self.called.collective {
            Collective::Allgather => Collective::Bcast,
            _ => Collective::Reduce,
        };
        let signature = Signature { collective, root: rank, ..self.called };
        Cut { signature, block: rank, view: View { root, ..self.view }, ..*self }
    }

    /// What the heads call for a piece, if `root` is the head of the root's host.
    ///
    /// The group of the heads knows no blocks of the members. Where there are some, each host gives
    /// what it has of the whole vector and gets all of it, which is more than it needs, but short.
    pub(super) fn between(&self, piece: u64, root: u32) -> Signature {
        let count = self.answer_elements(piece).end;
        let carried = Signature { collective: Collective::Allreduce, root: CARRIED, count, ..self.signature };
        match self.signature.collective {
            _ if self.form == Form::Shown => Signature { root: 0, count: 0, ..self.signature },
            Collective::Allgather => {
                let count = count * self.signature.element_size() as u64;
                Signature { dtype: DataType::U8, op: ReduceOp::BitOr, count, ..carried }
            }
            Collective::ReduceScatter => carried,
            _ => Signature { root, count, ..self.signature },
        }
    }

    /// How many elements of such a piece's type all pieces have together, which travel behind each
    /// other. Of an operation that is one piece nobody asks.
    pub(super) fn whole_between(&self, between: &Signature) -> u64 {
        let elements = self.elements.saturating_mul(self.turns());
        elements.saturating_mul(self.signature.element_size() as u64) / between.element_size() as u64
    }

    /// Whether it is only shown to members on other hosts, and goes another way.
    pub(super) fn is_shown(&self) -> bool {
        self.form == Form::Shown
    }

    /// What brings a piece to all members: the collective that was called, or that of a turn.
    pub(super) fn collective(&self) -> Collective {
        self.signature.collective
    }

    /// The operation's root, or the rank whose turn it is.
    pub(super) fn root(&self) -> u32 {
        self.signature.root
    }

    /// Whether a node that compares what the heads call has seen a piece of this call, as far as
    /// that can be told without its root.
    pub(super) fn has_piece(&self, seen: &Signature) -> bool {
        let own = if self.form == Form::InTurn { self.in_turn(0, None) } else { *self };
        let has_root = matches!(own.signature.collective, Collective::Reduce | Collective::Bcast);
        let root = if has_root { seen.root } else { 0 };
        [0, self.pieces - 1].map(|piece| own.between(piece, root)).contains(seen)
    }

    /// The elements of the answer to a piece, from 0 on: all blocks, if there are some.
    fn answer_elements(&self, piece: u64) -> Range<u64> {
        let Range { start, end } = self.elements_of(piece);
        let blocks = if self.form == Form::Abreast { u64::from(self.view.position().0) } else { 1 };
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
        let start = piece / self.turns() * self.stride;
        start..(start + self.stride).min(self.elements)
    }

    /// The bytes of a piece in the vector, or in one block of it.
    pub(super) fn piece_bytes(&self, piece: u64) -> usize {
        let Range { start, end } = self.elements_of(piece);
        (end.saturating_sub(start) as usize) * self.signature.element_size()
    }

    /// The elements of a piece in block `block` of the vector, whose blocks have `count` elements;
    /// the first is the one whose turn it is.
    pub(super) fn in_block(&self, piece: u64, block: u32) -> Range<u64> {
        let before = u64::from(self.block + block) * self.signature.count;
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

    /// Whether what this member gives is a part of its result, which nobody sends it.
    pub(super) fn keeps(&self) -> bool {
        self.called.collective == Collective::Allgather && self.source().is_some_and(|root| root as u32 == self.view.me)
    }

    /// Whose contributions this member needs before it has done with a piece.
    pub(super) fn need(&self) -> Need {
        // The others' pieces stay where they are until it has done with them.
        if self.view.is_wide() && self.view.me == 0 {
            return Need::Answer;
        }
        match (self.signature.collective, self.source()) {
            (Collective::Reduce | Collective::Bcast, _) if !self.gets() => Need::Nobody,
            _ if self.form == Form::Shown => Need::Nobody,
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
        let Signature { collective, dtype, op, format, root, count } = self.called;
        let codes = [collective.code(), dtype.code(), op.code(), format.code()];
        [u64::from(u32::from_le_bytes(codes)) | u64::from(root) << 32, count]
    }
}

/// How an operation is cut whose members share one host.
fn form(signature: &Signature) -> Form {
    match signature.collective {
        Collective::Allgather | Collective::ReduceScatter => Form::Abreast,
        _ => Form::Stretch,
    }
}

/// How an operation is cut in a group that has members on several hosts. Where all blocks are short
/// each host gets them all, and where each is long they take turns. In between, a turn would cost
/// more than what a host gets too much.
pub(super) fn form_between_hosts(signature: &Signature, size: u32) -> Form {
    let bytes = |elements: u64| elements.saturating_mul(signature.element_size() as u64);
    match form(signature) {
        Form::Abreast if bytes(signature.count) >= TURN_MIN => Form::InTurn,
        Form::Abreast if bytes(window::vector_elements(signature, size).unwrap_or(u64::MAX)) > CARRIED_MAX => {
            Form::Shown
        }
        form => form,
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

/// What the heads call as the root of an allreduce that carries something else. A plain one has 0.
const CARRIED: u32 = 1;
/// In bytes, of all blocks together. It is less than every board has room for.
const CARRIED_MAX: u64 = 4096;
/// In bytes, of a block.
const TURN_MIN: u64 = 16 * 1024;
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
            let plain = cut(collective, 2000, 3, me, root.unwrap_or(7));
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
        assert!(cut(Collective::ReduceScatter, 1, None).is_shown());
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
    fn long_blocks_take_turns_between_hosts() {
        // Ranks 1, 2 and 3 of 5 are here, and this is rank 2.
        let of = |collective, count| {
            let signature = cut(collective, count, 3, 1, 0).called;
            let view = View { members: 3, me: 1, root: None, beyond: Some(Beyond { size: 5, rank: 2 }) };
            Cut::new(signature, view, 16 * 1024)
        };
        let (gather, scatter) = (of(Collective::Allgather, 4000), of(Collective::ReduceScatter, 4000));
        for cut in [gather, scatter] {
            assert_eq!((cut.pieces(), cut.piece_bytes(0), cut.is_shown()), (10, 16_000, false));
            assert_eq!([0, 4, 5, 9].map(|piece| cut.turn_of(piece)), [0, 4, 0, 4].map(Some));
        }
        // The second stretch of the blocks of ranks 2, 3 and 4.
        let [own, near, far] = [(2, Some(1)), (3, Some(2)), (4, None)];
        let in_turn = |cut: &Cut, (rank, root): (u32, Option<u32>)| cut.in_turn(rank, root);
        let stretch = |rank: u64| 4000 * rank + 2000..4000 * rank + 4000;
        let needs = |cut: &Cut| [own, near, far].map(|turn| in_turn(cut, turn).need());
        assert_eq!(needs(&gather), [Need::Nobody, Need::Root(2), Need::Answer]);
        assert_eq!(needs(&scatter), [Need::Answer, Need::Nobody, Need::Nobody]);
        assert_eq!(in_turn(&gather, own).given(7).collect::<Vec<_>>(), [stretch(2)]);
        assert_eq!(in_turn(&gather, near).given(8).count(), 0);
        assert_eq!([own, near].map(|turn| in_turn(&gather, turn).keeps()), [true, false]);
        assert_eq!(in_turn(&gather, far).of_answer(9), (0, stretch(4)));
        assert_eq!(in_turn(&scatter, far).given(9).collect::<Vec<_>>(), [stretch(4)]);
        assert_eq!([own, near].map(|turn| in_turn(&scatter, turn).gets()), [true, false]);
        assert!(!in_turn(&scatter, own).keeps());
        // Between the hosts, of which the root's is the second.
        let seen = [gather, scatter].map(|cut| in_turn(&cut, far).between(9, 1));
        let told = seen.map(|seen| (seen.collective, seen.root, seen.count));
        assert_eq!(told, [(Collective::Bcast, 1, 2000), (Collective::Reduce, 1, 2000)]);
        assert!(gather.has_piece(&seen[0]) && scatter.has_piece(&seen[1]) && !gather.has_piece(&seen[1]));
        assert_eq!(in_turn(&gather, far).words(), gather.words(), "members compare what was called");
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
