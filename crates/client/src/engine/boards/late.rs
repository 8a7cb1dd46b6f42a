//! When a member tells its node for which ranks it waits at a board.
//!
//! ```text
//!   goes on --LATE_AFTER at one position--> says which are late --looks--> says it if others are
//!      ^                                        |
//!      '----- says that none is --- goes on ----'     between two words of a rank: LATE_PAUSE
//! ```
//! Nothing is looked at and no clock is read for it while operations go on.

use trib_proto::Nanos;
use trib_proto::leaf::Standstill;

/// Where a member is at its board: the next piece to be taken and the next to be given.
pub(super) type Position = (u64, u64);

/// What one member watches at one board.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    /// Where it was seen last, and since when it is there.
    position: Position,
    since: Nanos,
    /// When it looks next which ranks are missing.
    look: Nanos,
    /// What the node has heard, and where this member was then.
    said: Option<Box<(Position, Standstill)>>,
}

impl Vigil {
    /// The member has operations under way, and is here now.
    #[inline]
    pub(super) fn see(&mut self, position: Position, now: Nanos) {
        // Before its first operation it is nowhere.
        if position != self.position || self.since == Nanos(0) {
            (self.position, self.since, self.look) = (position, now, now + LATE_AFTER);
        }
    }

    /// Whether the node has heard that a rank is late.
    #[inline]
    pub(super) fn has_accused(&self) -> bool {
        self.said.is_some()
    }

    /// When there may be something to say. `free` is when this rank may say something again.
    pub(super) fn due(&self, position: Option<Position>, now: Nanos, free: Nanos) -> Nanos {
        match position {
            position if self.is_over(position) => free.max(now),
            None => Nanos::NEVER,
            Some(position) if position != self.position => now + LATE_AFTER,
            Some(_) => self.look.max(free),
        }
    }

    /// Whether there may be something to say now. The member is at this position, if it has
    /// operations under way.
    #[inline]
    pub(super) fn is_due(&mut self, position: Option<Position>, now: Nanos, free: Nanos) -> bool {
        if let Some(position) = position {
            self.see(position, now);
        }
        let is_due = self.is_over(position) || position.is_some() && now >= self.look;
        is_due && now >= free
    }

    /// Since when the member is where it was seen last, if that is long enough to tell.
    pub(super) fn waits_since(&self, now: Nanos) -> Option<Nanos> {
        (now.since(self.since) >= LATE_AFTER).then_some(self.since)
    }

    /// What is to be told, if it is news: for which ranks the member waits at this position, or
    /// that it waits for none.
    pub(super) fn tell(
        &mut self,
        position: Option<Position>,
        now: Nanos,
        standstill: Option<Standstill>,
    ) -> Option<Option<Standstill>> {
        let first = self.since + LATE_AFTER;
        self.look = if now < first { first } else { now + LOOK_AGAIN };
        let before = std::mem::replace(&mut self.said, position.zip(standstill.clone()).map(Box::new));
        let is_news = match (before.as_deref(), &standstill) {
            (Some((_, before)), Some(now)) => (before.operation, &before.late) != (now.operation, &now.late),
            (before, now) => before.is_some() != now.is_some(),
        };
        is_news.then_some(standstill)
    }

    /// Whether the node has heard what is no longer so.
    fn is_over(&self, position: Option<Position>) -> bool {
        self.said.as_ref().is_some_and(|said| position != Some(said.0))
    }
}

/// A member that waits for less tells nothing: computing for so long between operations is usual.
const LATE_AFTER: Nanos = Nanos::from_millis(100);
/// The least time between two words of a rank, over all its groups.
pub(super) const LATE_PAUSE: Nanos = Nanos::from_millis(250);
/// While a member waits it looks so often whether others are missing than before.
const LOOK_AGAIN: Nanos = Nanos::from_millis(500);

#[cfg(test)]
mod tests {
    use trib_proto::leaf::Standstill;
    use trib_wire::{DataType, RankList, ReduceOp};

    use super::*;

    /// What is told now if `find` finds that.
    fn told(
        vigil: &mut Vigil,
        position: Option<Position>,
        (now, free): (Nanos, Nanos),
        find: impl FnOnce(Nanos) -> Option<Standstill>,
    ) -> Option<Option<Standstill>> {
        if !vigil.is_due(position, now, free) {
            return None;
        }
        let standstill = position.and_then(|_| vigil.waits_since(now)).and_then(find);
        vigil.tell(position, now, standstill)
    }

