//! What the handle of a group and the engine share.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use trib_proto::leaf::GroupId;
use trib_wire::directory::group_words;
use trib_wire::{GroupName, RankList};

use crate::completion::Completion;
use crate::error::Error;
use crate::sum_kind::SumKind;

/// For what a group is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// For operations, over a board if its members share a host.
    Operations,
    /// To show that all its members are there.
    Meeting,
}

/// A group of which this process is a member.
pub(crate) struct GroupState {
    /// This process's rank in the group.
    pub(crate) rank: u32,
    /// Number of members.
    pub(crate) size: u32,
    /// The members' ranks in the job, in the order of their ranks in the group.
    pub(crate) members: RankList,
    /// What tells it from other groups of the same members.
    pub(crate) tag: u64,
    name: GroupName,
    /// What texts for people call it.
    words: String,
    /// The lanes' identifiers for it, lane by lane. They are known once all lanes have begun to
    /// make it.
    ids: OnceLock<Box<[GroupId]>>,
    /// Its index among the groups that have boards, or may come to one.
    board: OnceLock<usize>,
    /// How many operations were posted so far.
    posted: AtomicU64,
    /// Finished when the group exists at all members, or never will.
    pub(crate) ready: Arc<Completion>,
    error: OnceLock<Error>,
    /// Whether this process has left it.
    left: AtomicBool,
    /// How sums of floating-point numbers are taken: 0 as they are, else one more than the position
    /// in the list of kinds.
    sums: AtomicU8,
    /// How many sums were called so far that are not taken as they are.
    summed: AtomicU64,
}

impl GroupState {
    /// A group that is about to be made in so many parts.
    pub(crate) fn new(rank: u32, members: &RankList, tag: u64, name: GroupName, parts: usize) -> GroupState {
        GroupState {
            rank,
            size: members.len(),
            members: members.clone(),
            tag,
            words: group_words(name.as_str(), members),
            name,
            ids: OnceLock::new(),
            board: OnceLock::new(),
            posted: AtomicU64::new(0),
            ready: Arc::new(Completion::of_parts(parts as u32)),
            error: OnceLock::new(),
            left: AtomicBool::new(false),
            sums: AtomicU8::new(0),
            summed: AtomicU64::new(0),
        }
    }

    /// Notes that this process leaves. It returns whether it has not left before.
    pub(crate) fn leave(&self) -> bool {
        !self.left.swap(true, Ordering::Relaxed)
    }

    /// How sums of floating-point numbers are taken from now on.
    pub(crate) fn set_sums(&self, kind: Option<SumKind>) {
        let position = kind.and_then(|kind| SumKind::ALL.iter().position(|known| *known == kind));
        self.sums.store(position.map_or(0, |position| position as u8 + 1), Ordering::Relaxed);
    }

    /// How they are taken.
    #[inline]
    pub(crate) fn sums(&self) -> Option<SumKind> {
        SumKind::ALL.get(usize::from(self.sums.load(Ordering::Relaxed)).wrapping_sub(1)).copied()
    }

    /// The number of a sum that is called now and not taken as it is, the same at all members.
    pub(crate) fn next_sum(&self) -> u64 {
        self.summed.fetch_add(1, Ordering::Relaxed)
    }

    /// The program's name for it.
    pub(crate) fn name(&self) -> &GroupName {
        &self.name
    }

    /// `MPI_COMM_WORLD (ranks 0-3)`.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    /// The lanes' identifiers for it; empty until all lanes have begun to make it.
    pub(crate) fn ids(&self) -> &[GroupId] {
        self.ids.get().map_or(&[], |ids| ids)
    }

    /// Notes the identifiers when all lanes have begun to make it.
    pub(crate) fn know_ids(&self, ids: Vec<GroupId>) {
        let _ = self.ids.set(ids.into());
    }

    /// Its index among the groups that have boards, or may come to one.
    #[inline]
    pub(crate) fn board(&self) -> Option<usize> {
        self.board.get().copied()
    }

    /// Notes that index.
    pub(crate) fn know_board(&self, at: usize) {
        let _ = self.board.set(at);
    }

    /// How many operations were posted. The engine is locked, so none is posted meanwhile.
    pub(crate) fn posted(&self) -> u64 {
        self.posted.load(Ordering::Relaxed)
    }

    /// Counts a posted operation.
    pub(crate) fn count(&self) {
        self.posted.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that the group no longer works. The first error counts. Returns whether it is this.
    pub(crate) fn fail(&self, error: Error) -> bool {
        self.error.set(error).is_ok()
    }

    /// The error for which it no longer works.
    pub(crate) fn error(&self) -> Option<&Error> {
        self.error.get()
    }
}
