//! Memory that all members of a group on one host have mapped: each puts there what it gives to an
//! operation, and finds there what the others give.
//!
//! ```text
//!   member 0 --put--> [cell 0] --.             .--> [result] --> all members
//!   member 1 --put--> [cell 1] ---+-- portions --+      of the piece, or each folds for itself
//!   member 2 --put--> [cell 2] --'             '-->
//! ```
//! An operation is cut into pieces, and the pieces of all operations of a group have numbers one
//! after the other. A piece has the slot `number mod WINDOW`, and in it a cell for each member. A
//! member writes to its cell, or to the room beside it if it gives much, when every member has
//! taken the piece that had the slot before, and shows it by writing the number last. What is
//! folded into the slot's result is cut into portions, which members claim, so that none is waited
//! for that has no processor.
//!
//! A group that goes beyond the host has an answer to each piece, which the first member shows:
//! what the members of all hosts have come to. It lies in a cell behind those of the members, or,
//! if it is long, where the members here have folded.
//!
//! Nobody makes a system call while the others are awake. A member that is about to sleep says so,
//! passes a fence, and looks once more; who has changed what others wait for passes a fence and
//! then looks who is asleep. One of the two sees what the other has done.
//!
//! The board has no name: it is a memory file whose descriptor goes from process to process
//! (`bell`), and it is gone with the last of them.

mod cell;
mod count;
mod layout;
mod sleep;

pub use layout::{MEMBERS_MAX, WINDOW};

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::copy::copy_bytes;
use super::file;
use crate::mapping::Mapping;
use cell::Cell;
use layout::Layout;

/// One member's view of the board.
pub struct Board {
    mapping: Mapping,
    layout: Layout,
    me: usize,
}

/// What a member that sleeps waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// That others give or fold.
    Pieces = 1,
    /// That others take, so that it can give.
    Room = 2,
    /// That the first member answers.
    Answer = 4,
}

impl Board {
    /// A new board for `members`, the first of which is this one, and the descriptor with which the
    /// others open it. It is an error if no board has so many.
    pub fn create(members: usize) -> io::Result<(Board, OwnedFd)> {
        let layout = Layout::of(members).ok_or(io::ErrorKind::InvalidInput)?;
        let memory = file::create("tributary-board", layout.len())?;
        let mapping = Mapping::shared(memory.as_fd(), layout.len())?;
        Ok((Board { mapping, layout, me: 0 }, memory))
    }

    /// Opens what the first member has sent, as the member `me` of so many.
    pub fn open(memory: &OwnedFd, members: usize, me: usize) -> io::Result<Board> {
        let layout = Layout::of(members).filter(|_| me < members).ok_or(io::ErrorKind::InvalidInput)?;
        file::check(memory, layout.len())?;
        Ok(Board { mapping: Mapping::shared(memory.as_fd(), layout.len())?, layout, me })
    }

    /// The bytes of the board of so many members. `None`: no board has so many.
    pub fn bytes(members: usize) -> Option<usize> {
        Layout::of(members).map(Layout::len)
    }

    /// The bytes that a member of the board of so many can give to one piece. `None`: no board has
    /// so many.
    pub fn piece_len_of(members: usize) -> Option<usize> {
        Layout::of(members).map(|layout| layout.piece)
    }

    /// The number of members.
    #[inline]
    pub fn members(&self) -> usize {
        self.layout.members
    }

    /// Which of them this is.
    pub fn me(&self) -> usize {
        self.me
    }

    /// The bytes that a member can give to one piece.
    pub fn piece_len(&self) -> usize {
        self.layout.piece
    }

    /// Whether this member may give to `piece`: every member has taken what was in its slot before.
    /// `known` is what it has seen already: pieces below it were taken by all.
    #[inline]
    pub fn has_room(&self, piece: u64, known: &mut u64) -> bool {
        let needed = (piece + 1).saturating_sub(WINDOW);
        if *known < needed {
            *known = (0..self.members()).map(|member| self.taken(member)).min().unwrap_or(0);
        }
        *known >= needed
    }