    fn at(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn late(operation: u64, since: Nanos, ranks: &[u32]) -> Standstill {
        let signature = crate::operation::allreduce(1, DataType::U8, ReduceOp::Min);
        Standstill { operation, signature, since, late: RankList::from_ranks(ranks.iter().copied()) }
    }

    #[test]
    fn who_waits_says_so_once_and_again_when_others_are_late_and_when_it_goes_on() {
        let mut vigil = Vigil::default();
        let here = Some((4, 5));
        vigil.see((4, 5), at(10));
        assert_eq!(vigil.due(here, at(10), at(0)), at(110));
        assert_eq!(told(&mut vigil, here, (at(109), at(0)), |_| unreachable!("it is too early")), None);
        let word = told(&mut vigil, here, (at(112), at(0)), |since| Some(late(3, since, &[1, 2])));
        assert_eq!(word, Some(Some(late(3, at(10), &[1, 2]))));
        assert!(vigil.has_accused());
        let again = vigil.due(here, at(112), at(362));
        assert_eq!(again, at(612));
        assert_eq!(
            told(&mut vigil, here, (again, at(362)), |since| Some(late(3, since, &[1, 2]))),
            None,
            "it is known"
        );
        let word = told(&mut vigil, here, (at(1112), at(362)), |since| Some(late(3, since, &[2])));
        assert_eq!(word, Some(Some(late(3, at(10), &[2]))));
        // It goes on, and may not say so yet.
        let there = Some((5, 6));
        assert_eq!(vigil.due(there, at(1120), at(1362)), at(1362));
        assert_eq!(told(&mut vigil, there, (at(1120), at(1362)), |_| unreachable!("it may not speak")), None);
        assert_eq!(vigil.due(None, at(1200), at(1362)), at(1362), "nor when nothing is under way any more");
        assert_eq!(told(&mut vigil, None, (at(1362), at(1362)), |_| unreachable!("it waits for nothing")), Some(None));
        assert!(!vigil.has_accused());
        assert_eq!(vigil.due(None, at(1362), at(1612)), Nanos::NEVER);
    }

    #[test]
    fn a_wait_that_is_short_yet_when_a_rank_says_that_it_goes_on_is_told_in_time() {
        let mut vigil = Vigil::default();
        vigil.see((0, 1), at(10));
        told(&mut vigil, Some((0, 1)), (at(110), at(0)), |since| Some(late(1, since, &[1])));
        vigil.see((1, 2), at(350));
        assert_eq!(told(&mut vigil, Some((1, 2)), (at(360), at(360)), |_| unreachable!("it is too early")), Some(None));
        assert_eq!(vigil.due(Some((1, 2)), at(360), at(610)), at(610), "it may not speak before");
        assert_eq!(vigil.due(Some((1, 2)), at(360), at(0)), at(450));
    }

    #[test]
    fn who_waits_again_before_it_may_speak_says_for_whom_now() {
        let mut vigil = Vigil::default();
        vigil.see((0, 1), at(10));
        told(&mut vigil, Some((0, 1)), (at(110), at(0)), |since| Some(late(1, since, &[1])));
        let there = Some((1, 2));
        assert_eq!(told(&mut vigil, there, (at(120), at(360)), |_| unreachable!("it may not speak")), None);
        let word = told(&mut vigil, there, (at(360), at(360)), |since| Some(late(2, since, &[1])));
        assert_eq!(word, Some(Some(late(2, at(120), &[1]))), "one word tells both");
    }

    #[test]
    fn who_goes_on_and_has_said_nothing_says_nothing() {
        let mut vigil = Vigil::default();
        for piece in 0..100 {
            let position = Some((piece, piece + 1));
            assert_eq!(
                told(&mut vigil, position, (at(1 + 50 * piece), at(0)), |_| unreachable!("it does not wait")),
                None
            );
        }
        // All have given, and the fold takes long.
        assert_eq!(told(&mut vigil, Some((99, 100)), (at(9000), at(0)), |_| None), None);
    }
}
