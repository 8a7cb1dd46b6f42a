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
    /// Posts an operation of that group, with its number there and the mark of the call.
    fn post(&mut self, number: (u64, u16), signature: Signature, memory: Memory) -> Result<Arc<Completion>, Fault>;

    /// Why one of its operations has failed.
    fn fault(&self) -> Fault;
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
    pub(super) fn send(&mut self, piece: &Piece<'_>, span: &Span, trunk: &mut dyn Trunk) -> Result<(), Fault> {
        let Piece { board, cut, number, index, .. } = *piece;
        let (signature, memory) = operation(board, cut, (number, index), span);
        self.flights.push_back(trunk.post((number + 1, mark(cut, index)), signature, memory)?);
        self.up += 1;
        Ok(())
    }

    /// The piece whose answer has come next, if one has. `me` and `cut` are this rank and what it
    /// has called, for an error.
    pub(super) fn land(&mut self, me: Rank, cut: &Cut, trunk: &mut dyn Trunk) -> Result<Option<u64>, Fault> {
        let Some(outcome) = self.first().and_then(|flight| flight.outcome()) else { return Ok(None) };
        if outcome.is_err() && !self.leaves_it {
            let told = told(trunk.fault(), me, cut);
            self.leaves_it = told.is_none();
            return told.map_or(Ok(None), Err);
        }
        if self.leaves_it {
            return Ok(None);
        }
        self.flights.pop_front();
        self.answered += 1;
        Ok(Some(self.answered - 1))
    }
}

/// The operation of the heads for a piece, with its memory on the board.
fn operation(board: &Board, cut: &Cut, (number, index): (u64, u64), span: &Span) -> (Signature, Memory) {
    let len = cut.piece_bytes(index);
    // A root that is no member is refused when the operation is posted.
    let (root_host, _) = span.find(cut.signature.root).unwrap_or_default();
    let elements = cut.in_block(index, 0);
    let signature = Signature { root: root_host, count: elements.end - elements.start, ..cut.signature };
    let answer = board.answer_at(number, len);
    let (input, output) = match (cut.signature.collective, cut.source()) {
        (Collective::Barrier, _) => return (signature, Memory::none()),
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

/// The fault of the group of the heads, as all members are told it by the head `me`, which has
/// called this; `None` if another head can tell it better. Nodes have seen pieces.
fn told(fault: Fault, me: Rank, cut: &Cut) -> Option<Fault> {
    let Fault { reason: Reason::Mismatch, rank_a, rank_b, signatures: Some((a, b)), .. } = fault else {
        return Some(fault);
    };
    let (other, signatures) = match me {
        me if me == rank_a => (b, (cut.signature, b)),
        me if me == rank_b => (a, (a, cut.signature)),
        // Those two tell it.
        _ => return None,
    };
    match (cut.is_whole(&other), cut.is_whole(&cut.signature)) {
        (true, _) => Some(Fault { signatures: Some(signatures), ..fault }),
        // The other one sees all of it.
        (false, true) => None,
        (false, false) => Some(Fault { signatures: None, ..fault }),
    }
}

#[cfg(test)]
mod tests {
    use trib_wire::{DataType, NodeId, ReduceOp, WireFormat};

    use super::super::cut::View;
    use super::*;

    fn call(collective: Collective, count: u64, root: u32) -> Signature {
        Signature { collective, dtype: DataType::F64, op: ReduceOp::Sum, format: WireFormat::Plain, root, count }
    }

    fn cut(signature: Signature) -> Cut {
        Cut::new(signature, View { members: 2, me: 0, root: None, is_wide: true }, 4096)
    }

    /// What the heads 3 and 8 tell if these are what they have called.
    fn told_by_both(one: Signature, other: Signature) -> [Option<Fault>; 2] {
        let piece = |signature: Signature| {
            let count = cut(signature).in_block(0, 0).end;
            Signature { count, ..signature }
        };
        let signatures = Some((piece(one), piece(other)));
        let fault = Fault { reason: Reason::Mismatch, node: NodeId(0), rank_a: Rank(3), rank_b: Rank(8), signatures };
        assert_eq!(told(fault, Rank(5), &cut(one)), None, "a third head leaves it to them");
        [told(fault, Rank(3), &cut(one)), told(fault, Rank(8), &cut(other))]
    }

    #[test]
    fn who_sees_both_calls_whole_tells_them() {
        let (short, long, longer) = [7, 5000, 9000].map(|count| call(Collective::Allreduce, count, 0)).into();
        let signatures = |told: &Option<Fault>| told.as_ref().map(|fault| fault.signatures);
        let said = told_by_both(short, long);
        assert_eq!(said.each_ref().map(signatures), [None, Some(Some((short, long)))]);
        let said = told_by_both(long, short);
        assert_eq!(said.each_ref().map(signatures), [Some(Some((long, short))), None]);
        let said = told_by_both(long, longer);
        assert_eq!(said.each_ref().map(signatures), [Some(None); 2], "neither sees the other's");
        let (one, other) = (call(Collective::Bcast, 7, 0), call(Collective::Bcast, 7, 1));
        assert_eq!(told_by_both(one, other).each_ref().map(signatures), [Some(None); 2], "they see hosts for roots");
        let died = Fault { reason: Reason::MemberDead, ..told_by_both(long, longer)[0].unwrap() };
        assert_eq!(told(died, Rank(5), &cut(short)), Some(died));
    }

    #[test]
    fn pieces_of_other_calls_have_other_marks() {
        let marks =
            |signature| (0..cut(signature).pieces()).map(|index| mark(&cut(signature), index)).collect::<Vec<_>>();
        let (whole, half) = (marks(call(Collective::Allreduce, 1024, 0)), marks(call(Collective::Allreduce, 512, 0)));
        assert_eq!((whole.len(), half.len()), (2, 1));
        assert_ne!(whole[0], half[0], "pieces of the same length");
        assert_ne!(whole[0], whole[1]);
        assert_ne!(marks(call(Collective::Reduce, 9, 4)), marks(call(Collective::Reduce, 9, 5)), "roots on one host");
    }
}
