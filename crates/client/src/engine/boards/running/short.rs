//! Short operations, which a member does while their caller waits.

use std::ops::Range;
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
#[derive(Clone)]
pub(super) struct Call {
    pub(super) cut: Cut,
    words: [u64; 2],
    need: Need,
    gives: bool,
    /// It brings this member something.
    gets: bool,
    /// It is short, and nothing is waited for in between.
    is_short: bool,
    /// What this member gives, if it lies in one piece, as all but a reduce-scatter's does in some
    /// groups: these elements of the vector, which have so many bytes.
    stretch: Option<(Range<u64>, usize)>,
}

impl Running {
    /// The operation that a member calls.
    #[inline]
    pub(super) fn recall(&mut self, signature: Signature) -> &Call {
        if self.last.as_ref().is_none_or(|last| last.cut.called != signature) {
            let cut = self.cut(signature);
            // What members fold together is waited for in between.
            let is_short = !self.is_wide() && cut.pieces() == 1 && cut.given_bytes(0) <= SHORT && cut.portions(0) == 0;
            let mut stretches = cut.given(0).filter(|elements| !elements.is_empty());
            let stretch = stretches.next().map_or((0..0, 0), |elements| (elements, cut.given_bytes(0)));
            let stretch = stretches.next().is_none().then_some(stretch);
            let (gives, gets) = (cut.gives(), cut.gets() && cut.piece_bytes(0) > 0);
            self.last = Some(Call { cut, words: cut.words(), need: cut.need(), gives, gets, is_short, stretch });
        }
        self.last.as_ref().expect("it was put there above")
    }

    /// Does a short operation at once, if the others give while this member stares, and nothing
    /// else is under way. It saves what an operation takes that is put down for later. `Err`: it is
    /// to be posted; with `true`, this member has given already, and `post_given` does that.
    #[inline]
    pub(in super::super) fn run_short(
        &mut self,
        signature: Signature,
        memory: &mut Memory,
        bell: &Bell,
        first_wait: &mut FirstWait<'_>,
    ) -> Result<(), bool> {
        let number = self.given;
        let is_short = self.recall(signature).is_short && self.operations.is_empty();
        if !is_short || !self.board.has_room(number, &mut self.known) {
            return Err(false);
        }
        let Some(Call { cut, words, need, gives, gets, stretch, .. }) = &self.last else { return Err(false) };
        match stretch {
            _ if !gives => {}
            Some((elements, len)) => {
                if *len > 0 {
                    let start = memory.given_at(elements).expect("a member gives what the cut says");
                    // SAFETY: there is room, the cell is shown below, and `given_at` checked that
                    // the elements lie inside the input of an operation that runs.
                    unsafe { self.board.put(number, *len, 0, start, *len) };
                }
                self.board.show(number, *words, self.taken);
            }
            None => self.show_piece(cut, memory, 0),
        }
        self.given += 1;
        self.posted += 1;
        let come = || is_given(&self.board, number, *need);
        // What comes at once comes sooner without the fence before a look who sleeps.
        if !first_wait.glance(self.is_roomy, come) {
            self.wake_for(number, cut, bell);
            if !first_wait.look(self.is_roomy, come) {
                return Err(true);
            }
        }
        match need {
            Need::All => match self.board.agreed(number, *words) {
                Some(taken) => self.known = self.known.max(taken),
                None => return Err(self.put_down(number, bell)),
            },
            _ if self.compare(number, cut, *need).is_err() => return Err(self.put_down(number, bell)),
            _ => {}
        }
        if *gets {
            let piece = Piece { board: &self.board, shape: &self.shape, cut, number, index: 0 };
            piece.take(&mut self.folder, memory);
        }
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
    fn put_down(&self, number: u64, bell: &Bell) -> bool {
        if let Some(Call { cut, .. }) = &self.last {
            self.wake_for(number, cut, bell);
        }
        true
    }

    /// Posts an operation of one piece, to which this member has given.
    pub(in super::super) fn post_given(&mut self, signature: Signature, memory: Memory, completion: Arc<Completion>) {
        let cut = self.recall(signature).cut;
        self.operations.push_back(Operation { cut, memory, completion, first: self.posted - 1 });
    }
}

/// In bytes. What is longer takes longer than putting an operation down for later.
const SHORT: usize = 4096;
