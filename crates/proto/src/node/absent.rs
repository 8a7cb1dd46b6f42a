//! Children that have not called yet, in an epoch that follows another one or while others make a
//! group.
//!
//! A rank may have died when nobody was there to see it, or with the node that saw it. It has as
//! long to call as it may be silent. So has a node, which calls when any rank below it does: where
//! none is left, it never will. Time counts only if this node came to its ticks on time, as in
//! `liveness`.

use trib_wire::ChildIndex;

use crate::limits::Limits;
use crate::liveness::Tick;
use crate::time::Nanos;

/// The children of a node that have not called.
pub(super) struct Absent {
    /// A bit for each of them.
    children: u64,
    /// The last tick, and for how long this node has watched.
    checked: Option<Nanos>,
    watched: Nanos,
}

impl Absent {
    pub(super) fn new(children: u64) -> Absent {
        Absent { children, checked: None, watched: Nanos(0) }
    }

    /// A child has called.
    pub(super) fn called(&mut self, child: ChildIndex) {
        self.children &= !(1 << child.0);
    }

    /// Whether a child has not called.
    pub(super) fn is_missing(&self, child: ChildIndex) -> bool {
        child.0 < 64 && self.children & (1 << child.0) != 0
    }

    /// A tick. Time counts while the children are missed. Returns a bit for each child that is
    /// dead.
    pub(super) fn tick(&mut self, tick: Tick, is_missed: bool, limits: &Limits) -> u64 {
        let before = core::mem::replace(&mut self.checked, is_missed.then_some(tick.now));
        if let Some(before) = before.filter(|_| is_missed) {
            self.watched = self.watched + tick.observed(before, true, limits);
        }
        let is_over = self.watched >= limits.dead_after;
        if is_over { core::mem::take(&mut self.children) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::harness::LIMITS;

    /// The tick with this number, `late` after it was due.
    fn tick(number: u64, late: Nanos) -> Tick {
        let due = Nanos(number * (LIMITS.heartbeat + late).0);
        Tick { due, now: due + late }
    }

    #[test]
    fn a_child_may_take_as_long_to_call_as_a_rank_may_be_silent() {
        let mut absent = Absent::new(0b101);
        absent.called(ChildIndex(2));
        for number in 0..60 {
            assert_eq!(absent.tick(tick(number, Nanos(0)), true, &LIMITS), 0);
        }
        assert_eq!(absent.tick(tick(60, Nanos(0)), true, &LIMITS), 1);
        assert_eq!(absent.tick(tick(61, Nanos(0)), true, &LIMITS), 0, "it dies once");
    }

    #[test]
    fn a_child_that_nobody_misses_may_stay_away() {
        let mut absent = Absent::new(1);
        for number in 0..100 {
            assert_eq!(absent.tick(tick(number, Nanos(0)), false, &LIMITS), 0);
        }
        for number in 100..160 {
            assert_eq!(absent.tick(tick(number, Nanos(0)), true, &LIMITS), 0);
        }
        assert_eq!(absent.tick(tick(160, Nanos(0)), true, &LIMITS), 1);
    }

    #[test]
    fn a_node_that_sleeps_sees_nobody_call() {
        let mut absent = Absent::new(1);
        for number in 0..100 {
            assert_eq!(absent.tick(tick(number, LIMITS.dead_after), true, &LIMITS), 0);
        }
    }
}