    /// Whether a member has not taken what is in the slot of `piece` yet, so that nobody may give
    /// to it.
    pub fn holds_up(&self, piece: u64, member: usize) -> bool {
        self.taken(member) < (piece + 1).saturating_sub(WINDOW)
    }

    /// Writes `len` of the `whole` bytes that this member gives to `piece`, from byte `at` on.
    ///
    /// # Panics
    /// If the bytes lie outside the whole, or that is longer than a piece.
    ///
    /// # Safety
    /// There is room, the piece has not been shown, and `len` bytes from `bytes` are readable.
    #[inline]
    pub unsafe fn put(&self, piece: u64, whole: usize, at: usize, bytes: *const u8, len: usize) {
        assert!(at <= whole && len <= whole - at);
        let own = self.mapping.at(self.layout.given(piece, self.me, whole) + at);
        // SAFETY: these bytes are this member's, no other reads them before they are shown, and
        // none writes them; the caller promises the rest.
        unsafe { copy_bytes(bytes, own, len) };
    }

    /// Shows the others that this member has given to `piece`, and to which operation, and that it
    /// needs nothing of the pieces below `taken` any more.
    #[inline]
    pub fn show(&self, piece: u64, signature: [u64; 2], taken: u64) {
        self.cell(piece, self.me).show(piece, signature, taken);
    }

    /// Whether a member has given to `piece`.
    #[inline]
    pub fn has_given(&self, piece: u64, member: usize) -> bool {
        self.cell(piece, member).has_given(piece)
    }

    /// To which operation a member has given.
    #[inline]
    pub fn signature(&self, piece: u64, member: usize) -> [u64; 2] {
        self.cell(piece, member).signature()
    }

    /// Whether all members have given to `piece`.
    #[inline]
    pub fn is_whole(&self, piece: u64) -> bool {
        self.cells(piece).iter().all(|cell| cell.has_given(piece))
    }

    /// Whether all members, which have given to `piece`, have given to this operation. If so: how
    /// many pieces all of them had taken by then. Who looks at their cells anyway need not fetch
    /// the lines where they count what they take.
    #[inline]
    pub fn agreed(&self, piece: u64, signature: [u64; 2]) -> Option<u64> {
        let agree = |least: u64, cell: &Cell| (cell.signature() == signature).then(|| least.min(cell.taken()));
        self.cells(piece).iter().try_fold(piece, agree)
    }

    /// The `whole` bytes that a member has given to `piece`.
    ///
    /// # Panics
    /// If that is longer than a piece.
    ///
    /// # Safety
    /// The member has given to the piece, and this one has not taken it while the slice is used.
    /// Ranks of one job trust each other not to write what they have shown.
    #[inline]
    pub unsafe fn given(&self, piece: u64, member: usize, whole: usize) -> &[u8] {
        let start = self.given_at(piece, member, whole);
        // SAFETY: the bytes lie where the member puts so many, and nobody writes them, by the
        // caller's promise.
        unsafe { core::slice::from_raw_parts(start, whole) }
    }

    /// This member is about to claim portions of `piece`: if the others wait for one that it does
    /// not fold, they know which member has it.
    pub fn begin_folding(&self, piece: u64) {
        self.word(self.layout.folding(self.me)).store(piece + 1, Relaxed);
    }

    /// This member has folded all that it has claimed.
    pub fn end_folding(&self) {
        self.word(self.layout.folding(self.me)).store(0, Relaxed);
    }

    /// Whether a member may have claimed a portion of `piece` that it has not folded.
    pub fn may_fold(&self, piece: u64, member: usize) -> bool {
        self.word(self.layout.folding(member)).load(Relaxed) == piece + 1
    }

