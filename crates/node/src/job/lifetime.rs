//! When a logical node is over: the manager may have said so, or no child is there any more.

use trib_proto::Nanos;

/// Presence of children over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    children: u32,
    was_used: bool,
    ended: bool,
    /// When the last child came or went, or when the job was installed.
    changed: Nanos,
}

impl Lifetime {
    pub(crate) fn new(now: Nanos) -> Lifetime {
        Lifetime { children: 0, was_used: false, ended: false, changed: now }
    }

    pub(crate) fn child_came(&mut self, now: Nanos) {
        self.children += 1;
        self.was_used = true;
        self.changed = now;
    }

    pub(crate) fn child_went(&mut self, now: Nanos) {
        self.children -= 1;
        self.changed = now;
    }

    /// The manager has ended the job: it drains.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether the logical node can go: no child is here, and the job has ended or no other child
    /// has come for a while.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        let alone = now.since(self.changed);
        let patience = if self.was_used { AFTER_LAST } else { BEFORE_FIRST };
        self.children == 0 && (self.ended || alone >= patience)
    }
}

/// How long it stays after the last child has gone. Ranks of one program do not all come and go at
/// the same time.
const AFTER_LAST: Nanos = Nanos::from_millis(10_000);
/// How long it waits for the first child. A program that got its ticket may have died before it
/// used it, while the manager was away.
const BEFORE_FIRST: Nanos = Nanos::from_millis(60_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_waits_for_the_first_child_drains_and_outlives_gaps() {
        let second = |s: u64| Nanos::from_millis(s * 1000);
        let mut life = Lifetime::new(second(0));
        assert!(!life.is_over(second(59)));
        assert!(life.is_over(second(60)));
        life.child_came(second(1));
        assert!(!life.is_over(second(1000)));
        life.end();
        assert!(!life.is_over(second(1000)), "children finish after the end");
        life.child_went(second(5));
        assert!(life.is_over(second(5)));

        let mut life = Lifetime::new(second(0));
        life.child_came(second(1));
        life.child_went(second(2));
        assert!(!life.is_over(second(11)));
        assert!(life.is_over(second(12)));
    }
}
