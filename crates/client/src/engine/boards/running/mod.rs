//! The operations of a group over its board.
//!
//! ```text
//!   posted --give--> given --(all have given: fold portions)--> ready --take--> taken
//! ```
//! Each piece goes this way at each member, pieces in order. A member gives ahead as far as the
//! board has room, so that it holds up nobody while it waits itself. In a wide group, whose members
//! are on several hosts, the first member here sends what is folded up, and a piece is ready when
//! its answer is there (`heads`). `short` is what a member does while its caller waits, `comparing`
//! finds what is wrong, and `waiting` is how a member waits.

mod comparing;
mod short;
mod waiting;

use std::collections::VecDeque;
use std::sync::Arc;

use trib_transport::memory::{Bell, BellAddress, Board, Wish};
use trib_wire::body::Fault;
use trib_wire::{Rank, RankList, Signature};

use super::cut::{Beyond, Cut, Form, Need, View, form_between_hosts, portions_from};
use super::fold::Folder;
use super::heads::{Heads, Own, Trunk};
use super::late::Vigil;
use super::lookout::is_given;
use super::piece::Piece;
use super::shape::Shape;
use super::span::Span;
use crate::completion::Completion;
use crate::memory::Memory;
use crate::processors;
use short::Call;

/// A group that has a board.
pub(super) struct Running {
    board: Arc<Board>,
    shape: Shape,
    /// The members that have the board.
    members: RankList,
    /// The rest of the group, if it has members on other hosts.
    wide: Option<Box<Wide>>,
    /// The bells of all members.
    bells: Vec<BellAddress>,
    folder: Folder,
    operations: VecDeque<Operation>,
    /// How many of these are given whole.
    giving: usize,
    /// The number of the next piece to be posted, given and taken.
    posted: u64,
    given: u64,
    taken: u64,
    /// All members have taken the pieces below this number, as far as this one has seen.
    known: u64,
    /// How many operations are over.
    done: u64,
    vigil: Vigil,
    /// The last operation that was asked for: programs call the same again and again.
    last: Option<Call>,
    /// A member that waits may keep its processor for a while.
    is_roomy: bool,
    /// It has folded the last portion of a piece, for which others may sleep.
    has_made_whole: bool,
    /// The group has failed: only what is on its way is taken.
    ends: bool,
}

struct Operation {
    cut: Cut,
    memory: Memory,
    completion: Arc<Completion>,
    /// The number of its first piece.
    first: u64,
}

/// What makes a group wide.
struct Wide {
    span: Span,
    /// What this member does for the others, if it is the first here.
    heads: Option<Heads>,
}

/// Why a group ends at this member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken {
    pub(super) fault: Fault,
}

impl Running {
    pub(super) fn new(
        board: Board,
        shape: Shape,
        members: RankList,
        bells: Vec<BellAddress>,
        is_roomy: bool,
    ) -> Running {
        Running {
            board: Arc::new(board),
            shape,
            members,
            wide: None,
            bells,
            folder: Folder::default(),
            operations: VecDeque::new(),
            giving: 0,
            posted: 0,
            given: 0,
            taken: 0,
            known: 0,
            done: 0,
            vigil: Vigil::default(),
            last: None,
            is_roomy,
            has_made_whole: false,
            ends: false,
        }
    }

    /// The same group, if it has members on other hosts, too.
    pub(super) fn with_span(mut self, span: Span) -> Running {
        let heads = (self.board.me() == 0).then(Heads::default);
        self.wide = Some(Box::new(Wide { span, heads }));
        self
    }

    /// Whether an operation goes over the board. In a wide group some do not that have a block for
    /// each rank.
    #[inline]
    pub(super) fn serves(&self, signature: &Signature) -> bool {
        self.wide.as_ref().is_none_or(|wide| form_between_hosts(signature, wide.span.size()) != Form::Shown)
    }

    /// Whether the group has members on other hosts.
    pub(super) fn is_wide(&self) -> bool {
        self.wide.is_some()
    }

    /// This member has called something that does not go over the board. It shows that to the
    /// others, who may have called something else at the same turn.
    pub(super) fn note(&mut self, signature: Signature) {
        self.post(signature, Memory::none(), Arc::new(Completion::of_cut(1, signature)));
    }

    pub(super) fn post(&mut self, signature: Signature, memory: Memory, completion: Arc<Completion>) {
        let cut = self.recall(signature).cut;
        self.operations.push_back(Operation { cut, memory, completion, first: self.posted });
        self.posted += cut.pieces();
    }