    /// Claims a portion of the fold of `piece`, if one of `portions` is left. Its number is told.
    pub fn claim(&self, piece: u64, portions: u64) -> Option<u64> {
        count::raise(self.word(self.layout.claimed(piece)), piece, portions)
    }

    /// A claimed portion has been folded. Returns whether it was the last of `portions`.
    pub fn fold_done(&self, piece: u64, portions: u64) -> bool {
        count::raise(self.word(self.layout.folded(piece)), piece, portions) == Some(portions - 1)
    }

    /// Whether all portions of `piece` have been folded.
    pub fn is_folded(&self, piece: u64, portions: u64) -> bool {
        count::read(self.word(self.layout.folded(piece)), piece) >= portions
    }

    /// Bytes `from..from + len` of the result of `piece`.
    ///
    /// # Panics
    /// If a result has not so many.
    ///
    /// # Safety
    /// Until the slice is gone nobody else uses these bytes: this member has claimed the portion in
    /// which they lie, and has not said that it is folded.
    #[allow(clippy::mut_from_ref)] // What is exclusive is the portion, not the board.
    pub unsafe fn portion(&self, piece: u64, from: usize, len: usize) -> &mut [u8] {
        // SAFETY: the bytes lie inside the result, and nobody else uses them, by the caller's
        // promise.
        unsafe { core::slice::from_raw_parts_mut(self.result_at(piece, from, len), len) }
    }

    /// The first `len` bytes of the result of `piece`.
    ///
    /// # Panics
    /// If a result has not so many.
    ///
    /// # Safety
    /// All portions of the piece have been folded, and this member has not taken it while the slice
    /// is used.
    pub unsafe fn result(&self, piece: u64, len: usize) -> &[u8] {
        // SAFETY: the bytes lie inside the result, and nobody writes them, by the caller's promise.
        unsafe { core::slice::from_raw_parts(self.result_at(piece, 0, len), len) }
    }

    fn result_at(&self, piece: u64, from: usize, len: usize) -> *mut u8 {
        assert!(from <= self.layout.piece && len <= self.layout.piece - from);
        self.mapping.at(self.layout.result(piece) + from)
    }

    /// Where the answer of `len` bytes to `piece` has to lie.
    ///
    /// The first member alone writes there, from when all members have given and, if the piece is
    /// cut into portions, these are folded, until it shows the answer.
    ///
    /// # Panics
    /// If that is longer than a piece.
    pub fn answer_at(&self, piece: u64, len: usize) -> *mut u8 {
        self.mapping.at(self.layout.given(piece, self.layout.answer(), len))
    }

    /// Where the `len` bytes lie that a member has given to `piece`. They may be read until this
    /// member has taken the piece.
    ///
    /// # Panics
    /// If that is longer than a piece.
    #[inline]
    pub fn given_at(&self, piece: u64, member: usize, len: usize) -> *const u8 {
        self.mapping.at(self.layout.given(piece, member, len))
    }

    /// Shows the others that the answer to `piece` lies in its place, and to which operation.
    pub fn show_answer(&self, piece: u64, signature: [u64; 2]) {
        self.cell(piece, self.layout.answer()).show(piece, signature, 0);
    }

    /// To which operation the answer is, if there is one to `piece`.
    #[inline]
    pub fn answered(&self, piece: u64) -> Option<[u64; 2]> {
        let answer = self.layout.answer();
        self.has_given(piece, answer).then(|| self.signature(piece, answer))
    }

    /// The `len` bytes of the answer to `piece`.
    ///
    /// # Panics
    /// If that is longer than a piece.
    ///
    /// # Safety
    /// There is an answer, and this member has not taken the piece while the slice is used.
    pub unsafe fn answer(&self, piece: u64, len: usize) -> &[u8] {
        // SAFETY: the bytes lie inside the answer's place, and nobody writes them, by the caller's
        // promise.
        unsafe { core::slice::from_raw_parts(self.answer_at(piece, len), len) }
    }

