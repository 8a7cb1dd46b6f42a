//! What the first member on a host does in a group of several hosts: it speaks for the others.
//!
//! ```text
//!   given by all here --fold--> sum --up--> under way over the tree --> answer --> all take it
//! ```
//! The operations between the hosts are those of a group of the heads, one for each piece, in the
//! order of the pieces. A sum and its answer lie in the same place on the board, so that nothing is
//! copied in between.
//!
//! Nodes compare what the heads call, but see pieces and hosts instead of vectors and roots. So
//! each piece has a mark of the whole call beside it; and of two hosts that disagree, a head tells
//! all members what both have called, if it knows that.

use std::collections::VecDeque;
use std::hash::Hasher;
use std::sync::Arc;

use siphasher::sip::SipHasher24;
use trib_transport::memory::Board;
use trib_wire::body::{Fault, Reason};
use trib_wire::{Collective, Rank, Signature};

use super::cut::Cut;
use super::piece::Piece;
use super::span::Span;
use crate::completion::Completion;
use crate::memory::{Input, Memory};

/// The group of the heads, one member of each host.
pub(super) trait Trunk {
    /// Posts an operation of that group, with its number there and the mark of the call. It is a
    /// stretch of one with such a count.
    fn post(
        &mut self,
        number: (u64, u16),
        signature: Signature,
        stretch_of: u64,
        memory: Memory,
    ) -> Result<Arc<Completion>, Fault>;

    /// Why one of its operations has failed.
    fn fault(&self) -> Fault;
}

/// Who a head is, and what it has called, for what it tells of hosts that disagree.
pub(super) struct Own<'a> {
    pub(super) me: Rank,
    pub(super) span: &'a Span,
    /// The call under way that has such a piece, if there is one alone.
    pub(super) calls: &'a dyn Fn(&Signature) -> Option<Signature>,
}

/// The pieces of a wide group that are on their way between the hosts.
#[derive(Default)]
pub(super) struct Heads {
    /// The number of the next piece to be sent up, and to be answered.
    up: u64,
    answered: u64,
    /// Those in between.
    flights: VecDeque<Arc<Completion>>,
    /// Hosts disagree, and another head tells all members of it.
    leaves_it: bool,
}

impl Heads {
    /// The next piece to be sent up.
    pub(super) fn up(&self) -> u64 {
        self.up
    }

    /// The next piece to be answered.
    pub(super) fn answered(&self) -> u64 {
        self.answered
    }

    /// The operation between the hosts that ends first, if any is under way.
    pub(super) fn first(&self) -> Option<&Arc<Completion>> {
        self.flights.front()
    }

    /// Whether an answer has come that was not shown yet.
    pub(super) fn has_come(&self) -> bool {
        !self.leaves_it && self.first().is_some_and(|flight| flight.is_done())
    }

    /// Whether another head is to tell why the group does not go on.
    pub(super) fn leaves_it(&self) -> bool {
        self.leaves_it
    }

    /// Sends the next piece up, which all here have given and, if it has portions, folded. If it
    /// has none, it lies folded where its answer comes to.
    pub(super) fn send(&mut self, piece: &Piece<'_>, own: &Own<'_>, trunk: &mut dyn Trunk) -> Result<(), Fault> {
        let Piece { board, cut, number, index, .. } = *piece;
        let (signature, memory) = operation(board, cut, (number, index), own.span);
        match trunk.post((number + 1, mark(cut, index)), signature, cut.whole_between(&signature), memory) {
            Ok(flight) => {
                self.flights.push_back(flight);
                self.up += 1;
                Ok(())
            }
            Err(fault) => self.tell(fault, own),
        }
    }

