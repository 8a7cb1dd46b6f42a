//! Which results every rank has, as far as this one has heard, and when it says by a frame of its
//! own which it has, because nothing else seems to say it: once, when it has heard of no progress
//! for a while.

use trib_wire::header::FLAG_STREAM;
use trib_wire::{Header, Kind};

use super::at::At;
use super::config::LeafConfig;
use super::group::{Edge, Name};
use super::kept::Kept;
use super::output::{GroupId, LeafOutput, Payload};
use crate::Path;
use crate::time::Nanos;

/// What is heard and to be said on one path of one group.
pub(super) struct Tidings {
    path: Path,
    /// Whether the job goes on in another epoch. Else nothing is kept, and nobody wants to know.
    recovers: bool,
    /// For how long a group rests before its marks are said.
    pause: Nanos,
    /// Every member holds all results below this number.
    stable: u64,
    /// The mark that is to be said, and when.
    pending: Option<(u64, Nanos)>,
    /// The highest mark that was said like this.
    said: u64,
}

impl Tidings {
    pub(super) fn new(path: Path, config: &LeafConfig) -> Tidings {
        // Under `strict` programs wait for the answer.
        let pause = if config.strict { Nanos(0) } else { PAUSE };
        Tidings { path, recovers: config.recovers, pause, stable: 0, pending: None, said: 0 }
    }

    /// Every member holds all results below this number, as far as this rank has heard.
    pub(super) fn stable(&self) -> u64 {
        self.stable
    }

    /// The node says that every member holds all results below `mark`.
    pub(super) fn hear(&mut self, at: &mut At<'_, impl LeafOutput>, mark: u64, kept: &mut Kept) {
        if mark > self.stable {
            self.postpone(at.now, mark);
        }
        self.conclude(at.group, mark, kept, at.out);
    }

    /// Every member holds all results below `mark`, and if the group is over nothing more is said.
    pub(super) fn conclude(&mut self, group: GroupId, mark: u64, kept: &mut Kept, out: &mut impl LeafOutput) {
        if mark > self.stable {
            self.stable = mark;
            out.stable(group, self.path, mark);
            kept.release(mark, out);
        }
    }

    /// A contribution goes out, and says that the results below `mark` are here. Where programs
    /// wait for that, it need not be said again.
    pub(super) fn carry(&mut self, mark: u64) {
        if self.pause == Nanos(0) {
            self.pending.take_if(|(held, _)| *held <= mark);
        }
    }

    /// All hold what lies below `mark`. The rest is said later: marks travel with what is sent, as
    /// long as something is.
    fn postpone(&mut self, now: Nanos, mark: u64) {
        self.pending = self.pending.filter(|(held, _)| *held > mark).map(|(held, _)| (held, now + self.pause));
    }

    /// Tells the node which results are here, if it does not know yet and the time has come.
    pub(super) fn tell(&mut self, edge: &Edge, name: &Name, now: Nanos, out: &mut impl LeafOutput) {
        if let Some(mark) = self.take(now) {
            let flags = if self.path == Path::Stream { FLAG_STREAM } else { 0 };
            let header = Header { mark, flags, ..edge.group_header(name, Kind::Mark) };
            out.transmit(Path::Stream, &header, Payload::None);
        }
    }

    /// A result has come, and all those below `mark` are here.
    pub(super) fn hold(&mut self, now: Nanos, mark: u64) {
        if self.recovers && mark > self.said.max(self.stable) {
            let due = self.pending.map_or(now + self.pause, |(_, due)| due);
            self.pending = Some((mark, due));
        }
    }

    /// The connection is gone. Nothing is said until `begin`.
    pub(super) fn suspend(&mut self) {
        (self.pending, self.said) = (None, 0);
    }

    /// A new epoch begins, in which all ranks have what lies below `mark`.
    pub(super) fn begin(&mut self, mark: u64) {
        (self.stable, self.pending, self.said) = (mark, None, mark);
    }

    /// The group is over, and nothing is kept of it any more.
    pub(super) fn end(&mut self) {
        (self.pending, self.said) = (None, u64::MAX);
    }

    pub(super) fn due(&self) -> Nanos {
        self.pending.map_or(Nanos::NEVER, |(_, due)| due)
    }

    /// What is to be said now, if anything is.
    fn take(&mut self, now: Nanos) -> Option<u64> {
        let (mark, _) = self.pending.take_if(|(_, due)| *due <= now)?;
        self.said = mark;
        Some(mark)
    }
}

/// How long nothing is heard of before a mark is said. A program that computes for less between its
/// operations says it with these.
const PAUSE: Nanos = Nanos::from_millis(10);

#[cfg(test)]
mod tests {
    use trib_wire::{ChildIndex, Epoch, JobId, NodeId, Rank};

    use super::*;
    use crate::node::LIMITS;

    fn config(recovers: bool, strict: bool) -> LeafConfig {
        let (job, epoch, rank, node, child) = (JobId(1), Epoch(1), Rank(0), NodeId(0), ChildIndex(0));
        LeafConfig { job, epoch, rank, world_size: 1, node, child, limits: LIMITS, recovers, memory: 0, strict }
    }

    #[test]
    fn where_programs_wait_for_marks_they_are_said_at_once() {
        let mut tidings = Tidings::new(Path::Datagram, &config(true, true));
        tidings.hold(Nanos(7), 3);
        assert_eq!((tidings.take(Nanos(7)), tidings.take(Nanos(7))), (Some(3), None));
        tidings.hold(Nanos(8), 4);
        tidings.carry(3);
        assert_eq!(tidings.due(), Nanos(8), "a contribution said less");
        tidings.carry(4);
        assert_eq!(tidings.due(), Nanos::NEVER);
    }

    #[test]
    fn a_mark_is_said_once_after_a_while_in_which_nothing_was_heard() {
        let mut tidings = Tidings::new(Path::Datagram, &config(true, false));
        let after = |ms: u64| Nanos::from_millis(ms);
        tidings.hold(Nanos(0), 2);
        tidings.hold(after(5), 3);
        assert_eq!((tidings.due(), tidings.take(after(9)), tidings.take(after(10))), (after(10), None, Some(3)));
        assert_eq!((tidings.due(), tidings.take(after(99))), (Nanos::NEVER, None));
        tidings.hold(after(99), 3);
        assert_eq!(tidings.due(), Nanos::NEVER, "it was said");
        tidings.hold(after(100), 5);
        tidings.postpone(after(105), 4);
        assert_eq!(tidings.due(), after(115), "the others say theirs with what they send");
        tidings.postpone(after(110), 5);
        assert_eq!(tidings.due(), Nanos::NEVER, "everybody knows");
        tidings.hold(after(200), 6);
        tidings.begin(4);
        assert_eq!(tidings.due(), Nanos::NEVER);
        tidings.hold(after(200), 6);
        tidings.end();
        tidings.hold(after(300), 7);
        assert_eq!(tidings.due(), Nanos::NEVER, "the group has failed");
        let mut never = Tidings::new(Path::Datagram, &config(false, false));
        never.hold(Nanos(0), 3);
        assert_eq!(never.due(), Nanos::NEVER);
    }
}