    /// This member needs nothing of the pieces below `end` any more. Returns whether anybody
    /// sleeps, also of those that wait for something that was shown before.
    #[inline]
    pub fn take(&self, end: u64) -> bool {
        let taken = self.word(self.layout.taken(self.me));
        // There an exchange is a fence, too, and costs less than one: nobody else has the line.
        if cfg!(target_arch = "x86_64") {
            taken.swap(end, SeqCst);
            return self.word(self.layout.sleepers()).load(SeqCst) != 0;
        }
        taken.store(end, Release);
        self.has_sleepers()
    }

    /// A member needs nothing of the pieces below this number.
    #[inline]
    pub fn taken(&self, member: usize) -> u64 {
        self.word(self.layout.taken(member)).load(Acquire)
    }

    /// This member gives nothing any more.
    pub fn leave(&self) {
        self.word(self.layout.left(self.me)).store(1, SeqCst);
    }

    /// Whether a member gives nothing any more. What it gave before is there.
    pub fn has_left(&self, member: usize) -> bool {
        self.word(self.layout.left(member)).load(SeqCst) != 0
    }

    /// This member is about to sleep, with these wishes. It has to look once more after this.
    pub fn fall_asleep(&self, wishes: impl IntoIterator<Item = Wish>) {
        let wishes = wishes.into_iter().fold(0, |all, wish| all | wish as u64);
        sleep::fall_asleep(self.word(self.layout.asleep(self.me)), self.word(self.layout.sleepers()), wishes);
    }

    /// This member looks for itself.
    pub fn wake_up(&self) {
        sleep::wake_up(self.word(self.layout.asleep(self.me)), self.word(self.layout.sleepers()));
    }

    /// Whether anybody sleeps, after this member has changed something.
    #[inline]
    pub fn has_sleepers(&self) -> bool {
        sleep::has_sleepers(self.word(self.layout.sleepers()))
    }

    /// The sleeping members that have this wish, of which the caller has to wake each: they are
    /// told once.
    pub fn sleepers(&self, wish: Wish) -> impl Iterator<Item = usize> {
        let others = (0..self.members()).filter(|member| *member != self.me);
        let sleepers = self.word(self.layout.sleepers());
        others.filter(move |member| sleep::is_to_wake(self.word(self.layout.asleep(*member)), sleepers, wish as u64))
    }

    /// Notes on which processor this member waits, and tells whether a member before it last waited
    /// on the same. So one of two that find each other there stays.
    pub fn waits_on(&self, processor: u32) -> bool {
        let mark = u64::from(processor) + 1;
        self.word(self.layout.processor(self.me)).store(mark, Relaxed);
        let is_there = |member: usize| self.word(self.layout.processor(member)).load(Relaxed) == mark;
        (0..self.me).any(is_there)
    }

    /// The cell of a member, or that of the answer.
    #[inline]
    fn cell(&self, piece: u64, member: usize) -> &Cell {
        // SAFETY: as for `cells`.
        unsafe { &*self.mapping.run(self.layout.cell(piece, member), size_of::<Cell>()).cast() }
    }

    /// The cells of all members, in order.
    #[inline]
    fn cells(&self, piece: u64) -> &[Cell] {
        let members = self.layout.members;
        let first = self.mapping.run(self.layout.cell(piece, 0), members * size_of::<Cell>());
        // SAFETY: `Layout` puts cells there, side by side and aligned, inside the mapping, which
        // lives as long as `self`; a cell takes any bytes.
        unsafe { core::slice::from_raw_parts(first.cast(), members) }
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `Layout` gives offsets of aligned words inside the mapping, which lives as long
        // as `self`; these are never accessed but as atomics.
        unsafe { AtomicU64::from_ptr(self.mapping.at(at).cast()) }
    }
}

impl std::fmt::Debug for Board {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Board").field("layout", &self.layout).field("me", &self.me).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