    /// How an operation is cut at this member.
    fn cut(&self, signature: Signature) -> Cut {
        let (members, me) = (self.board.members() as u32, self.board.me() as u32);
        let (root, piece_len) = match &self.wide {
            None => (Some(signature.root), self.board.piece_len()),
            Some(wide) => (wide.span.find(signature.root).and_then(|found| found.1), wide.span.piece_len()),
        };
        let beyond = self.wide.as_ref().map(|wide| Beyond { size: wide.span.size(), rank: wide.span.me() });
        Cut::new(signature, View { members, me, root, beyond }, piece_len)
    }

    /// An operation as it looks from one of its pieces.
    fn at_piece(&self, cut: &Cut, index: u64) -> Cut {
        seen_at(cut, index, self.wide.as_ref().map(|wide| &wide.span))
    }

    fn heads(&self) -> Option<&Heads> {
        self.wide.as_ref()?.heads.as_ref()
    }

    /// The operation between the hosts for which this member waits, if it is the first here.
    pub(super) fn flight(&self) -> Option<&Arc<Completion>> {
        self.heads()?.first()
    }

    /// The rank of a member.
    fn rank(&self, member: usize) -> Rank {
        self.members.nth(member as u32).unwrap_or(Rank(0))
    }

    pub(super) fn members(&self) -> usize {
        self.board.members()
    }

