//! A piece of an operation, as a member that may take it sees it.

use trib_transport::memory::Board;
use trib_wire::{Collective, Signature};

use super::cut::{Cut, Need};
use super::fold::{Folder, Sum};
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
        let Signature { dtype, op, .. } = self.cut.signature;
        let whole = self.cut.given_bytes(self.index);
        // SAFETY: all members have given, and this one has not taken the piece.
        let parts = |member: usize| unsafe { self.board.given(self.number, member, whole) };
        let folded = folder.fold(self.shape, Sum { dtype, op }, &parts, from, into);
        folded.expect("an operation whose fold is not defined is refused when it is posted");
    }

    /// Folds what all members here have given to where the answer comes to. There are no portions.
    pub(super) fn fold_for_all(&self, folder: &mut Folder) {
        let len = self.cut.piece_bytes(self.index);
        if len == 0 || !matches!(self.cut.signature.collective, Collective::Allreduce | Collective::Reduce) {
            return;
        }
        // SAFETY: all members have given, and this one, which alone writes there, has not shown the
        // answer.
        let into = unsafe { core::slice::from_raw_parts_mut(self.board.answer_at(self.number, len), len) };
        self.fold(folder, 0, into);
    }

    /// Copies or folds what this member gets to its memory.
    pub(super) fn take(&self, folder: &mut Folder, memory: &mut Memory) {
        let Piece { board, cut, number, index, .. } = *self;
        let len = cut.piece_bytes(index);
        if len == 0 || !cut.gets() {
            return;
        }
        let result = |block: u32| {
            let start = memory.gotten_at(&cut.in_block(index, block)).expect("a member gets what the cut says");
            // SAFETY: `gotten_at` checked that the elements lie inside the result of an operation
            // that runs, and nothing else touches that.
            unsafe { core::slice::from_raw_parts_mut(start, len) }
        };
        // SAFETY: the member has given, or this one would not be here, and this one has not taken
        // the piece.
        let given = |member: usize| unsafe { board.given(number, member, len) };
        match (cut.signature.collective, cut.source()) {
            (Collective::Bcast, Some(root)) => return result(0).copy_from_slice(given(root)),
            // SAFETY: the answer is there, and this member has not taken the piece.
            _ if cut.need() == Need::Answer => return result(0).copy_from_slice(unsafe { board.answer(number, len) }),
            _ => {}
        }
        match cut.signature.collective {
            // A barrier brings nothing, and a bcast has a source here or an answer.
            Collective::Barrier | Collective::Bcast => {}
            Collective::Allreduce | Collective::Reduce if cut.portions(index) > 0 => {
                // SAFETY: all portions have been folded, and this member has not taken the piece.
                result(0).copy_from_slice(unsafe { board.result(number, len) });
            }
            Collective::Allreduce | Collective::Reduce => self.fold(folder, 0, result(0)),
            Collective::Allgather => {
                for member in 0..board.members() {
                    result(member as u32).copy_from_slice(given(member));
                }
            }
            Collective::ReduceScatter => {
                let me = board.me();
                self.fold(folder, me * len, result(me as u32));
            }
        }
    }
}
