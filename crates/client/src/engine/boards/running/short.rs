//! Short operations, which a member does while their caller waits.

use std::sync::Arc;

use trib_transport::memory::{Bell, Wish};
use trib_wire::Signature;

use super::super::cut::{Cut, Need};
use super::super::first_wait::FirstWait;
use super::super::lookout::is_given;
use super::super::piece::Piece;
use super::{Operation, Running};
use crate::completion::Completion;
use crate::memory::Memory;

/// What is the same whenever a member calls an operation.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) cut: Cut,
    words: [u64; 2],
    need: Need,
    gives: bool,
    /// It is short, and nothing is waited for in between.
    is_short: bool,
}

impl Running {
    /// The operation that a member calls.
    #[inline]
    pub(super) fn recall(&mut self, signature: Signature) -> &Call {
        if self.last.as_ref().is_none_or(|last| last.cut.signature != signature) {
            let cut = self.cut(signature);
            // What members fold together is waited for in between.
            let is_short = !self.is_wide() && cut.pieces() == 1 && cut.given_bytes(0) <= SHORT && cut.portions(0) == 0;
            self.last = Some(Call { cut, words: cut.words(), need: cut.need(), gives: cut.gives(), is_short });
        }
        self.last.as_ref().expect("it was put there above")
    }

    /// Does a short operation at once, if the others give while this member stares, and nothing
    /// else is under way. It saves what an operation takes that is put down for later. `Err` has
    /// the memory of one that is to be posted; if this member has given already, `post_given` does
    /// that.
    #[inline]
    pub(in super::super) fn run_short(
        &mut self,
        signature: Signature,
        mut memory: Memory,
        bell: &Bell,
        first_wait: &mut FirstWait<'_>,
    ) -> Result<(), (Memory, bool)> {
        let number = self.given;
        let is_short = self.recall(signature).is_short && self.operations.is_empty();
        if !is_short || !self.board.has_room(number, &mut self.known) {
            return Err((memory, false));
        }
        let Some(Call { cut, words, need, gives, .. }) = &self.last else { return Err((memory, false)) };
        if *gives {
            self.show_piece(cut, &memory, 0);
        }
        self.given += 1;
        self.posted += 1;
        let come = || is_given(&self.board, number, *need);
        // What comes at once comes sooner without the fence before a look who sleeps.
        if !first_wait.glance(self.is_roomy, come) {
            self.wake_for(number, cut, bell);
            if !first_wait.look(self.is_roomy, come) {
                return Err((memory, true));
            }
        }
        match need {
            Need::All => match self.board.agreed(number, *words) {
                Some(taken) => self.known = self.known.max(taken),
                None => return Err(self.put_down(number, memory, bell)),
            },
            _ if self.compare(number, cut, *need).is_err() => return Err(self.put_down(number, memory, bell)),
            _ => {}
        }
        let piece = Piece { board: &self.board, shape: &self.shape, cut, number, index: 0 };
        piece.take(&mut self.folder, &mut memory);
        self.taken += 1;
        if self.board.take(self.taken) {
            self.wake_takers(number, cut, bell);
            self.wake(Wish::Room, bell);
        }
        // SAFETY: the operation is complete, and its caller still waits.
        unsafe { memory.finish() };
        Ok(())
    }

    /// Members have called something else. Who sleeps is woken, which this member has not done if
    /// it did not wait.
    #[cold]
    fn put_down(&self, number: u64, memory: Memory, bell: &Bell) -> (Memory, bool) {
        if let Some(Call { cut, .. }) = &self.last {
            self.wake_for(number, cut, bell);
        }
        (memory, true)
    }

    /// Posts an operation of one piece, to which this member has given.
    pub(in super::super) fn post_given(&mut self, signature: Signature, memory: Memory, completion: Arc<Completion>) {
        let cut = self.recall(signature).cut;
        self.operations.push_back(Operation { cut, memory, completion, first: self.posted - 1 });
    }
}

/// In bytes. What is longer takes longer than putting an operation down for later.
const SHORT: usize = 4096;
