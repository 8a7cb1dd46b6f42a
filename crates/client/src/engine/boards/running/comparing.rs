//! What a member finds wrong at its board: others have left it, or have called something else.

use trib_wire::body::{Fault, Reason};
use trib_wire::{Collective, NodeId, Signature};

use super::super::cut::{Cut, Need, signature_of};
use super::{Broken, Running};

impl Running {
    /// A member that has left gives nothing more, so nobody waits for it.
    pub(super) fn look_for_missing(&self, need: Need) -> Result<(), Broken> {
        let gone = |member: &usize| self.board.has_left(*member) && !self.board.has_given(self.taken, *member);
        let missing = match need {
            Need::All => (0..self.board.members()).find(gone),
            Need::Root(root) => Some(root).filter(gone),
            // The first member looks for the others, and is missed if it does not answer any more.
            Need::Answer if self.board.me() == 0 => (0..self.board.members()).find(gone),
            Need::Answer => {
                Some(0).filter(|first| self.board.has_left(*first) && self.board.answered(self.taken).is_none())
            }
            Need::Nobody => None,
        };
        match missing {
            None => Ok(()),
            Some(member) => Err(self.fault(Reason::MemberLeft, member, self.board.me(), None)),
        }
    }

    /// A member that has left takes nothing more, so nobody waits for room that it holds up.
    pub(super) fn look_for_gone(&self) -> Result<(), Broken> {
        let gone = |member: &usize| self.board.has_left(*member) && self.board.holds_up(self.given, *member);
        match (0..self.board.members()).find(gone) {
            None => Ok(()),
            Some(member) => Err(self.fault(Reason::MemberLeft, member, self.board.me(), None)),
        }
    }

    /// To a bcast its root alone gives. So who has called something else, and waits for all, looks
    /// whether somebody has given to one. Of other calls it hears when all have given.
    pub(super) fn look_for_odd(&self, cut: &Cut, need: Need) -> Result<(), Broken> {
        let bcast_of = |member: usize| {
            let words = self.board.has_given(self.taken, member).then(|| self.board.signature(self.taken, member));
            words.and_then(signature_of).filter(|called| called.collective == Collective::Bcast)
        };
        let mut bcasts = (0..self.board.members()).filter_map(|member| Some((member, bcast_of(member)?)));
        let Some((root, bcast)) = bcasts.next().filter(|_| need == Need::All) else { return Ok(()) };
        let me = self.board.me();
        let signatures = if root < me { (bcast, cut.called) } else { (cut.called, bcast) };
        Err(self.fault(Reason::Mismatch, root.min(me), root.max(me), Some(signatures)))
    }

    /// Whether the answer to a piece is there. It is to what this member has called, or it is no
    /// answer.
    pub(super) fn is_answered(&self, piece: u64, cut: &Cut) -> Result<bool, Broken> {
        let Some(words) = self.board.answered(piece) else { return Ok(false) };
        if words == cut.words() {
            return Ok(true);
        }
        let signatures = signature_of(words).map(|first| (first, cut.called));
        Err(self.fault(Reason::Mismatch, 0, self.board.me(), signatures))
    }

    /// Checks that the members whose contributions this one takes have called the same.
    pub(super) fn compare(&self, piece: u64, cut: &Cut, need: Need) -> Result<(), Broken> {
        let own = cut.words();
        let differs = |member: &usize| self.board.signature(piece, *member) != own;
        let other = match need {
            Need::All => (0..self.board.members()).find(differs),
            Need::Root(root) => Some(root).filter(differs),
            Need::Answer | Need::Nobody => None,
        };
        let Some(other) = other else { return Ok(()) };
        // All members that see this name the same two: the first, and the first that differs from
        // it.
        let first = self.board.signature(piece, 0);
        let (a, b) = match need {
            Need::All => {
                let unlike = |member: &usize| self.board.signature(piece, *member) != first;
                (0, (0..self.board.members()).find(unlike).unwrap_or(other))
            }
            _ => (other, self.board.me()),
        };
        let called = |member: usize| match member == self.board.me() {
            true => Some(cut.called),
            false => signature_of(self.board.signature(piece, member)),
        };
        let signatures = called(a).zip(called(b));
        Err(self.fault(Reason::Mismatch, a, b, signatures))
    }

    fn fault(&self, reason: Reason, a: usize, b: usize, signatures: Option<(Signature, Signature)>) -> Broken {
        Broken { fault: Fault { reason, node: NodeId(0), rank_a: self.rank(a), rank_b: self.rank(b), signatures } }
    }
}
