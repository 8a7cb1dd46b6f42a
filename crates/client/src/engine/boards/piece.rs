//! A piece of an operation, as a member that may take it sees it.

use core::ops::Range;

use trib_transport::memory::{Board, copy};
use trib_wire::Collective;

use super::cut::{Cut, Need};
use super::fold::Folder;
use super::shape::Shape;
use crate::memory::Memory;

/// A piece to which all have given from which this member needs something, and which this
/// member has not taken.
pub(super) struct Piece<'a> {
    pub(super) board: &'a Board,
    pub(super) shape: &'a Shape,
    pub(super) cut: &'a Cut,
    /// Its number on the board.
    pub(super) number: u64,
    /// Its number in its operation.
    pub(super) index: u64,
}

impl Piece<'_> {
    /// Folds what all members have given, from byte `from` on.
    pub(super) fn fold(&self, folder: &mut Folder, from: usize, into: &mut [u8]) {
        let arithmetic = self.cut.called.arithmetic();
        let whole = self.cut.given_bytes(self.index);
        // SAFETY: all members have given, and this one has not taken the piece.
        let parts = |member: usize| unsafe { self.board.given(self.number, member, whole) };
        let folded = folder.fold(self.shape, arithmetic, &parts, from, into);
        folded.expect("an operation whose fold is not defined is refused when it is posted");
    }

    /// Folds what all members here have given to where the answer comes to. There are no portions.
    /// `ranks` are theirs in the group.
    pub(super) fn fold_for_all(&self, folder: &mut Folder, ranks: &[u32]) {
        let len = self.cut.answer_bytes(self.index);
        if len == 0 || matches!(self.cut.collective(), Collective::Barrier | Collective::Bcast) {
            return;
        }
        // SAFETY: all members have given, and this one, which alone writes there, has not shown the
        // answer.
        let into = unsafe { core::slice::from_raw_parts_mut(self.board.answer_at(self.number, len), len) };
        if self.cut.collective() != Collective::Allgather {
            return self.fold(folder, 0, into);
        }
        into.fill(0);
        let block = self.cut.piece_bytes(self.index);
        for (member, rank) in ranks.iter().enumerate() {
            // SAFETY: the member has given, and this one has not taken the piece.
            let given = unsafe { self.board.given(self.number, member, block) };
            copy(given, &mut into[*rank as usize * block..][..block]);
        }
    }

    /// Copies or folds what this member gets to its memory.
    pub(super) fn take(&self, folder: &mut Folder, memory: &mut Memory) {
        let Piece { board, cut, number, index, .. } = *self;
        let len = cut.piece_bytes(index);
        if len > 0 && cut.keeps() {
            cut.given(index).for_each(|elements| memory.keep(&elements));
        }
        if len == 0 || !cut.gets() {
            return;
        }
        let result_of = |elements: Range<u64>| {
            let start = memory.gotten_at(&elements).expect("a member gets what the cut says");
            let len = (elements.end - elements.start) as usize * cut.called.element_size();
            // SAFETY: `gotten_at` checked that the elements lie inside the result of an operation
            // that runs, and nothing else touches that.
            unsafe { core::slice::from_raw_parts_mut(start, len) }
        };
        let result = |block: u32| result_of(cut.in_block(index, block));
        // SAFETY: the member has given, or this one would not be here, and this one has not taken
        // the piece.
        let given = |member: usize| unsafe { board.given(number, member, len) };
        match (cut.collective(), cut.source()) {
            (Collective::Bcast, Some(root)) => return copy(given(root), result(0)),
            _ if cut.need() == Need::Answer => {
                let (from, elements) = cut.of_answer(index);
                // SAFETY: the answer is there, and this member has not taken the piece.
                let answer = unsafe { board.answer(number, cut.answer_bytes(index)) };
                let result = result_of(elements);
                return copy(&answer[from..from + result.len()], result);
            }
            _ => {}
        }
        match cut.collective() {
            // A barrier brings nothing, and a bcast has a source here or an answer.
            Collective::Barrier | Collective::Bcast => {}
            Collective::Allreduce | Collective::Reduce if cut.portions(index) > 0 => {
                // SAFETY: all portions have been folded, and this member has not taken the piece.
                copy(unsafe { board.result(number, len) }, result(0));
            }
            Collective::Allreduce | Collective::Reduce => self.fold(folder, 0, result(0)),
            Collective::Allgather => {
                for member in 0..board.members() {
                    copy(given(member), result(member as u32));
                }
            }
            Collective::ReduceScatter => {
                let me = board.me();
                self.fold(folder, me * len, result(me as u32));
            }
        }
    }
}