    /// Whether this thread should wait on another processor: there is one for each member, but
    /// another member waits on this one. The kernel wakes a sleeper where its waker runs, and
    /// leaves threads there that give way to each other.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_roomy && self.board.waits_on(processors::current())
    }

    /// Whether a member that waits may keep its processor for a while.
    pub(super) fn is_roomy(&self) -> bool {
        self.is_roomy
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.operations.is_empty()
    }

    /// Gives, folds, sends and takes what can be, some windows of pieces at most: a member that is
    /// always given more does not keep its caller for all of a long operation. Returns whether an
    /// operation is over.
    pub(super) fn advance(&mut self, bell: &Bell, trunk: &mut dyn Trunk) -> Result<bool, Broken> {
        let done = self.done;
        for _ in 0..WINDOWS_AT_ONCE {
            let gave = self.give(bell)?;
            let folded = self.fold_portions(bell)?;
            let sent = self.heads().is_some() && self.send_up(trunk)? | self.land(bell, trunk)?;
            let took = self.take(bell)?;
            if !(gave || folded || sent || took) || self.operations.is_empty() {
                break;
            }
        }
        Ok(self.done > done)
    }

    /// Takes what comes of a group that has failed, and shows it to the others. Returns whether an
    /// operation is over.
    pub(super) fn finish_up(&mut self, bell: &Bell, trunk: &mut dyn Trunk) -> bool {
        let done = self.done;
        self.ends = true;
        // What is broken is known.
        while self.land(bell, trunk).unwrap_or(false) | self.take(bell).unwrap_or(false) {}
        self.done > done
    }

    fn give(&mut self, bell: &Bell) -> Result<bool, Broken> {
        let before = self.given;
        let gave = self.give_pieces(bell);
        self.wake_for_given(before, bell);
        gave.map(|()| self.given > before)
    }

    fn give_pieces(&mut self, bell: &Bell) -> Result<(), Broken> {
        while let Some(operation) = self.operations.get(self.giving) {
            let piece = self.given - operation.first;
            if piece == operation.cut.pieces() {
                self.giving += 1;
                continue;
            }
            let cut = self.at_piece(&operation.cut, piece);
            if cut.gives() {
                if !self.board.has_room(self.given, &mut self.known) {
                    self.look_for_gone()?;
                    break;
                }
                self.give_piece(&cut, &operation.memory, piece, bell);
            }
            self.given += 1;
        }
        Ok(())
    }

    /// Gives to the next piece, which is number `index` of its operation, and for which there is
    /// room, and wakes those that wait for it, if they have processors of their own.
    fn give_piece(&self, cut: &Cut, memory: &Memory, index: u64, bell: &Bell) {
        self.show_piece(cut, memory, index);
        if self.is_roomy {
            self.wake_for(self.given, cut, bell);
        }
    }

    /// Wakes those that share their processors with this member and wait for what it has given
    /// since this piece. One that is woken for each piece would take the processor from the member
    /// that it waits for, and sleep again before the next.
    fn wake_for_given(&self, since: u64, bell: &Bell) {
        if self.is_roomy || self.given == since || !self.board.has_sleepers() {
            return;
        }
        for piece in since..self.given {
            let Some(Operation { cut, first, .. }) = holding(&self.operations, piece) else { continue };
            let cut = self.at_piece(cut, piece - first);
            if cut.gives() {
                self.wake_takers(piece, &cut, bell);
            }
        }
    }

    /// Gives to that piece. Who sleeps has not been woken.
    #[inline]
    fn show_piece(&self, cut: &Cut, memory: &Memory, index: u64) {
        let (whole, mut at) = (cut.given_bytes(index), 0);
        for elements in cut.given(index) {
            let len = (elements.end - elements.start) as usize * cut.called.element_size();
            if len == 0 {
                continue;
            }
            let start = memory.given_at(&elements).expect("a member gives what the cut says");
            // SAFETY: there is room, the cell is shown below, and `given_at` checked that the
            // elements lie inside the input of an operation that runs.
            unsafe { self.board.put(self.given, whole, at, start, len) };
            at += len;
        }
        self.board.show(self.given, cut.words(), self.taken);
    }

    /// This member has given to a piece, if it gives: wakes those that wait for it.
    fn wake_for(&self, piece: u64, cut: &Cut, bell: &Bell) {
        if cut.gives() && self.board.has_sleepers() {
            self.wake_takers(piece, cut, bell);
        }
    }

    /// Wakes those that wait for a piece to which this member has given, if all they wait for is
    /// there now.
    fn wake_takers(&self, piece: u64, cut: &Cut, bell: &Bell) {
        if cut.source() == Some(self.board.me()) || is_given(&self.board, piece, Need::All) {
            self.wake(Wish::Pieces, bell);
        }
    }

    fn wake(&self, wish: Wish, bell: &Bell) {
        for member in self.board.sleepers(wish) {
            bell.ring(&self.bells[member]);
        }
    }

    /// Folds portions of the pieces that this member has given, as long as there are any.
    fn fold_portions(&mut self, bell: &Bell) -> Result<bool, Broken> {
        let folded = self.fold_pieces(bell);
        self.wake_for_folded(bell);
        folded
    }

    fn fold_pieces(&mut self, bell: &Bell) -> Result<bool, Broken> {
        if self.board.members() < portions_from(self.is_wide()) as usize {
            return Ok(false);
        }
        let mut folded = false;
        let mut at = 0;
        for piece in self.taken..self.given {
            while self.operations.get(at).is_some_and(|o| piece >= o.first + o.cut.pieces()) {
                at += 1;
            }
            let Some(Operation { cut, first, .. }) = self.operations.get(at) else { break };
            let within = piece - first;
            let cut = self.at_piece(cut, within);
            let portions = cut.portions(within);
            if portions == 0 {
                continue;
            }
            if !is_given(&self.board, piece, Need::All) {
                break;
            }
            self.compare(piece, &cut, Need::All)?;
            self.board.begin_folding(piece);
            while let Some(portion) = self.board.claim(piece, portions) {
                self.fold_portion((piece, within, portion), &cut);
                folded = true;
            }
            self.board.end_folding();
            // Those that share their processors are woken once, as above.
            if self.is_roomy {
                self.wake_for_folded(bell);
            }
        }
        Ok(folded)
    }

    /// Wakes those that wait for a piece of which this member has folded the last portion.
    fn wake_for_folded(&mut self, bell: &Bell) {
        if std::mem::take(&mut self.has_made_whole) && self.board.has_sleepers() {
            self.wake(Wish::Pieces, bell);
        }
    }

    /// Folds a portion that this member has claimed, of the piece that is so many pieces into its
    /// operation.
    pub(super) fn fold_portion(&mut self, (piece, within, portion): (u64, u64, u64), cut: &Cut) {
        let whole = Piece { board: &self.board, shape: &self.shape, cut, number: piece, index: within };
        let range = cut.portion(within, portion);
        // SAFETY: this member has claimed the portion, and says below that it is folded.
        let into = unsafe { self.board.portion(piece, range.start, range.len()) };
        whole.fold(&mut self.folder, range.start, into);
        self.has_made_whole |= self.board.fold_done(piece, cut.portions(within));
    }

    /// Sends up what is whole, in order.
    fn send_up(&mut self, trunk: &mut dyn Trunk) -> Result<bool, Broken> {
        let Some(mut wide) = self.wide.take() else { return Ok(false) };
        let sent = self.send_up_from(&mut wide, trunk);
        self.wide = Some(wide);
        sent
    }

    fn send_up_from(&mut self, Wide { span, heads }: &mut Wide, trunk: &mut dyn Trunk) -> Result<bool, Broken> {
        let Some(heads) = heads else { return Ok(false) };
        let (before, me) = (heads.up(), self.rank(0));
        while heads.up() < self.given && !heads.leaves_it() {
            let number = heads.up();
            let Some(Operation { cut, first, .. }) = holding(&self.operations, number) else { break };
            let index = number - first;
            let cut = seen_at(cut, index, Some(span));
            let portions = cut.portions(index);
            if !is_given(&self.board, number, Need::All) || portions > 0 && !self.board.is_folded(number, portions) {
                break;
            }
            self.compare(number, &cut, Need::All)?;
            let piece = Piece { board: &self.board, shape: &self.shape, cut: &cut, number, index };
            if portions == 0 {
                piece.fold_for_all(&mut self.folder, span.local());
            }
            let own = Own { me, span, calls: &calls(&self.operations) };
            heads.send(&piece, &own, trunk).map_err(|fault| Broken { fault })?;
        }
        Ok(heads.up() > before)
    }

    /// Shows the answers that have come.
    fn land(&mut self, bell: &Bell, trunk: &mut dyn Trunk) -> Result<bool, Broken> {
        let mut landed = false;
        let me = self.rank(0);
        while let Some(Wide { span, heads: Some(heads) }) = self.wide.as_deref_mut()
            && let Some(Operation { cut, .. }) = holding(&self.operations, heads.answered())
            && let Some(number) = heads
                .land(&Own { me, span, calls: &calls(&self.operations) }, trunk)
                .map_err(|fault| Broken { fault })?
        {
            self.board.show_answer(number, cut.words());
            if self.board.has_sleepers() {
                self.wake(Wish::Answer, bell);
            }
            landed = true;
        }
        Ok(landed)
    }

    fn take(&mut self, bell: &Bell) -> Result<bool, Broken> {
        let before = self.taken;
        let took = self.take_pieces(bell);
        if !self.is_roomy && self.taken > before && self.board.has_sleepers() {
            self.wake(Wish::Room, bell);
        }
        took.map(|()| self.taken > before)
    }

    fn take_pieces(&mut self, bell: &Bell) -> Result<(), Broken> {
        while self.taken < self.given {
            let Some(Operation { cut, first, .. }) = self.operations.front() else { break };
            let piece = self.taken - *first;
            let cut = self.at_piece(cut, piece);
            let portions = cut.portions(piece);
            let need = cut.need();
            let ready = match (need, portions) {
                (Need::Nobody, _) => true,
                (Need::Answer, _) => self.is_answered(self.taken, &cut)?,
                (_, 0) => is_given(&self.board, self.taken, need),
                _ => self.board.is_folded(self.taken, portions),
            };
            if !ready {
                self.look_for_missing(need)?;
                self.look_for_odd(&cut, need)?;
                break;
            }
            if portions == 0 && need != Need::Answer {
                self.compare(self.taken, &cut, need)?;
            }
            let Some(Operation { memory, .. }) = self.operations.front_mut() else { break };
            let ready = Piece { board: &self.board, shape: &self.shape, cut: &cut, number: self.taken, index: piece };
            ready.take(&mut self.folder, memory);
            self.taken += 1;
            if self.board.take(self.taken) && self.is_roomy {
                self.wake(Wish::Room, bell);
            }
            if piece + 1 == cut.pieces() {
                self.finish();
            }
        }
        Ok(())
    }

    fn finish(&mut self) {
        let Some(mut operation) = self.operations.pop_front() else { return };
        // It was given whole before its last piece was taken, but perhaps not counted yet.
        self.giving = self.giving.saturating_sub(1);
        self.done += 1;
        // SAFETY: the operation is complete, and its request is not finished yet.
        unsafe { operation.memory.finish() };
        operation.completion.finish(Ok(()));
    }

    /// This member leaves the group, and others need not wait for it.
    pub(super) fn leave(&mut self, bell: &Bell) {
        self.board.leave();
        if self.board.has_sleepers() {
            [Wish::Pieces, Wish::Room, Wish::Answer].into_iter().for_each(|wish| self.wake(wish, bell));
        }
    }

    /// This member has nothing to do with the board any more. Its operations are given back.
    pub(super) fn end(&mut self) -> impl Iterator<Item = Arc<Completion>> {
        self.board.wake_up();
        self.operations.drain(..).map(|operation| operation.completion)
    }
}

/// Finds what was called, if one of these operations has such a piece; `None` if several that
/// differ have one.
fn calls(operations: &VecDeque<Operation>) -> impl Fn(&Signature) -> Option<Signature> {
    move |piece| {
        let mut calls = operations.iter().filter(|o| o.cut.has_piece(piece)).map(|o| o.cut.called);
        let first = calls.next()?;
        calls.all(|other| other == first).then_some(first)
    }
}

/// An operation as it looks from one of its pieces, in a group that lies so on its hosts, if it is
/// on several.
pub(super) fn seen_at(cut: &Cut, index: u64, span: Option<&Span>) -> Cut {
    match cut.turn_of(index).zip(span) {
        None => *cut,
        Some((turn, span)) => {
            let rank = span.turn(turn);
            cut.in_turn(rank, span.find(rank).and_then(|found| found.1))
        }
    }
}

/// The first of these operations that is not over before this piece.
fn holding(operations: &VecDeque<Operation>, piece: u64) -> Option<&Operation> {
    operations.iter().find(|operation| piece < operation.first + operation.cut.pieces())
}

/// Of two members these are 4 MiB, a millisecond's work.
const WINDOWS_AT_ONCE: usize = 4;