    /// The piece whose answer has come next, if one has.
    pub(super) fn land(&mut self, own: &Own<'_>, trunk: &mut dyn Trunk) -> Result<Option<u64>, Fault> {
        if self.leaves_it {
            return Ok(None);
        }
        let Some(outcome) = self.first().and_then(|flight| flight.outcome()) else { return Ok(None) };
        if outcome.is_err() {
            return self.tell(trunk.fault(), own).map(|()| None);
        }
        self.flights.pop_front();
        self.answered += 1;
        Ok(Some(self.answered - 1))
    }

    /// The group of the heads has failed: all members are to be told, by this head or another.
    fn tell(&mut self, fault: Fault, own: &Own<'_>) -> Result<(), Fault> {
        let told = told(fault, own);
        self.leaves_it = told.is_none();
        told.map_or(Ok(()), Err)
    }
}

/// The operation of the heads for a piece, with its memory on the board.
fn operation(board: &Board, cut: &Cut, (number, index): (u64, u64), span: &Span) -> (Signature, Memory) {
    let len = cut.piece_bytes(index);
    // A root that is no member is refused when the operation is posted.
    let (root_host, _) = span.find(cut.root()).unwrap_or_default();
    let signature = cut.between(index, root_host);
    let answer = board.answer_at(number, cut.answer_bytes(index));
    let (input, output) = match (cut.collective(), cut.source()) {
        (Collective::Barrier, _) => return (signature, Memory::none()),
        // It goes another way. Here it only shows that it is what was called.
        _ if cut.is_shown() => return (signature, Memory::none()),
        (Collective::Bcast, Some(root)) => (Input::At(board.given_at(number, root, len)), std::ptr::null_mut()),
        (Collective::Bcast, None) => (Input::At(std::ptr::null()), answer),
        (Collective::Reduce, _) if root_host != span.home() => (Input::At(answer), std::ptr::null_mut()),
        _ => (Input::InPlace, answer),
    };
    let memory = Memory::new(&signature, span.hosts(), span.home(), input, output);
    (signature, memory.expect("only a reduce-scatter in place needs memory of its own"))
}

/// What a node compares beside the signature of a piece: two calls that differ have the same with
/// one chance in 65,536.
fn mark(cut: &Cut, index: u64) -> u16 {
    let mut hasher = SipHasher24::new();
    cut.words().into_iter().chain([index]).for_each(|word| hasher.write_u64(word.to_le()));
    hasher.finish() as u16
}

/// The fault of the group of the heads, as a head tells it to all members; `None` if another head
/// can tell it better. Nodes have seen pieces. Of the two heads that a node names, the same sees
/// that it is to tell it as the other sees that it need not.
fn told(fault: Fault, own: &Own<'_>) -> Option<Fault> {
    let Fault { reason: Reason::Mismatch, rank_a, rank_b, signatures: Some((a, b)), .. } = fault else {
        return Some(fault);
    };
    let is_first = own.me == rank_a;
    if !is_first && own.me != rank_b {
        return None;
    }
    let (mine, theirs) = if is_first { (a, b) } else { (b, a) };
    let is_whole = |seen: &Signature| is_whole(seen, own.span.piece_len());
    if is_whole(&mine) && !is_whole(&theirs) {
        return None;
    }
    let mine = if is_whole(&mine) { Some(mine) } else { (own.calls)(&mine) };
    let both = mine.zip(Some(theirs).filter(is_whole));
    let signatures = both.map(|(mine, theirs)| if is_first { (mine, theirs) } else { (theirs, mine) });
    Some(Fault { signatures, ..fault })
}

/// Whether what a node has compared is a whole call, and not a piece of one: those have more than
/// half of the bytes that a piece may have. Of an operation with a root it has seen the root's
/// host, and of one that goes another way nothing but its kind.
fn is_whole(seen: &Signature, piece_len: usize) -> bool {
    let is_short = seen.count.saturating_mul(2 * seen.element_size() as u64) <= piece_len as u64;
    is_short && seen.root == 0 && matches!(seen.collective, Collective::Allreduce | Collective::Barrier)
}

