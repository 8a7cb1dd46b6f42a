//! For what a member waits at its board: what it looks for, when it sleeps, and for which ranks.

use trib_proto::Nanos;
use trib_proto::leaf::Standstill;
use trib_transport::memory::Wish;

use super::super::cut::Need;
use super::super::heads::Heads;
use super::super::late::Position;
use super::super::lookout::{Awaited, Lookout, is_given};
use super::{Operation, Running, holding};

impl Running {
    /// Where this member is, if it has operations under way.
    pub(in super::super) fn position(&self) -> Option<Position> {
        self.is_busy().then_some((self.taken, self.given))
    }

    /// Called before a sleep.
    pub(in super::super) fn see(&mut self, now: Nanos) {
        if let Some(position) = self.position() {
            self.vigil.see(position, now);
        }
    }

    /// Whether the node has heard of this member that a rank is late.
    pub(in super::super) fn has_accused(&self) -> bool {
        self.vigil.has_accused()
    }

    /// When there may be something to tell the node; from `free` on it may be told.
    pub(in super::super) fn word_due(&self, now: Nanos, free: Nanos) -> Nanos {
        self.vigil.due(self.position(), now, free)
    }

    /// What the node is to be told now, if anything: which ranks are late, or that none is.
    pub(in super::super) fn word(&mut self, now: Nanos, free: Nanos) -> Option<Option<Standstill>> {
        let position = self.position();
        if !self.vigil.is_due(position, now, free) {
            return None;
        }
        let standstill = position.and_then(|_| self.vigil.waits_since(now)).and_then(|since| self.standstill(since));
        self.vigil.tell(position, now, standstill)
    }

    /// The ranks for which this member waits: those that have not given to its first operation,
    /// that have not folded what they claimed of it, or that hold up the room for what it has to
    /// give.
    pub(in super::super) fn standstill(&self, since: Nanos) -> Option<Standstill> {
        let (board, members) = (&self.board, 0..self.board.members());
        let has_not_given = |member: &usize| !board.has_given(self.taken, *member);
        let need = self.need_of_next();
        let mut missing: Vec<usize> = match need {
            Some(Need::All | Need::Answer) => members.clone().filter(has_not_given).collect(),
            Some(Need::Root(root)) => Some(root).filter(has_not_given).into_iter().collect(),
            Some(Need::Nobody) | None => Vec::new(),
        };
        if missing.is_empty() && matches!(need, Some(Need::All | Need::Answer)) {
            let folds = |member: &usize| *member != board.me() && board.may_fold(self.taken, *member);
            missing = members.clone().filter(folds).collect();
        }
        let mut at = 0;
        if missing.is_empty() && self.operations.get(self.giving).is_some_and(|operation| operation.cut.gives()) {
            at = self.giving;
            missing = members.filter(|member| board.holds_up(self.given, *member)).collect();
        }
        let signature = self.operations.get(at)?.cut.called;
        let ranks = missing.into_iter().filter_map(|member| Some(self.members.nth(member as u32)?.0)).collect();
        let late = Standstill::late(ranks);
        let operation = self.done + at as u64 + 1;
        (!late.is_empty()).then_some(Standstill { operation, signature, since, late })
    }

    /// Whose contributions this member needs for the piece that it takes next, if it has given to
    /// it.
    fn need_of_next(&self) -> Option<Need> {
        let Operation { cut, first, .. } = self.operations.front().filter(|_| self.taken < self.given)?;
        Some(self.at_piece(cut, self.taken - first).need())
    }

    /// What a thread looks for that waits for the first operation; `None` if there is none.
    pub(in super::super) fn lookout(&self) -> Option<Lookout> {
        self.operations.front()?;
        let give = self.operations.get(self.giving).filter(|_| !self.ends).map(|_| self.given);
        Some(Lookout { board: self.board.clone(), awaited: self.awaited(), give, known: self.known })
    }

    fn awaited(&self) -> Option<Awaited> {
        // The first member of a wide group waits for what it sends up next; answers come to it by
        // another way.
        if self.heads().is_some_and(|heads| self.ends || heads.leaves_it()) {
            return None;
        }
        let piece = self.heads().map_or(self.taken, Heads::up);
        let Operation { cut, first, .. } = holding(&self.operations, piece)?;
        if piece >= self.given {
            return None;
        }
        let cut = self.at_piece(cut, piece - first);
        let (need, portions) = (cut.need(), cut.portions(piece - first));
        let whole = is_given(&self.board, piece, Need::All);
        Some(match need {
            Need::Answer if portions > 0 && !whole && !self.ends => Awaited::Given(piece, Need::All),
            Need::Answer if self.heads().is_some() && portions > 0 => Awaited::Folded(piece, portions),
            Need::Answer if self.heads().is_some() => Awaited::Given(piece, Need::All),
            Need::Answer => Awaited::Answer(piece),
            // Shares may be claimed as soon as all have given.
            Need::All if portions > 0 && (whole || self.ends) => Awaited::Folded(piece, portions),
            need => Awaited::Given(piece, need),
        })
    }

    /// Called before a sleep. Returns whether there is something to do instead.
    pub(in super::super) fn fall_asleep(&self) -> bool {
        let Some(lookout) = self.lookout() else { return false };
        let awaited = match lookout.awaited {
            Some(Awaited::Given(..) | Awaited::Folded(..)) => Some(Wish::Pieces),
            Some(Awaited::Answer(_)) => Some(Wish::Answer),
            None => None,
        };
        let wishes = [awaited, lookout.give.map(|_| Wish::Room)];
        self.board.fall_asleep(wishes.into_iter().flatten());
        lookout.has_come() || self.heads().is_some_and(Heads::has_come) || self.is_left_alone(lookout.give.is_some())
    }

    /// Whether one that has left keeps this member from taking or, if it has something, giving.
    fn is_left_alone(&self, gives: bool) -> bool {
        let need = self.need_of_next();
        need.is_some_and(|need| self.look_for_missing(need).is_err()) || gives && self.look_for_gone().is_err()
    }

    pub(in super::super) fn wake_up(&self) {
        self.board.wake_up();
    }
}