#[cfg(test)]
mod tests {
    use trib_wire::{DataType, NodeId, RankList, ReduceOp, WireFormat};

    use super::super::cut::{Beyond, View};
    use super::super::running::seen_at;
    use super::super::shape::tests::trees;
    use super::*;

    fn call(collective: Collective, count: u64, root: u32) -> Signature {
        Signature { collective, dtype: DataType::F64, op: ReduceOp::Sum, format: WireFormat::Plain, root, count }
    }

    fn cut(signature: Signature) -> Cut {
        let beyond = Some(Beyond { size: 4, rank: 0 });
        Cut::new(signature, View { members: 2, me: 0, root: None, beyond }, piece_len())
    }

    /// Two hosts of two ranks.
    fn span() -> Span {
        let trees = trees(&[(1, Some((0, 0))), (2, Some((0, 1)))], &[(1, 0), (1, 1), (2, 0), (2, 1)]);
        Span::of(&trees, &RankList::world(4), 0).unwrap()
    }

    fn piece_len() -> usize {
        span().piece_len()
    }

    /// What the heads 3 and 8 tell if these are what they have called.
    fn told_by_both(one: Signature, other: Signature) -> [Option<Fault>; 2] {
        let seen = |signature: Signature| {
            let (board, _) = Board::create(2).unwrap();
            operation(&board, &seen_at(&cut(signature), 0, Some(&span())), (0, 0), &span()).0
        };
        let signatures = Some((seen(one), seen(other)));
        let fault = Fault { reason: Reason::Mismatch, node: NodeId(0), rank_a: Rank(3), rank_b: Rank(8), signatures };
        let told = |me: u32, call: Signature| {
            let calls = |piece: &Signature| Some(call).filter(|_| cut(call).has_piece(piece));
            told(fault, &Own { me: Rank(me), span: &span(), calls: &calls })
        };
        assert_eq!(told(5, one), None, "a third head leaves it to them");
        let said = [told(3, one), told(8, other)];
        assert!(said.iter().any(Option::is_some), "one of them tells it");
        said
    }

    #[test]
    fn who_sees_both_calls_whole_tells_them() {
        let [short, long, longer] = [7, 50_000, 90_000].map(|count| call(Collective::Allreduce, count, 0));
        let signatures = |told: &Option<Fault>| told.as_ref().map(|fault| fault.signatures);
        let said = |one, other| told_by_both(one, other).each_ref().map(signatures);
        assert_eq!(said(short, long), [None, Some(Some((short, long)))]);
        assert_eq!(said(long, short), [Some(Some((long, short))), None]);
        assert_eq!(said(long, longer), [Some(None); 2], "neither sees the other's");
        let [one, other] = [0, 2].map(|root| call(Collective::Bcast, 7, root));
        assert_eq!(said(one, other), [Some(None); 2], "they see hosts for roots");
        // What goes another way, in turns or as something else, is known at home alone.
        for gather in [7, 1000, 50_000].map(|count| call(Collective::Allgather, count, 0)) {
            assert_eq!(said(gather, short), [Some(Some((gather, short))), None]);
            assert_eq!(said(gather, long), [Some(None); 2]);
        }
    }

    #[test]
    fn pieces_of_other_calls_have_other_marks() {
        let marks =
            |signature| (0..cut(signature).pieces()).map(|index| mark(&cut(signature), index)).collect::<Vec<_>>();
        let most = piece_len() as u64 / 8;
        let (whole, half) =
            (marks(call(Collective::Allreduce, 2 * most, 0)), marks(call(Collective::Allreduce, most, 0)));
        assert_eq!((whole.len(), half.len()), (2, 1));
        assert_ne!(whole[0], half[0], "pieces of the same length");
        assert_ne!(whole[0], whole[1]);
        assert_ne!(marks(call(Collective::Reduce, 9, 4)), marks(call(Collective::Reduce, 9, 5)), "roots on one host");
    }
}
